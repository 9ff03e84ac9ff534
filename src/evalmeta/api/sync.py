"""What project and org had in common last: comparing them, refusing conflicts, and remembering what is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.org_targets import EMBEDDED_URL
from evalmeta.client.metadata import list_components, retrieve
from evalmeta.errors import Conflict, EvalmetaError, Suggestion
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import TYPES, Manifest, ManifestTypes, SyncState, hash_of, sync_state
from evalmeta.package.archive import read_zip
from evalmeta.package.components import content_of, contents_in
from evalmeta.package.files import shown
from evalmeta.package.folders import list_files
from evalmeta.protocol.json_fields import from_timestamp
from evalmeta.store.components import Components, Receipts, Sent, Synced, Tracking, open_receipts, open_tracking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import Component, MetadataType
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployMessage, DeployResult, FileProperties, RetrieveResult
    from evalmeta.store.database import Database


# The hash of a component that only the org has: its content is not fetched.
_UNREAD: Final = b""
_IGNORE: Final = "--ignore-conflicts"
_SINCE: Final = "since the last deploy or retrieve"
_SAVED: Final = frozenset({"Succeeded", "SucceededPartial"})


@dataclass(frozen=True, slots=True)
class Fetched:
    """A component as an org sent it; `modified` is its lastModifiedDate, empty if the org did not send it."""

    type: MetadataType
    full_name: str
    content: bytes
    modified: str


@dataclass(frozen=True, slots=True)
class ComparedComponent:
    """A component of a project (`local`, with the hash of its file), an org (`listed`) or both, as the org spells it.

    `org` is the current state in the org, `base` the last common one, and `sent` is what the project sent to the org in
    deployments whose end it does not know.
    """

    type: MetadataType
    full_name: str
    local: Component | None
    local_hash: bytes | None
    listed: FileProperties | None
    org: Synced | None
    base: Synced | None
    sent: AbstractSet[bytes] = frozenset()

    @property
    def state(self) -> SyncState:
        """Return what has changed since the last common state."""
        org, base = (None if synced is None else synced.sha256 for synced in (self.org, self.base))
        return sync_state(local=self.local_hash, org=org, base=org if org in self.sent else base)

    @property
    def new_base(self) -> Synced | None:
        """Return the common state to save, if it is not saved yet: a newer date, or content that is the same now."""
        if self.org is None or self.org == self.base:
            return None
        known = {self.local_hash, *self.sent, None if self.base is None else self.base.sha256}
        return self.org if self.org.sha256 in known else None


class _Known(NamedTuple):
    """What is remembered of a type's components, by their names in lower case: the common states, and what was sent."""

    base: Mapping[str, Synced]
    sent: Mapping[str, AbstractSet[bytes]]


def tracking_of(project: Project, connection: Connection) -> AbstractContextManager[Tracking]:
    """Open what a project remembers of an org's components."""
    return open_tracking(project.store, root=project.root, org_url=connection.url)


def receipts_of(project: Project, connection: Connection) -> AbstractContextManager[Receipts]:
    """Open the jobs that a project started in an org; raises like `tracking_of`."""
    return open_receipts(project.store, root=project.root, org_url=connection.url)


async def compare_components(
    connection: Connection,
    project: Project,
    tracking: Tracking,
    kind: MetadataType,
    components: Iterable[Component],
    *,
    only: Iterable[str] | None = None,
) -> list[ComparedComponent]:
    """Compare the components of a type in the project and in the org, in order of name, or `only` some of them.

    The org lists them once. Only contents whose date is not the remembered one are fetched, in one retrieve. Those that
    are the same on both sides are remembered.
    """
    local, listed, base = _by_name(components), await _list(connection, kind), tracking.load(kind.name)
    keys = {*local, *listed, *base} if only is None else {name.casefold() for name in only}
    known = _Known(base, tracking.sent(kind.name))
    compared = await _compare(connection, project, kind, keys, local=local, listed=listed, known=known)
    _update(tracking, kind, compared)
    return [component for component in compared if component.local or component.listed]


