"""Orgs, projects and definitions made for a test."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import httpx

from evalmeta.client.connection import Connection
from evalmeta.client.runs import fetch_results, poll_run
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION, TYPES, Manifest, ManifestTypes
from evalmeta.model.run_options import RunOptions
from evalmeta.model.settings import Settings
from evalmeta.org.app import create_app, embedded_org
from evalmeta.org.jobs import JobQueue, run_jobs, submit_deployment
from evalmeta.org.organization import Organization
from evalmeta.org.runs import prepare_run, start_prepared
from evalmeta.package.archive import build_zip
from evalmeta.package.project import find_project
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.store.database import open_database
from evalmeta.xmlio.definitions import write_manifest
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from evalmeta.model.login import User
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project

__all__ = [
    "KIND",
    "URL",
    "ask",
    "asked",
    "definition",
    "deploy",
    "embedded",
    "everything",
    "follow_up",
    "make_project",
    "numbers",
    "opened",
    "opened_of",
    "opened_with",
    "package",
    "snapshot",
    "start_run",
    "started",
    "xml_of",
]

T = TypeVar("T")

KIND = TYPES[0]
URL = "http://org.invalid"


def xml_of(name: str) -> str:
    """Return a definition's file name in a zip."""
    return f"{KIND.directory}/{name}.{KIND.suffix}"


def definition(name: str, *, cases: int = 1, subject: str = "Desk", extra: str = "") -> bytes:
    """Return a definition whose utterances are `NAME 1`, `NAME 2` and so on; `extra` is in line 7."""
    numbers = "\n".join(
        f"<testCase><expectation><name>topic_assertion</name><expectedValue>Orders</expectedValue></expectation>"
        f"<inputs><utterance>{name} {number}</utterance></inputs><number>{number}</number></testCase>"
        for number in range(1, cases + 1)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">\n'
        f"<name>{name}</name>\n<subjectName>{subject}</subjectName>\n<subjectType>AGENT</subjectType>\n\n"
        f"  {extra}\n{numbers}\n</AiEvaluationDefinition>\n"
    ).encode()


def everything(*members: str) -> Manifest:
    """Return a manifest of these members, or of all."""
    return Manifest((ManifestTypes(KIND.name, members or ("*",)),), "64.0")


def package(files: dict[str, bytes], *, manifest: bytes | None = None) -> bytes:
    """Return a zip of definitions by name, by default with a manifest that names all of them."""
    manifest = write_manifest(everything()) if manifest is None else manifest
    return build_zip([("package.xml", manifest), *((xml_of(name), content) for name, content in files.items())])


@contextmanager
def opened(folder: Path, *, launch: Callable[[str], None] = lambda _: None) -> Iterator[Organization]:
    """Open a new org in a folder."""
    with _opened(folder / "state", folder, Settings, launch) as org:
        yield org


@contextmanager
def opened_with(folder: Path, settings: Callable[[], Settings], *, is_served: bool = False) -> Iterator[Organization]:
    """Open a new org in a folder with these settings, as it is when it is served."""
    with _opened(folder / "state", folder, settings, lambda _: None) as org:
        yield replace(org, is_served=is_served)


@contextmanager
def _opened(
    state_dir: Path, root: Path, settings: Callable[[], Settings], launch: Callable[[str], None]
) -> Iterator[Organization]:
    database, queue = open_database(store_in(state_dir)), JobQueue()
    queue.org = Organization(database, root, settings, launch, queue.wake)
    try:
        yield queue.org
    finally:
        queue.close()
        database.close()


@asynccontextmanager
async def connected(org: Organization, *, token: str | None = None) -> AsyncIterator[Connection]:
    transport = httpx.ASGITransport(app=create_app(org))
    token = org.token if token is None else token
    async with Connection(
        url=URL, token=token, api_version=NEWEST_API_VERSION, transport=transport, poll_seconds=0.01, is_ours=True
    ) as connection:
        yield connection


def ask(org: Organization, do: Callable[[Connection], Awaitable[T]], *, token: str | None = None) -> T:
    """Connect to an org over ASGI, use the connection, and return the result."""

    async def connect() -> T:
        async with connected(org, token=token) as connection:
            return await do(connection)

    return asyncio.run(connect())


AGENT = """\
import os, pathlib, time

ASKED = pathlib.Path(__file__).parent / "asked.txt"

def answer(utterance):
    file = os.open(ASKED, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(file, f"{utterance}\\n".encode())
    os.close(file)
    time.sleep(SECONDS)
    return {"outcome": "Done.", "topic": "Orders"}
"""
SETTINGS = '[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n'


def make_project(root: Path, *, agent: str = AGENT, settings: str = SETTINGS, seconds: float = 0) -> Project:
    """Create a project whose agent Desk records every utterance and answers after some seconds."""
    root.mkdir()
    (root / "desk.py").write_text(agent.replace("SECONDS", str(seconds)))
    (root / "evalmeta.toml").write_text(settings)
    return find_project(root)


def asked(project: Project) -> list[str]:
    """Return the utterances that the agent received, in order."""
    file = project.root / "asked.txt"
    return file.read_text().splitlines() if file.exists() else []


@contextmanager
def opened_of(project: Project) -> Iterator[Organization]:
    """Open a project's org without a worker."""
    with _opened(project.state_dir, project.root, lambda: project.settings, lambda _: None) as org:
        yield org


def deploy(org: Organization, zip_file: bytes, options: DeployOptions = DeployOptions()) -> str:  # noqa: B008
    """Deploy a zip, wait for the outcome, and return the job's id."""
    job_id = submit_deployment(replace(org, wake=lambda: None), ADMIN, zip_file, options)
    run_jobs(org)
    return job_id


def start_run(org: Organization, kind: MetadataType, name: str, options: RunOptions, *, user: User = ADMIN) -> str:
    """Create a run of a deployed definition, launch a worker, and return its id."""
    return start_prepared(org, prepare_run(org, kind, name, options), user=user)


def started(project: Project, *, cases: int, options: RunOptions = RunOptions()) -> str:  # noqa: B008 - immutable
    """Deploy a definition Orders, start a run of it without a worker, and return its id."""
    with opened_of(project) as org:
        deploy(org, package({"Orders": definition("Orders", cases=cases)}))
        return start_run(org, EVALUATION_DEFINITION, "Orders", options)


def embedded(project: Project, do: Callable[[Connection], Awaitable[T]], *, detached: bool = False) -> T:
    """Open a project's embedded org, use it, and return the result."""

    async def connect() -> T:
        async with embedded_org(project, detached=detached) as (app, token):
            transport = httpx.ASGITransport(app=app)
            async with Connection(
                url=URL,
                token=token,
                api_version=NEWEST_API_VERSION,
                transport=transport,
                poll_seconds=0.01,
                is_ours=True,
            ) as connection:
                return await do(connection)

    return asyncio.run(connect())


async def follow_up(connection: Connection, run_id: str) -> Run:
    """Wait for a run and return it with its results."""
    await poll_run(connection, run_id, wait=120, on_progress=lambda _: None)
    return await fetch_results(connection, run_id)


def numbers(run: Run) -> list[tuple[int, int]]:
    """Return the iteration and number of every case of a run."""
    return [(case.iteration, case.number) for case in run.cases]


def snapshot(org: Organization) -> str:
    """Return a hash of everything that is deployed."""
    rows = org.database.query("SELECT * FROM component ORDER BY type, full_name")
    return hashlib.sha256(repr(rows).encode()).hexdigest()
