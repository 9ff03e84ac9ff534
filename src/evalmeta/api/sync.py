"""Project and org side by side: where each component stands since both had the same.

Conflicts: a deploy or retrieve that would overwrite somebody's change is refused before anything happens.

Remembering what project and org both have after a deploy or a retrieve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.api.files import shown
from evalmeta.client.metadata import list_components, retrieve
from evalmeta.errors import Conflict, Suggestion
from evalmeta.model.component import Manifest, ManifestTypes
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import TYPES
from evalmeta.model.sync import SyncState, hash_of, sync_state
from evalmeta.package.archive import read_zip
from evalmeta.package.convert import parse_safe_file_name
from evalmeta.package.files import read_file
from evalmeta.protocol.json_fields import from_timestamp
from evalmeta.store.tracking import Synced, open_receipts, open_tracking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployMessage, DeployResult, FileProperties, RetrieveResult
    from evalmeta.store.tracking import Receipts, Sent, Tracking


# Stands for the hash of what only the org has: nobody needs its content.
_UNREAD: Final = b""
_IGNORE: Final = "--ignore-conflicts"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A component as an org sent it; `modified` is its lastModifiedDate, empty when the org did not say."""

    type: MetadataType
    full_name: str
    content: bytes
    modified: str


@dataclass(frozen=True, slots=True)
class Sides:
    """A component of a project, an org or both.

    Attributes:
        full_name: as the org spells it, if it has it.
        local: the project's, None when it has none.
        local_hash: the hash of its file.
        listed: the org's, None when it has none.
        org: what the org has now.
        base: what both had last.
    """

    type: MetadataType
    full_name: str
    local: Component | None
    local_hash: bytes | None
    listed: FileProperties | None
    org: Synced | None
    base: Synced | None

    @property
    def state(self) -> SyncState:
        """Tells what happened since both had the same."""
        org, base = (None if each is None else each.sha256 for each in (self.org, self.base))
        return sync_state(local=self.local_hash, org=org, base=base)

    @property
    def news(self) -> Synced | None:
        """Gives what is worth remembering: a newer date of the same content, or that both are the same now."""
        if self.org is None or self.org == self.base:
            return None
        is_known = self.base is not None and self.base.sha256 == self.org.sha256
        return self.org if is_known or self.local_hash == self.org.sha256 else None


async def look(
    connection: Connection,
    tracking: Tracking,
    kind: MetadataType,
    components: Iterable[Component],
    *,
    only: Iterable[str] | None = None,
) -> list[Sides]:
    """Compares the components of a type on both sides, in order of name.

    The org lists them once. Contents are fetched, in one retrieve, only of those whose
    date is not the remembered one; what turns out to be the same is remembered.

    Args:
        connection: the org.
        tracking: what the project remembers of it.
        kind: the type.
        components: the project's components of the type.
        only: full names to look at; by default all that either side has.

    Raises:
        OrgError: the org cannot be reached or refuses a call.
        ProjectError: a file cannot be read.
    """
    local, listed, base = _by_name(components), await _list(connection, kind), tracking.load(kind.name)
    keys = {*local, *listed, *base} if only is None else {name.casefold() for name in only}
    sides = await _compare(connection, kind, keys, local=local, listed=listed, base=base)
    _update(tracking, kind, sides)
    return [each for each in sides if each.local or each.listed]


async def find_newer_in_org(connection: Connection, tracking: Tracking, components: Iterable[Component]) -> list[Sides]:
    """Lists components that were changed in the org since both sides had the same, and still differ.

    One that never was the same on both sides is none of them. The org is asked for one
    list of each type of which something is remembered, and for what that shows as newer.

    Raises:
        OrgError: the org cannot be reached or refuses a call.
        ProjectError: a file cannot be read.
    """
    newer: list[Sides] = []
    ours = list(components)
    for kind in dict.fromkeys(each.type for each in ours):
        local, base = _by_name(each for each in ours if each.type == kind), tracking.load(kind.name)
        if not local.keys() & base.keys():
            continue
        listed = await _list(connection, kind)
        keys = {key for key in local.keys() & base.keys() & listed.keys() if not _is_dated(listed[key], base[key])}
        sides = await _compare(connection, kind, keys, local=local, listed=listed, base=base)
        _update(tracking, kind, sides)
        newer += [each for each in sides if each.state in {SyncState.CHANGED_IN_ORG, SyncState.CONFLICT}]
    return newer


async def fetch(connection: Connection, kind: MetadataType, full_names: Sequence[str]) -> list[Fetched]:
    """Fetches components by name in one retrieve; without names the org is not asked.

    Raises:
        OrgError: the org cannot be reached or refuses the call.
        ArchiveError: the org sent a zip that cannot be trusted.
    """
    if not full_names:
        return []
    wanted = Manifest((ManifestTypes(kind.name, tuple(full_names)),), str(connection.api_version))
    return list(fetched_from(await retrieve(connection, wanted)))


def fetched_from(result: RetrieveResult) -> Iterator[Fetched]:
    """Takes the components out of a retrieve's result, in the order of their names.

    Raises:
        ArchiveError: the zip cannot be trusted.
    """
    dates = {(each.type, each.full_name): each.last_modified_date for each in result.file_properties}
    for entry, content in sorted(read_zip(result.zip_file).items()):
        if found := parse_safe_file_name(entry.rpartition("/")[2]):
            kind, full_name = found
            yield Fetched(kind, full_name, content, dates.get((kind.name, full_name), ""))


async def _list(connection: Connection, kind: MetadataType) -> dict[str, FileProperties]:
    return {each.full_name.casefold(): each for each in await list_components(connection, kind.name)}


