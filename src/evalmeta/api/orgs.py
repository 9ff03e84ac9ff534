"""Orgs: connecting to one, deploying to it, retrieving from it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from evalmeta.api.conflicts import refuse_changed_files, refuse_newer_in_org
from evalmeta.api.metadata import check_components, shown
from evalmeta.api.sides import fetched_from
from evalmeta.api.tracking import remember_deployment, remember_fetched, tracking_of
from evalmeta.client import deploy as deploying
from evalmeta.client import retrieve as retrieving
from evalmeta.client.connection import Connection
from evalmeta.errors import DeployFailed
from evalmeta.model.manifest import WILDCARD, Manifest, ManifestTypes
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import NEWEST_API_VERSION, TYPES
from evalmeta.org.embedded import embedded_org
from evalmeta.package.archive import build_zip
from evalmeta.package.contents import near_limits, package_entries
from evalmeta.package.convert import target_path
from evalmeta.package.files import state_of, target_below, write_file
from evalmeta.package.forceignore import FORCEIGNORE_FILE, read_forceignore
from evalmeta.package.resolver import find_components

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from evalmeta.api.sides import Fetched
    from evalmeta.model.component import ComponentSet
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project
    from evalmeta.wire.messages import DeployMessage, DeployResult

__all__ = ["DeployedComponent", "Deployment", "Retrieval", "RetrievedComponent", "connect", "deploy", "retrieve"]

_EMBEDDED_URL: Final = "http://embedded.org.invalid"
_EMBEDDED_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class DeployedComponent:
    """What a deployment did to one component."""

    state: FileState
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment that succeeded: the components, warnings about files, and remarks on the whole."""

    id: str
    components: tuple[DeployedComponent, ...]
    warnings: tuple[Problem, ...]
    messages: tuple[str, ...] = ()


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


async def deploy(
    connection: Connection, project: Project, components: ComponentSet, *, ignore_conflicts: bool = False
) -> Deployment:
    """Checks components, sends them, and waits for the outcome: all of them are deployed, or none.

    Args:
        connection: the org.
        project: whose components they are.
        components: what to deploy.
        ignore_conflicts: overwrite what was changed in the org.

    Raises:
        InvalidMetadata: the check found errors; nothing was sent.
        Conflict: the org has changes since both sides had the same; nothing was sent.
        DeployFailed: the org refused something; nothing was changed.
        OrgError: the org cannot be reached or refuses the call.
    """
    warnings = check_components(project, components)
    entries = list(package_entries(components))
    zip_file = build_zip(entries)
    with tracking_of(project, connection) as tracking:
        if not ignore_conflicts:
            await refuse_newer_in_org(connection, tracking, components.components)
        result = await deploying.deploy(connection, zip_file)
        await remember_deployment(connection, tracking, result, zip_file)
    files = {component.full_name: shown(component.path) for component in components.components}
    if not result.success:
        raise _failure(result, files)
    deployed = tuple(
        DeployedComponent(_state(message), message.full_name, files.get(message.full_name, message.file_name))
        for message in result.details.component_successes
        if message.component_type
    )
    messages = near_limits(zipped=len(zip_file), entries=len(entries))
    return Deployment(result.id, deployed, warnings, messages)


async def retrieve(
    connection: Connection, project: Project, manifest: Manifest | None = None, *, ignore_conflicts: bool = False
) -> Retrieval:
    """Fetches what a manifest selects, or everything, and writes the project's files.

    A component that the project has keeps its place; a file with the same bytes is not
    touched, and one that `.forceignore` names is not written.

    Args:
        connection: the org.
        project: whose files are written.
        manifest: what to fetch; everything when None.
        ignore_conflicts: overwrite files that were changed here.

    Raises:
        Conflict: files have changes that were not deployed; nothing was written.
        OrgError: the org cannot be reached or refuses the call.
        ArchiveError: the org sent a zip that cannot be trusted; nothing was written.
        ProjectError: a link leads out of the project, and nothing was written; or a file
            cannot be written, and those before it were.
    """
    wanted = manifest or _everything(project)
    result = await retrieving.retrieve(connection, wanted)
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
    return Retrieval(result.id, tuple(written), (*(message.problem for message in result.messages), *unwritten))


def _everything(project: Project) -> Manifest:
    version = project.api_version or NEWEST_API_VERSION
    return Manifest(tuple(ManifestTypes(row.name, (WILDCARD,)) for row in TYPES), str(version))


def _state(message: DeployMessage) -> FileState:
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


def _incoming(project: Project, fetched: Fetched, places: Mapping[str, Path]) -> tuple[Fetched, Path, FileState]:
    place = places.get(f"{fetched.type.name}:{fetched.full_name}".casefold())
    path = place or target_path(project, fetched.type, fetched.full_name)
    return fetched, path, state_of(path, fetched.content)


def _write(project: Project, fetched: Fetched, path: Path, state: FileState) -> RetrievedComponent:
    if state != "Unchanged":
        write_file(project, path, fetched.content)
    return RetrievedComponent(state, fetched.full_name, shown(path))
