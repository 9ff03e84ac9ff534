"""Kills a served org with SIGKILL at random moments of deployments, again and again; says what each kill left.

python killed_server.py FOLDER KILLS: a server of its own, on a free port, for every kill. `old` and
`new` mean that all components are of one version, `torn` that they are not; `lost` that a deployment
which the org had accepted was not carried out after the restart.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from evalmeta.client.connection import Connection
from evalmeta.errors import EvalmetaError
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.model.settings import Settings
from evalmeta.org.jobs import run_jobs
from evalmeta.org.organization import Organization
from evalmeta.org.serving.endpoint import Endpoint
from evalmeta.org.serving.server import serve
from evalmeta.package.project import Project, find_project
from evalmeta.protocol.metadata_api import AsyncResult, DeployOptions
from evalmeta.protocol.soap import deploy_call
from evalmeta.store.database import open_database
from org.parts import KIND, definition, package

NAMES = [f"N{number}" for number in range(20)]
VERSIONS = {word: {name: definition(name, subject=word) for name in NAMES} for word in ("old", "new")}
ZIPS = {word: package(files) for word, files in VERSIONS.items()}


def main(folder: str, kills: str) -> None:
    root = Path(folder) / "project"
    root.mkdir()
    (root / "evalmeta.toml").touch()
    project = find_project(root)
    with open_database(project.store) as database:
        org = Organization(database, root, Settings, lambda _: None)
        token = org.new_token(ADMIN, now=time.time(), expires=time.time() + 3600)
    for number in range(int(kills)):
        accepted = kill_while_deploying(project, token, ("old", "new")[number % 2])
        sys.stdout.write(state(project, accepted) + "\n")


def kill_while_deploying(project: Project, token: str, word: str) -> str | None:
    """Start a server, send a deployment, kill the server, and return the job's id if it was accepted before."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        started = lambda server: os.write(writing, server.url.encode())  # noqa: E731
        asyncio.run(serve(project, Endpoint("127.0.0.1", 0), on_start=started))
        os._exit(0)
    url = os.read(reading, 200).decode()
    os.close(reading)
    os.close(writing)
    try:
        return asyncio.run(asyncio.wait_for(_deploy(url, token, word, child), 120))
    finally:
        os.waitpid(child, 0)


async def _deploy(url: str, token: str, word: str, child: int) -> str | None:
    killing = asyncio.create_task(_kill(child, after=random.uniform(0.002, 0.06)))  # noqa: S311 - not for secrets
    accepted = None
    try:
        async with Connection(url=url, token=token, api_version=NEWEST_API_VERSION) as connection:
            receipt = await connection.call_for_one(deploy_call(ZIPS[word], DeployOptions()), AsyncResult)
            accepted = receipt.id
    except EvalmetaError:
        return None
    finally:
        await killing
    return accepted


async def _kill(child: int, *, after: float) -> None:
    await asyncio.sleep(after)
    os.kill(child, signal.SIGKILL)


def state(project: Project, accepted: str | None) -> str:
    with open_database(project.store) as database:
        org = Organization(database, project.root, Settings, lambda _: None)
        before = _version(org)
        run_jobs(org)
        job = org.jobs.get("deploy", accepted) if accepted else None
        if accepted and (job is None or job.status != "Succeeded"):
            return "lost"
        return "torn" if "torn" in {before, _version(org)} else before


def _version(org: Organization) -> str:
    found = {name: org.components.content(KIND.name, name) for name in NAMES}
    if not any(found.values()):
        return "old"
    return next((word for word, files in VERSIONS.items() if files == found), "torn")


if __name__ == "__main__":
    main(*sys.argv[1:])