async def find_newer_in_org(
    connection: Connection, project: Project, tracking: Tracking, components: Iterable[Component]
) -> list[ComparedComponent]:
    """Return components that changed in the org since both sides had the same, and still differ.

    Components without a common state are left out. The org is asked for one list of each type
    that has remembered components, and for the components with a newer date.
    """
    newer: list[ComparedComponent] = []
    ours = list(components)
    for kind in dict.fromkeys(component.type for component in ours):
        local, base = _by_name(component for component in ours if component.type == kind), tracking.load(kind.name)
        if not local.keys() & base.keys():
            continue
        listed = await _list(connection, kind)
        keys = {key for key in local.keys() & base.keys() & listed.keys() if not _is_unchanged(listed[key], base[key])}
        known = _Known(base, tracking.sent(kind.name))
        compared = await _compare(connection, project, kind, keys, local=local, listed=listed, known=known)
        _update(tracking, kind, compared)
        newer += [
            component for component in compared if component.state in {SyncState.CHANGED_IN_ORG, SyncState.CONFLICT}
        ]
    return newer


async def fetch(connection: Connection, kind: MetadataType, full_names: Sequence[str]) -> list[Fetched]:
    """Fetch components by name in one retrieve; without names, send no request."""
    if not full_names:
        return []
    wanted = Manifest((ManifestTypes(kind.name, tuple(full_names)),), str(connection.api_version))
    return list(fetched_from(await retrieve(connection, wanted)))


def fetched_from(result: RetrieveResult) -> Iterator[Fetched]:
    """Yield the components in a retrieve's result, in the order of their names."""
    dates = {(member.type, member.full_name): member.last_modified_date for member in result.file_properties}
    for (kind, full_name), content in contents_in(read_zip(result.zip_file)).items():
        yield Fetched(kind, full_name, content, dates.get((kind.name, full_name), ""))


async def _list(connection: Connection, kind: MetadataType) -> dict[str, FileProperties]:
    return {component.full_name.casefold(): component for component in await list_components(connection, kind.name)}


async def _compare(
    connection: Connection,
    project: Project,
    kind: MetadataType,
    keys: Iterable[str],
    *,
    local: Mapping[str, Component],
    listed: Mapping[str, FileProperties],
    known: _Known,
) -> list[ComparedComponent]:
    keys, base = sorted(keys), known.base
    org = {key: Synced(_UNREAD, properties.last_modified_date) for key, properties in listed.items()}
    org |= {key: base[key] for key in keys if key in listed and key in base and _is_unchanged(listed[key], base[key])}
    unread = [key for key in keys if key in org and not org[key].sha256 and (key in local or key in base)]
    for fetched in await fetch(connection, kind, [listed[key].full_name for key in unread]):
        key = fetched.full_name.casefold()
        org[key] = Synced(hash_of(fetched.content), fetched.modified or listed[key].last_modified_date)
    return [
        ComparedComponent(
            type=kind,
            full_name=listed[key].full_name if key in listed else local[key].full_name if key in local else key,
            local=local.get(key),
            local_hash=hash_to_send(project, local[key]) if key in local else None,
            listed=listed.get(key),
            org=org.get(key),
            base=base.get(key),
            sent=known.sent.get(key, frozenset()),
        )
        for key in keys
    ]


def _update(tracking: Tracking, kind: MetadataType, compared: Iterable[ComparedComponent]) -> None:
    common: dict[str, Synced] = {}
    deleted: list[str] = []
    for component in compared:
        if component.new_base is not None:
            common[component.full_name] = component.new_base
        if component.base and component.local is None and component.listed is None:
            deleted.append(component.full_name)
    if common:
        tracking.remember(kind.name, common)
    if deleted:
        tracking.forget(kind.name, deleted)


def _by_name(components: Iterable[Component]) -> dict[str, Component]:
    return {component.full_name.casefold(): component for component in components}


