"""Orgs: connecting to one, deploying to it, retrieving from it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import httpx

from evalmeta.api.metadata import check_components, shown
from evalmeta.client import deploy as deploying
from evalmeta.client import retrieve as retrieving
from evalmeta.client.connection import Connection
from evalmeta.errors import DeployFailed
from evalmeta.model.manifest import WILDCARD, Manifest, ManifestTypes
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import NEWEST_API_VERSION, TYPES
from evalmeta.org.embedded import embedded_org
from evalmeta.package.archive import build_zip, read_zip
from evalmeta.package.convert import entry_name, full_name_of, target_path
from evalmeta.package.files import write_file
from evalmeta.package.resolver import find_components
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from evalmeta.model.component import ComponentSet
    from evalmeta.package.project import Project
    from evalmeta.wire.messages import DeployMessage, DeployResult

__all__ = ["DeployedComponent", "Deployment", "Retrieval", "RetrievedComponent", "connect", "deploy", "retrieve"]

_EMBEDDED_URL: Final = "http://embedded.org.invalid"
_EMBEDDED_POLL_SECONDS: Final = 0.05

State = Literal["Created", "Changed", "Unchanged"]


@dataclass(frozen=True, slots=True)
class DeployedComponent:
    """What a deployment did to one component."""

    state: State
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment that succeeded."""

    id: str
    components: tuple[DeployedComponent, ...]
    warnings: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class RetrievedComponent:
    """What a retrieve did to one file."""

    state: State
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieve: the files, and what the org could not give."""

    id: str
    components: tuple[RetrievedComponent, ...]
    messages: tuple[str, ...]


@asynccontextmanager
async def connect(project: Project, *, detached: bool = False) -> AsyncIterator[Connection]:
    """Opens the project's embedded org; `detached` lets its runs go on after this process.

    Raises:
        StoreError: the org's database cannot be used.
    """
    async with embedded_org(project, detached=detached) as (app, token):
        connection = Connection(
            url=_EMBEDDED_URL,
            token=token,
            api_version=NEWEST_API_VERSION,
            transport=httpx.ASGITransport(app=app),
            poll_seconds=_EMBEDDED_POLL_SECONDS,
        )
        async with connection:
            yield connection


async def deploy(connection: Connection, project: Project, components: ComponentSet) -> Deployment:
    """Checks components, sends them, and waits for the outcome: all of them are deployed, or none.

    Raises:
        InvalidMetadata: the check found errors; nothing was sent.
        DeployFailed: the org refused something; nothing was changed.
        OrgError: the org cannot be reached or refuses the call.
    """
    warnings = check_components(project, components)
    result = await deploying.deploy(connection, _zip_of(components))
    files = {component.full_name: shown(component.path) for component in components.components}
    if not result.success:
        raise _failure(result, files)
    deployed = tuple(
        DeployedComponent(_state(message), message.full_name, files.get(message.full_name, message.file_name))
        for message in result.details.component_successes
        if message.component_type
    )
    return Deployment(result.id, deployed, warnings)


async def retrieve(connection: Connection, project: Project, manifest: Manifest | None = None) -> Retrieval:
    """Fetches what a manifest selects, or everything, and writes the project's files.

    A component that the project has keeps its place; a file with the same bytes is not touched.

    Raises:
        OrgError: the org cannot be reached or refuses the call.
        ArchiveError: the org sent a zip that cannot be trusted; nothing was written.
        ProjectError: a file cannot be written.
    """
    wanted = manifest or _everything(project)
    result = await retrieving.retrieve(connection, wanted)
    entries = read_zip(result.zip_file)
    places = {component.key: component.path for component in find_components(project)}
    written = tuple(_write_entries(project, entries, places))
    return Retrieval(result.id, written, tuple(message.problem for message in result.messages))


def _zip_of(components: ComponentSet) -> bytes:
    members: dict[str, list[str]] = {}
    for component in components.components:
        members.setdefault(component.type.name, []).append(component.full_name)
    types = tuple(ManifestTypes(name, tuple(names)) for name, names in members.items())
    manifest = write_manifest(Manifest(types, str(components.api_version)))
    files: Iterator[tuple[str, bytes | Path]] = ((entry_name(each), each.path) for each in components.components)
    return build_zip([("package.xml", manifest), *files])


def _everything(project: Project) -> Manifest:
    version = project.api_version or NEWEST_API_VERSION
    return Manifest(tuple(ManifestTypes(row.name, (WILDCARD,)) for row in TYPES), str(version))


def _state(message: DeployMessage) -> State:
    if message.created:
        return "Created"
    return "Changed" if message.changed else "Unchanged"


def _failure(result: DeployResult, files: dict[str, str]) -> DeployFailed:
    problems = [
        Problem(
            "refused",
            Severity.ERROR,
            Location(
                files.get(failure.full_name, failure.file_name), failure.line_number or 0, failure.column_number or 0
            ),
            failure.problem or "the org gave no reason",
            component=f"{failure.component_type}:{failure.full_name}" if failure.component_type else "",
        )
        for failure in result.details.component_failures
    ]
    reason = f": {result.error_message}" if result.error_message else ""
    return DeployFailed(f"deployment {result.id} failed{reason}; the org was not changed", problems=problems)


def _write_entries(
    project: Project, entries: dict[str, bytes], places: dict[str, Path]
) -> Iterator[RetrievedComponent]:
    for entry, content in sorted(entries.items()):
        found = full_name_of(entry.rpartition("/")[2])
        if found is None:
            continue
        kind, full_name = found
        place = places.get(f"{kind.name}:{full_name}")
        path = place or target_path(project, kind, full_name)
        before = path.read_bytes() if path.is_file() else None
        if before != content:
            write_file(project, path, content)
        state: State = "Created" if before is None else "Unchanged" if before == content else "Changed"
        yield RetrievedComponent(state, full_name, shown(path))
