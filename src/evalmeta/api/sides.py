"""Project and org side by side: where each component stands since both had the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.client.retrieve import list_components, retrieve
from evalmeta.model.manifest import Manifest, ManifestTypes
from evalmeta.model.sync import SyncState, hash_of, sync_state
from evalmeta.package.archive import read_zip
from evalmeta.package.convert import full_name_of
from evalmeta.package.files import read_file
from evalmeta.store.tracking import Synced
from evalmeta.wire.timestamps import from_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component
    from evalmeta.model.registry import MetadataType
    from evalmeta.store.tracking import Tracking
    from evalmeta.wire.messages import FileProperties, RetrieveResult

__all__ = ["Fetched", "Sides", "fetch", "fetched_from", "find_newer_in_org", "look"]

# Stands for the hash of what only the org has: nobody needs its content.
_UNREAD: Final = b""


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
        if found := full_name_of(entry.rpartition("/")[2]):
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
