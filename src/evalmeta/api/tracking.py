"""Remembering what project and org both have after a deploy or a retrieve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.client.retrieve import list_components
from evalmeta.errors import OrgError
from evalmeta.model.sync import hash_of
from evalmeta.package.archive import read_zip
from evalmeta.package.convert import full_name_of
from evalmeta.store.receipts import open_receipts
from evalmeta.store.tracking import Synced, open_tracking
from evalmeta.wire.timestamps import from_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from evalmeta.api.sides import Fetched
    from evalmeta.client.connection import Connection
    from evalmeta.package.project import Project
    from evalmeta.store.receipts import Receipts, Sent
    from evalmeta.store.tracking import Tracking
    from evalmeta.wire.messages import DeployMessage, DeployResult

__all__ = ["hashes_of", "receipts_of", "remember_deployment", "remember_fetched", "tracking_of"]

_SAVED: Final = frozenset({"Succeeded", "SucceededPartial"})


def tracking_of(project: Project, connection: Connection) -> AbstractContextManager[Tracking]:
    """Opens what a project remembers of an org.

    Raises:
        StoreError: the project's database cannot be used.
    """
    return open_tracking(project.state_dir, root=project.root, org_url=connection.url)


def receipts_of(project: Project, connection: Connection) -> AbstractContextManager[Receipts]:
    """Opens the jobs that a project began in an org; raises like `tracking_of`."""
    return open_receipts(project.state_dir, root=project.root, org_url=connection.url)


def hashes_of(zip_file: bytes) -> Sent:
    """Gives the hashes of the components in a zip that is deployed, by type and full name.

    Raises:
        ArchiveError: the zip cannot be trusted.
    """
    sent: Sent = {}
    for entry, content in read_zip(zip_file).items():
        if found := full_name_of(entry.rpartition("/")[2]):
            sent.setdefault(found[0].name, {})[found[1]] = hash_of(content)
    return sent


def remember_fetched(tracking: Tracking, components: Sequence[Fetched]) -> None:
    """Remembers components that the project now has as the org sent them."""
    for kind in dict.fromkeys(each.type for each in components):
        ours = (each for each in components if each.type == kind)
        tracking.remember(kind.name, {each.full_name: Synced(hash_of(each.content), each.modified) for each in ours})


async def remember_deployment(
    connection: Connection, tracking: Tracking, result: DeployResult, components: Sent
) -> None:
    """Remembers what a deployment of these components made the same on both sides, and forgets what it deleted.

    The org is asked for its dates only when the deployment changed something there. A
    check, and a failure that was rolled back, changed nothing.
    """
    if result.check_only or result.status not in _SAVED:
        return
    done = [each for each in result.details.component_successes if each.component_type]
    for type_name in dict.fromkeys(each.component_type for each in done):
        ours = [each for each in done if each.component_type == type_name]
        if deleted := [each.full_name for each in ours if each.deleted]:
            tracking.forget(type_name, deleted)
        sent = components.get(type_name, {})
        base = tracking.load(type_name)
        news = {each.full_name: sent[each.full_name] for each in ours if _is_news(each, sent, base)}
        if news:
            dates = await _dates(connection, type_name, until=result.completed_date or "")
            synced = {name: Synced(sha256, dates.get(name.casefold(), "")) for name, sha256 in news.items()}
            tracking.remember(type_name, synced)


def _is_news(message: DeployMessage, sent: Mapping[str, bytes], base: Mapping[str, Synced]) -> bool:
    if message.deleted or message.full_name not in sent:
        return False
    known = base.get(message.full_name.casefold())
    return message.changed or message.created or known is None or known.sha256 != sent[message.full_name]


async def _dates(connection: Connection, type_name: str, *, until: str) -> dict[str, str]:
    """Gives the org's dates, without those after the end of the deployment: they are of other people's changes.

    A date that is missing makes the next command fetch the component, so an org that does
    not answer now does no harm.
    """
    try:
        listed = await list_components(connection, type_name)
    except OrgError:
        return {}
    end = from_timestamp(until)
    dates = {each.full_name.casefold(): each.last_modified_date for each in listed}
    return {name: date for name, date in dates.items() if not _is_after(date, end)}


def _is_after(date: str, end: float | None) -> bool:
    moment = from_timestamp(date)
    return end is not None and moment is not None and moment > end