def _is_unchanged(listed: FileProperties, base: Synced) -> bool:
    """Return whether the org still has the remembered content; without dates, it may not."""
    last, known = from_timestamp(listed.last_modified_date), from_timestamp(base.modified)
    return last is not None and known is not None and last <= known


async def refuse_newer_in_org(
    connection: Connection, project: Project, tracking: Tracking, components: Iterable[Component]
) -> None:
    """Refuse a deployment that would overwrite changes in the org."""
    compared = await find_newer_in_org(connection, project, tracking, components)
    newer = [component for component in compared if component.local]
    if newer:
        changed_here = any(component.state is SyncState.CONFLICT for component in newer)
        problems = [_newer_problem(component, component.local.path) for component in newer if component.local]
        raise Conflict(
            f"{_count(problems)} changed in the org {_SINCE}; nothing was sent",
            problems=problems,
            actions=[
                Suggestion("See what differs", "diff"),
                Suggestion("Take the org's", "retrieve", *_forced(is_conflict=changed_here)),
                Suggestion("Overwrite the org's", "deploy", _IGNORE),
            ],
        )


def refuse_changed_files(project: Project, tracking: Tracking, incoming: Iterable[tuple[Fetched, Component]]) -> None:
    """Refuse a retrieve whose components, here with those of the project, would overwrite changes in the project."""
    changed = list(_changed(project, tracking, incoming))
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


def _changed(
    project: Project, tracking: Tracking, incoming: Iterable[tuple[Fetched, Component]]
) -> Iterator[tuple[Problem, bool]]:
    """Yield the problem of each changed file, and whether the org's component was changed as well."""
    known = {row.name: (tracking.load(row.name), tracking.sent(row.name)) for row in TYPES}
    for fetched, local in incoming:
        key, org = fetched.full_name.casefold(), hash_of(fetched.content)
        bases, sent = known[fetched.type.name]
        base = org if org in sent.get(key, ()) else bases[key].sha256 if key in bases else None
        if base is None:
            what = "was never deployed or retrieved from here"
        elif hash_to_send(project, local) != base:
            what = f"was changed here {_SINCE}"
        else:
            continue
        is_conflict = base not in {None, org}
        yield _problem(fetched.type, fetched.full_name, local.path, f"{what}, and the org's is different"), is_conflict


def _forced(*, is_conflict: bool) -> tuple[str, ...]:
    # If both have changed, the other command would refuse as well.
    return (_IGNORE,) if is_conflict else ()


def _newer_problem(compared: ComparedComponent, path: Path) -> Problem:
    where = "here and in the org" if compared.state is SyncState.CONFLICT else "in the org"
    changed_by = ""
    if compared.listed is not None:
        when, who = compared.listed.last_modified_date[:19].replace("T", " "), compared.listed.last_modified_by_name
        changed_by = f" ({when} UTC{', by ' if who else ''}{who})"
    return _problem(compared.type, compared.full_name, path, f"was changed {where} {_SINCE}{changed_by}")


def _problem(kind: MetadataType, full_name: str, path: Path, what: str) -> Problem:
    component = f"{kind.name}:{full_name}"
    return Problem("conflict", Severity.ERROR, Location(shown(path)), f"{full_name} {what}", component=component)


def _count(problems: Sequence[Problem]) -> str:
    return "1 component was" if len(problems) == 1 else f"{len(problems):,} components were"


def find_unchanged(project: Project, connection: Connection, components: Iterable[Component]) -> list[Component]:
    """Return the components whose files are as the org had them when the project last deployed or retrieved them.

    A bundle without the files of its name is not among them: what the org has is a bundle with another name.
    """
    with tracking_of(project, connection) as tracking:
        known = {row.name: tracking.load(row.name) for row in TYPES}
    whole = (component for component in components if not component.type.is_bundle or _is_whole(component))
    bases = ((component, known[component.type.name].get(component.full_name.casefold())) for component in whole)
    return [component for component, base in bases if base and base.sha256 == hash_to_send(project, component)]


