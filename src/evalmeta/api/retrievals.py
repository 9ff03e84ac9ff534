"""Retrieving components from orgs, as files of a project or as a zip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.api.packages import lowered_version, manifest_of_everything, refuse_missing
from evalmeta.api.sync import Fetched, fetched_from, refuse_changed_files, remember_fetched, tracking_of
from evalmeta.client import metadata
from evalmeta.model.registry import Manifest, parse_api_version
from evalmeta.package.archive import read_zip
from evalmeta.package.components import files_at
from evalmeta.package.files import (
    ComponentFile,
    parse_file_name,
    put_file,
    put_folder,
    read_file,
    shown,
    state_of,
    sweep_unfinished,
    target_below,
    write_files,
)
from evalmeta.package.folders import BUNDLE_FILES, find_components, target_path
from evalmeta.package.forceignore import FORCEIGNORE_FILE, read_forceignore
from evalmeta.package.project import Project, version_in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import Component
    from evalmeta.package.files import FileState
    from evalmeta.package.forceignore import ForceIgnore
    from evalmeta.protocol.metadata_api import RetrieveResult


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The files that a retrieve wrote, and the org's messages."""

    id: str
    components: tuple[ComponentFile, ...]
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageFile:
    """The zip in which to save a retrieve; `single_package` leaves out the folder `unpackaged` in it.

    `unzip` also unpacks it into a folder next to it, with its name without `.zip`.
    """

    path: Path
    unzip: bool = False
    single_package: bool = False


@dataclass(frozen=True, slots=True)
class RetrievedPackage:
    """A retrieve that was saved as a zip, with the names of the files in it, and the folder it was unpacked to."""

    id: str
    file: Path
    state: FileState
    folder: Path | None
    entries: tuple[str, ...]
    messages: tuple[str, ...]


async def retrieve(
    connection: Connection,
    project: Project,
    manifest: Manifest | None = None,
    *,
    ignore_conflicts: bool = False,
    wait: float | None = limits.RETRIEVE_WAIT_SECONDS,
    on_progress: Callable[[RetrieveResult], None] = lambda _: None,
) -> Retrieval:
    """Retrieve what a manifest selects, or everything, and write the project's files.

    A component of the project keeps its path. Files with the same bytes are not touched,
    and files that `.forceignore` matches are not written.

    Args:
        connection: the org.
        project: where the files are written.
        manifest: what to retrieve; everything if None.
        ignore_conflicts: overwrite files that were changed in the project.
        wait: the time limit in seconds; None waits without a limit.
        on_progress: receives every reply of the org.

    Raises:
        Conflict: files have changes that were not deployed; nothing was written.
        NotFound: the org has none of the components that the manifest names; nothing was written.
        WaitRanOut: the org is not done; nothing was written.
        OrgError: the org cannot be reached or refuses the call.
        ArchiveError: the org sent a zip that is not safe to read; nothing was written.
        ProjectError: a link leads out of the project, and nothing was written; or a file
            cannot be written, and earlier ones were.
    """
    wanted, lowered = _wanted(connection, project, manifest)
    result = await metadata.retrieve(connection, wanted, wait=wait, on_progress=on_progress)
    await _refuse_nothing(connection, wanted, result)
    # Git keeps no empty folders, so a new project may not have its package directories yet.
    there = tuple(directory for directory in project.package_directories if directory.exists())
    components = find_components(replace(project, package_directories=there))
    local = {component.key.casefold(): component for component in components}
    ignore = read_forceignore(project.root)
    received = [_incoming(project, fetched, local, ignore) for fetched in fetched_from(result)]
    incoming = [arrived for arrived in received if arrived.files]
    ignored = [shown(path) for arrived in received for path in arrived.ignored]
    with tracking_of(project, connection) as tracking:
        if not ignore_conflicts:
            overwritten = [
                (arrived.fetched, arrived.local) for arrived in incoming if arrived.changed and arrived.local
            ]
            refuse_changed_files(project, tracking, overwritten)
        for path in (path for arrived in incoming for path in arrived.files):
            target_below(project.root, path, called="the project")
        for folder in {path.parent for arrived in incoming for path in arrived.files}:
            sweep_unfinished(folder, lambda name: parse_file_name(name) is not None or name.endswith(BUNDLE_FILES))
        changed = [(path, arrived.files[path]) for arrived in incoming for path in arrived.changed]
        lost = [message for path, _ in changed for message in _lost(project, path)]
        written: set[Path] = set()
        try:
            written.update(write_files(project.root, changed))
        finally:
            remember_fetched(tracking, [arrived.fetched for arrived in incoming if written.issuperset(arrived.changed)])
    unwritten = (f"{file} was not written: {FORCEIGNORE_FILE} matches it" for file in ignored)
    messages = (*lowered, *(message.problem for message in result.messages), *unwritten, *lost)
    files = tuple(ComponentFile(arrived.state, arrived.fetched.full_name, shown(arrived.path)) for arrived in incoming)
    return Retrieval(result.id, files, messages)


