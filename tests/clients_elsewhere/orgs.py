"""Orgs that are served on loopback, and what their agent does."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evalmeta.client.connection import Connection
from evalmeta.client.metadata import deploy
from evalmeta.client.runs import poll_run, start_run
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.model.settings import Settings
from evalmeta.org.jobs import run_jobs
from evalmeta.org.organization import Organization
from evalmeta.protocol.metadata_api import AsyncResult, DeployOptions
from evalmeta.protocol.soap import deploy_call
from evalmeta.store.database import open_database
from org.parts import definition, package
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

__all__ = ["Org", "idle_org", "served_org"]

T = TypeVar("T")

_DEADLINE_SECONDS = 60
_POLL_SECONDS = 0.02

_AGENT = """\
import pathlib, time

FOLDER = pathlib.Path(__file__).parent

def waits(word):
    return not any((FOLDER / each).exists() for each in (word, "closed"))

def answer(utterance):
    if "break" in utterance:
        raise RuntimeError("the desk is closed")
    while "wait" in utterance and waits(utterance.split()[-1]):
        time.sleep(0.02)
    return {
        "outcome": "Your order is on its way.",
        "topic": "Returns" if "return" in utterance else "Orders",
        "actions": [{"name": "FindOrder", "input": {"id": "7"}, "output": "found", "latency_ms": 80}],
    }
"""
_SETTINGS = '[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n'


@dataclass(frozen=True, slots=True)
class Org:
    """A served org.

    Attributes:
        url: where it is, without a slash at the end.
        token: the admin's.
        folder: the project it belongs to.
    """

    url: str
    token: str
    folder: Path

    def have(self, **definitions: bytes) -> None:
        """Deploy definitions."""

        async def send(connection: Connection) -> bool:
            return (await deploy(connection, package(definitions))).success

        assert self._ask(send)

    def start(self, name: str) -> str:
        """Start a run and return its id."""

        async def begin(connection: Connection) -> str:
            return await start_run(connection, name)

        return self._ask(begin)

    def run(self, name: str) -> str:
        """Run a definition to the end and return the run's id."""

        async def finish(connection: Connection) -> str:
            run_id = await start_run(connection, name)
            await poll_run(connection, run_id, wait=_DEADLINE_SECONDS, on_progress=lambda _: None)
            return run_id

        return self._ask(finish)

    def release(self, word: str) -> None:
        """Let the agent answer the utterances that end with this word."""
        (self.folder / word).touch()

    def submit(self, name: str) -> str:
        """Submit a deployment of one definition and return its id."""

        async def send(connection: Connection) -> str:
            call = deploy_call(package({name: definition(name)}), DeployOptions())
            return (await connection.call_for_one(call, AsyncResult)).id

        return self._ask(send)

    def run_jobs(self, *, once: str = "Pending") -> None:
        """Run the jobs of an idle org as soon as one has a status."""
        with open_database(store_in(self.folder / ".evalmeta")) as database:
            org = Organization(database, self.folder, Settings, lambda _: None)
            until = time.monotonic() + _DEADLINE_SECONDS
            while once not in {job.status for job, _ in org.jobs.unfinished()}:
                assert time.monotonic() < until
                time.sleep(_POLL_SECONDS)
            run_jobs(org)

    def _ask(self, do: Callable[[Connection], Awaitable[T]]) -> T:
        async def connect() -> T:
            version = NEWEST_API_VERSION
            async with Connection(
                url=self.url, token=self.token, api_version=version, poll_seconds=_POLL_SECONDS
            ) as connection:
                return await do(connection)

        return asyncio.run(connect())


@contextmanager
def served_org(folder: Path, *options: str) -> Iterator[Org]:
    """Serve an org as users do, with options of `evalmeta org start`."""
    _make_project(folder)
    started = json.loads(_evalmeta(folder, "org", "start", "--detach", "--port", "0", "--json", *options))
    try:
        yield Org(started["result"]["url"], _evalmeta(folder, "org", "token").splitlines()[-1], folder)
    finally:
        (folder / "closed").touch()
        _evalmeta(folder, "org", "stop")


@contextmanager
def idle_org(folder: Path) -> Iterator[Org]:
    """Serve an org whose jobs wait until `run_jobs`."""
    _make_project(folder)
    words = [sys.executable, str(Path(__file__).with_name("idle_server.py")), str(folder)]
    # The program imports modules of the tests.
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            url, token = server.stdout.readline().split()
            yield Org(url, token, folder)
        finally:
            server.terminate()


def _make_project(folder: Path) -> None:
    folder.mkdir()
    (folder / "desk.py").write_text(_AGENT)
    (folder / "evalmeta.toml").write_text(_SETTINGS)


def _evalmeta(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("evalmeta")), *words],
        cwd=folder,
        env={**os.environ, "EVALMETA_HOME": str(folder / ".evalmeta")},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout
