"""Orgs: what is fetched from one, and, for short, what the modules beside this do with one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.api.deployments import deploy
from evalmeta.api.files import shown
from evalmeta.api.org_targets import connect
from evalmeta.api.sync import fetched_from, refuse_changed_files, remember_fetched, tracking_of
from evalmeta.client import metadata as retrieving
from evalmeta.model.component import WILDCARD, Manifest, ManifestTypes
from evalmeta.model.registry import NEWEST_API_VERSION, parse_api_version, types_at
from evalmeta.package.archive import read_zip
from evalmeta.package.convert import target_path
from evalmeta.package.files import put_file, state_of, target_below, write_below, write_file
from evalmeta.package.forceignore import FORCEIGNORE_FILE, read_forceignore
from evalmeta.package.resolver import find_components

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from evalmeta.api.sync import Fetched
    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import RetrieveResult

__all__ = [
    "PackageFile",
    "Retrieval",
    "RetrievedComponent",
    "RetrievedPackage",
    "connect",
    "deploy",
    "retrieve",
    "retrieve_package",
]


@dataclass(frozen=True, slots=True)
class RetrievedComponent:
    """What a retrieve did to one file."""

    state: FileState
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieve: the files, and what the org could not give."""

    id: str
    components: tuple[RetrievedComponent, ...]
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageFile:
    """How a retrieve is kept as a zip.

    Attributes:
        path: the zip's file; its folder is made when it is missing.
        unzip: also unpack it, into a folder beside it that has its name without `.zip`.
        single_package: have no folder `unpackaged` around what is in the zip.
    """

    path: Path
    unzip: bool = False
    single_package: bool = False


@dataclass(frozen=True, slots=True)
class RetrievedPackage:
    """A retrieve that was kept as the zip it came in.

    Attributes:
        file: the zip.
        state: what writing it did to that file.
        folder: where its files were unpacked; None when they were not.
        entries: the names of the files in it.
        messages: what the org could not give.
    """

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
    """Fetches what a manifest selects, or everything, and writes the project's files.

    A component that the project has keeps its place; a file with the same bytes is not
    touched, and one that `.forceignore` names is not written.

    Args:
        connection: the org.
        project: whose files are written.
        manifest: what to fetch; everything when None.
        ignore_conflicts: overwrite files that were changed here.
        wait: seconds, at the most; None waits without end.
        on_progress: is told every answer on the way.

    Raises:
        Conflict: files have changes that were not deployed; nothing was written.
        WaitRanOut: the org is not done yet; nothing was written.
        OrgError: the org cannot be reached or refuses the call.
        ArchiveError: the org sent a zip that cannot be trusted; nothing was written.
        ProjectError: a link leads out of the project, and nothing was written; or a file
            cannot be written, and those before it were.
    """
    wanted, lowered = _wanted(connection, project, manifest)
    result = await retrieving.retrieve(connection, wanted, wait=wait, on_progress=on_progress)
    places = {component.key.casefold(): component.path for component in find_components(project)}
    ignore = read_forceignore(project.root)
    arrived = [_incoming(project, each, places) for each in fetched_from(result)]
    incoming = [each for each in arrived if not ignore.ignores(each[1])]
    ignored = [shown(path) for _, path, _ in arrived if ignore.ignores(path)]
    with tracking_of(project, connection) as tracking:
        if not ignore_conflicts:
            refuse_changed_files(tracking, [(each, path) for each, path, state in incoming if state == "Changed"])
        for _, path, _ in incoming:
            target_below(project.root, path, called="the project")
        written: list[RetrievedComponent] = []
        try:
            for each in incoming:
                written.append(_write(project, *each))  # noqa: PERF401 - those before a failure count
        finally:
            remember_fetched(tracking, [each for each, _, _ in incoming[: len(written)]])
    unwritten = (f"{file} was not written: {FORCEIGNORE_FILE} names it" for file in ignored)
    messages = (*lowered, *(message.problem for message in result.messages), *unwritten)
    return Retrieval(result.id, tuple(written), messages)


async def retrieve_package(
    connection: Connection,
    project: Project,
    manifest: Manifest | None = None,
    *,
    file: PackageFile,
    wait: float | None = limits.RETRIEVE_WAIT_SECONDS,
    on_progress: Callable[[RetrieveResult], None] = lambda _: None,
) -> RetrievedPackage:
    """Fetches what a manifest selects, or everything, and keeps the org's zip byte for byte.

    Nothing of the project is touched or compared.

    Args:
        connection: the org.
        project: whose API version is asked for.
        manifest: what to fetch; everything when None.
        file: where and how it is kept.
        wait: seconds, at the most; None waits without end.
        on_progress: is told every answer on the way.

    Raises:
        OrgError: the org cannot be reached or refuses the call.
        ArchiveError: the org sent a zip that cannot be trusted; nothing was written.
        ProjectError: a file cannot be written, or a link leads out of the folder.
        WaitRanOut: the org is not done yet; nothing was written.
    """
    wanted, lowered = _wanted(connection, project, manifest)
    result = await retrieving.retrieve(
        connection, wanted, single_package=file.single_package, wait=wait, on_progress=on_progress
    )
    entries = read_zip(result.zip_file)
    state = put_file(file.path, result.zip_file)
    folder = file.path.with_suffix("") if file.unzip else None
    if folder is not None:
        _unpack(folder, entries)
    messages = (*lowered, *(message.problem for message in result.messages))
    return RetrievedPackage(result.id, file.path, state, folder, tuple(sorted(entries)), messages)


def _unpack(folder: Path, entries: Mapping[str, bytes]) -> None:
    real = folder.resolve()
    for name, content in entries.items():
        write_below(real, real / name, content, durable=False)


def _wanted(connection: Connection, project: Project, manifest: Manifest | None) -> tuple[Manifest, tuple[str, ...]]:
    wanted = manifest or _everything(project, connection)
    lowered = _lowered(parse_api_version(wanted.version or ""), connection)
    return (replace(wanted, version=str(connection.api_version)) if lowered else wanted), lowered


def _everything(project: Project, connection: Connection) -> Manifest:
    version = project.api_version or NEWEST_API_VERSION
    types = types_at(min(version, connection.api_version))
    return Manifest(tuple(ManifestTypes(row.name, (WILDCARD,)) for row in types), str(version))


def _lowered(asked: ApiVersion | None, connection: Connection) -> tuple[str, ...]:
    if asked is None or asked <= connection.api_version:
        return ()
    return (f"API version {connection.api_version} is used, not {asked}: the org has no newer one",)


def _incoming(project: Project, fetched: Fetched, places: Mapping[str, Path]) -> tuple[Fetched, Path, FileState]:
    place = places.get(f"{fetched.type.name}:{fetched.full_name}".casefold())
    path = place or target_path(project, fetched.type, fetched.full_name)
    return fetched, path, state_of(path, fetched.content)


def _write(project: Project, fetched: Fetched, path: Path, state: FileState) -> RetrievedComponent:
    if state != "Unchanged":
        write_file(project, path, fetched.content)
    return RetrievedComponent(state, fetched.full_name, shown(path))
