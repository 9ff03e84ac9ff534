"""Remembering what project and org both have after a deploy or a retrieve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.sync import hash_of
from evalmeta.package.archive import read_zip
from evalmeta.package.convert import full_name_of
from evalmeta.store.receipts import open_receipts
from evalmeta.store.tracking import Synced, open_tracking

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


def remember_deployment(tracking: Tracking, result: DeployResult, components: Sent) -> None:
    """Remembers what a deployment of these components made the same on both sides, and forgets what it deleted.

    What the org dates after the end of the deployment is somebody else's change. A check,
    and a failure that was rolled back, changed nothing.
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
            until = result.completed_date or ""
            tracking.remember(type_name, {name: Synced(sha256, until) for name, sha256 in news.items()})


def _is_news(message: DeployMessage, sent: Mapping[str, bytes], base: Mapping[str, Synced]) -> bool:
    if message.deleted or message.full_name not in sent:
        return False
    known = base.get(message.full_name.casefold())
    return message.changed or message.created or known is None or known.sha256 != sent[message.full_name]