async def retrieve_package(
    connection: Connection,
    project: Project,
    manifest: Manifest | None = None,
    *,
    file: PackageFile,
    wait: float | None = limits.RETRIEVE_WAIT_SECONDS,
    on_progress: Callable[[RetrieveResult], None] = lambda _: None,
) -> RetrievedPackage:
    """Retrieve what a manifest selects, or everything, and save the org's zip byte for byte; files are not compared."""
    wanted, lowered = _wanted(connection, project, manifest)
    result = await metadata.retrieve(
        connection, wanted, single_package=file.single_package, wait=wait, on_progress=on_progress
    )
    await _refuse_nothing(connection, wanted, result)
    entries = read_zip(result.zip_file)
    state = put_file(file.path, result.zip_file)
    folder = file.path.with_suffix("") if file.unzip else None
    if folder is not None:
        put_folder(folder, entries)
    messages = (*lowered, *(message.problem for message in result.messages))
    return RetrievedPackage(result.id, file.path, state, folder, tuple(sorted(entries)), messages)


def _wanted(connection: Connection, project: Project, manifest: Manifest | None) -> tuple[Manifest, tuple[str, ...]]:
    """Return what to retrieve, in a version that the org has, and a message if that is older than the wanted one."""
    wanted = manifest or manifest_of_everything(connection, version_in_force(project))
    lowered = lowered_version(parse_api_version(wanted.version or ""), connection.api_version)
    return (replace(wanted, version=str(connection.api_version)) if lowered else wanted), lowered


async def _refuse_nothing(connection: Connection, wanted: Manifest, result: RetrieveResult) -> None:
    """Raise NotFound if the org sent no component, because it has none of those that were named."""
    if result.messages and not any(True for _ in fetched_from(result)):
        await refuse_missing(connection, wanted)


class _Incoming(NamedTuple):
    """A component that an org sent, and what it does to the component of the project with its path.

    `files` are those to have in the project, without those that `.forceignore` ignores, and `changed` those to write.
    """

    fetched: Fetched
    local: Component | None
    path: Path
    files: Mapping[Path, bytes]
    changed: Sequence[Path]
    ignored: Sequence[Path]

    @property
    def state(self) -> FileState:
        """Return what is done to the component."""
        if not self.changed:
            return "Unchanged"
        return "Changed" if self.local else "Created"


def _incoming(project: Project, fetched: Fetched, local: Mapping[str, Component], ignore: ForceIgnore) -> _Incoming:
    ours = local.get(f"{fetched.type.name}:{fetched.full_name}".casefold())
    path = ours.path if ours else target_path(project, fetched.type, fetched.full_name)
    # Files of the project keep the case of their names.
    known = {str(file).casefold(): file for file in (ours.files if ours else ())}
    arrived = files_at(path, fetched.type, fetched.content)
    files = {known.get(str(file).casefold(), file): content for file, content in arrived.items()}
    ignored = [file for file in files if ignore.ignores(file)]
    wanted = {file: content for file, content in files.items() if file not in ignored}
    changed = [file for file, content in wanted.items() if _differs(project, file, content)]
    return _Incoming(fetched, ours, path, wanted, changed, ignored)


def _differs(project: Project, path: Path, content: bytes) -> bool:
    state = state_of(path, content)
    if state == "Changed" and project.replacements.rows_for(path):
        # The placeholders stay in a file from which the org has exactly this content.
        return project.replacements.content_to_send(path) != content
    return state != "Unchanged"


def _lost(project: Project, path: Path) -> Iterator[str]:
    """Yield a message if a retrieve overwrites placeholders in a file."""
    if not path.exists():
        return
    if placeholders := project.replacements.placeholders_in(path, read_file(path)):
        texts = ", ".join(map(repr, placeholders))
        yield f"{shown(path)} had {texts}, which the org's text overwrote: write it again before you commit the file"