def _is_whole(bundle: Component) -> bool:
    return {file.name for file in bundle.files}.issuperset(bundle.type.bundle_files(bundle.full_name))


def states_in_own_org(
    project: Project, database: Database, kind: MetadataType, *, with_files: bool
) -> dict[str, SyncState]:
    """Return how a type's components in the project and in its own org differ, by full name, as `status` says it.

    Without files, or if they cannot be read, each is only in the org.
    """
    org = Components(database).hashes(kind.name)
    if not with_files:
        return dict.fromkeys(org, SyncState.ONLY_IN_ORG)
    try:
        files = [file for file in list_files(project) if file.type == kind]
        local = {file.full_name: _known_hash(project, file) for file in files}
    except (EvalmetaError, OSError):
        local = {}
    with open_tracking(project.store, root=project.root, org_url=EMBEDDED_URL) as tracking:
        base = {name: synced.sha256 for name, synced in tracking.load(kind.name).items()}
        sent = tracking.sent(kind.name)
    here, there = ({name.casefold(): data for name, data in hashes.items()} for hashes in (local, org))
    base |= {key: sha256 for key, sha256 in there.items() if sha256 in sent.get(key, ())}
    names = {name.casefold(): name for name in (*org, *local)}
    return {
        name: sync_state(local=here.get(key), org=there.get(key), base=base.get(key))
        for key, name in sorted(names.items())
    }


def hash_to_send(project: Project, component: Component) -> bytes:
    """Return the hash of what an org would receive of a component; raise ProjectError if it cannot be known."""
    return hash_of(content_of(component, read=project.replacements.content_to_send))


def _known_hash(project: Project, component: Component) -> bytes:
    """Return the hash like `hash_to_send`; that of the files themselves if a value in them is not known."""
    if any(map(project.replacements.problem_of, component.files)):
        return hash_of(content_of(component))
    return hash_to_send(project, component)


def hashes_of(zip_file: bytes) -> Sent:
    """Return the hashes of the components in a zip to deploy, by type and full name."""
    sent: Sent = {}
    for (kind, full_name), content in contents_in(read_zip(zip_file)).items():
        sent.setdefault(kind.name, {})[full_name] = hash_of(content)
    return sent


def remember_fetched(tracking: Tracking, components: Sequence[Fetched]) -> None:
    """Remember components that the project now has as the org sent them."""
    for kind in dict.fromkeys(component.type for component in components):
        ours = (component for component in components if component.type == kind)
        tracking.remember(
            kind.name, {fetched.full_name: Synced(hash_of(fetched.content), fetched.modified) for fetched in ours}
        )


def remember_deployment(tracking: Tracking, result: DeployResult, components: Sent) -> None:
    """Remember what a deployment of these components made the same on both sides, and forget what it deleted.

    Changes that the org dates after the end of the deployment count as made by others. A
    validation, or a failed deployment that was rolled back, changes nothing.
    """
    if result.check_only or result.status not in _SAVED:
        return
    done = [success for success in result.details.component_successes if success.component_type]
    for type_name in dict.fromkeys(message.component_type for message in done):
        ours = [message for message in done if message.component_type == type_name]
        if deleted := [message.full_name for message in ours if message.deleted]:
            tracking.forget(type_name, deleted)
        sent = components.get(type_name, {})
        base = tracking.load(type_name)
        changed = {message.full_name: sent[message.full_name] for message in ours if _is_changed(message, sent, base)}
        if changed:
            until = result.completed_date or ""
            tracking.remember(type_name, {name: Synced(sha256, until) for name, sha256 in changed.items()})


def _is_changed(message: DeployMessage, sent: Mapping[str, bytes], base: Mapping[str, Synced]) -> bool:
    if message.deleted or message.full_name not in sent:
        return False
    known = base.get(message.full_name.casefold())
    return message.changed or message.created or known is None or known.sha256 != sent[message.full_name]