async def _compare(
    connection: Connection,
    kind: MetadataType,
    keys: Iterable[str],
    *,
    local: Mapping[str, Component],
    listed: Mapping[str, FileProperties],
    base: Mapping[str, Synced],
) -> list[Sides]:
    ordered = sorted(keys)
    org = {key: Synced(_UNREAD, each.last_modified_date) for key, each in listed.items()}
    org |= {key: base[key] for key in ordered if key in listed and key in base and _is_dated(listed[key], base[key])}
    unread = [key for key in ordered if key in org and not org[key].sha256 and (key in local or key in base)]
    for each in await fetch(connection, kind, [listed[key].full_name for key in unread]):
        key = each.full_name.casefold()
        org[key] = Synced(hash_of(each.content), each.modified or listed[key].last_modified_date)
    return [
        Sides(
            type=kind,
            full_name=listed[key].full_name if key in listed else local[key].full_name if key in local else key,
            local=local.get(key),
            local_hash=hash_of(read_file(local[key].path)) if key in local else None,
            listed=listed.get(key),
            org=org.get(key),
            base=base.get(key),
        )
        for key in ordered
    ]


def _update(tracking: Tracking, kind: MetadataType, sides: Iterable[Sides]) -> None:
    news: dict[str, Synced] = {}
    gone: list[str] = []
    for each in sides:
        if each.news is not None:
            news[each.full_name] = each.news
        if each.base and each.local is None and each.listed is None:
            gone.append(each.full_name)
    if news:
        tracking.remember(kind.name, news)
    if gone:
        tracking.forget(kind.name, gone)


def _by_name(components: Iterable[Component]) -> dict[str, Component]:
    return {each.full_name.casefold(): each for each in components}


def _is_dated(listed: FileProperties, base: Synced) -> bool:
    """Tells whether the org has what it had: a date that is not known is no date."""
    last, known = from_timestamp(listed.last_modified_date), from_timestamp(base.modified)
    return last is not None and known is not None and last <= known


_LAST = "since the last deploy or retrieve"


async def refuse_newer_in_org(connection: Connection, tracking: Tracking, components: Iterable[Component]) -> None:
    """Lets a deployment pass unless it would overwrite what was changed in the org.

    Raises:
        Conflict: with one problem for each such component.
        OrgError: the org cannot be reached or refuses a call.
    """
    newer = await find_newer_in_org(connection, tracking, components)
    problems = [_newer(each, each.local.path) for each in newer if each.local]
    if problems:
        changed_here = any(each.state is SyncState.CONFLICT for each in newer)
        raise Conflict(
            f"{_count(problems)} changed in the org {_LAST}; nothing was sent",
            problems=problems,
            actions=[
                Suggestion("See what differs", "diff"),
                Suggestion("Take the org's", "retrieve", *_forced(is_conflict=changed_here)),
                Suggestion("Overwrite the org's", "deploy", _IGNORE),
            ],
        )


def refuse_changed_files(tracking: Tracking, incoming: Iterable[tuple[Fetched, Path]]) -> None:
    """Lets a retrieve pass unless it would overwrite what was changed in the project.

    Args:
        tracking: what the project remembers of the org.
        incoming: the components that would change a file, each with that file.

    Raises:
        Conflict: with one problem for each such file.
    """
    changed = list(_changed(tracking, incoming))
    if changed:
        problems = [problem for problem, _ in changed]
        changed_there = any(is_conflict for _, is_conflict in changed)
        raise Conflict(
            f"{_count(problems)} changed here and not deployed; nothing was written",
            problems=problems,
            actions=[
                Suggestion("See what differs", "diff"),
                Suggestion("Keep yours", "deploy", *_forced(is_conflict=changed_there)),
                Suggestion("Take the org's", "retrieve", _IGNORE),
            ],
        )


def _changed(tracking: Tracking, incoming: Iterable[tuple[Fetched, Path]]) -> Iterator[tuple[Problem, bool]]:
    """Yields what is wrong with each file, and whether the org's component was changed, too."""
    known = {row.name: tracking.load(row.name) for row in TYPES}
    for fetched, path in incoming:
        base = known[fetched.type.name].get(fetched.full_name.casefold())
        if base is None:
            what = "was never deployed or retrieved from here"
        elif hash_of(read_file(path)) != base.sha256:
            what = f"was changed here {_LAST}"
        else:
            continue
        is_conflict = base is not None and hash_of(fetched.content) != base.sha256
        yield _problem(fetched.type, fetched.full_name, path, f"{what}, and the org's is another"), is_conflict


def _forced(*, is_conflict: bool) -> tuple[str, ...]:
    # When both have changed, the other command would refuse as well.
    return (_IGNORE,) if is_conflict else ()


def _newer(sides: Sides, path: Path) -> Problem:
    where = "here and in the org" if sides.state is SyncState.CONFLICT else "in the org"
    return _problem(sides.type, sides.full_name, path, f"was changed {where} {_LAST}{_by_whom(sides.listed)}")


def _by_whom(listed: FileProperties | None) -> str:
    if listed is None:
        return ""
    when = listed.last_modified_date[:19].replace("T", " ")
    who = listed.last_modified_by_name
    return f" ({when} UTC{', by ' if who else ''}{who})"


def _problem(kind: MetadataType, full_name: str, path: Path, what: str) -> Problem:
    component = f"{kind.name}:{full_name}"
    return Problem("conflict", Severity.ERROR, Location(shown(path)), f"{full_name} {what}", component=component)


def _count(problems: Sequence[Problem]) -> str:
    return "1 component was" if len(problems) == 1 else f"{len(problems):,} components were"


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
        if found := parse_safe_file_name(entry.rpartition("/")[2]):
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
