"""The clients of a soak: each does the same again and again, and counts what the org promised."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from evalmeta.client import metadata
from evalmeta.client.runs import cancel_run, fetch_results, poll_run, start_run
from evalmeta.errors import EvalmetaError, OrgFault
from evalmeta.model.run_options import RunOptions
from evalmeta.protocol.metadata_api import DeployOptions
from org.parts import definition, everything, package

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from evalmeta.client.connection import Connection

CASES = 5
PAGES = ("", "/runs", "/org", "/trends", "/compare", "/runs/{run}")


@dataclass
class Soak:
    """What the clients have in common: their connection, when they end, and what they were told."""

    connection: Connection
    token: str
    server: int
    is_wanted: Callable[[], bool]
    chance: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)

    async def repeat(self, do: Callable[[int], Awaitable[None]]) -> None:
        """Do something with 0, 1 and so on until nobody wants more; an error is kept as wrong."""
        for number in itertools.count():
            if not self.is_wanted():
                return
            try:
                await do(number)
            except (EvalmetaError, httpx.HTTPError, AssertionError) as error:
                self.wrong.append(f"{do.__name__} {number}: {error!r}")


def deployer(soak: Soak, name: str) -> Callable[[int], Awaitable[None]]:
    """Deploy a definition in changing forms; validate every fifth, and cancel every seventh at once."""

    async def deploying(number: int) -> None:
        zip_file = package({name: definition(name, cases=CASES, extra=f"<description>{number}</description>")})
        options = DeployOptions(check_only=number % 5 == 4)
        job_id = await metadata.submit(soak.connection, zip_file, options=options)
        if number % 7 == 6:
            try:
                await metadata.cancel(soak.connection, job_id)
                soak.counts["deployments canceled"] += 1
            except OrgFault as fault:
                if fault.code != "INVALID_ID_FIELD":
                    raise
        result = await metadata.follow(soak.connection, job_id, wait=120)
        assert result.status in {"Succeeded", "Canceled"}, result
        soak.jobs[job_id] = result.status
        soak.counts["deployments"] += 1

    return deploying


def retriever(soak: Soak) -> Callable[[int], Awaitable[None]]:
    """Retrieve all components."""

    async def retrieving(_: int) -> None:
        result = await metadata.retrieve(soak.connection, everything(), wait=120)
        assert result.success, result
        soak.counts["retrieves"] += 1
        await asyncio.sleep(0.2)

    return retrieving


def runner(soak: Soak, name: str) -> Callable[[int], Awaitable[None]]:
    """Run a definition and fetch the results; cancel every sixth run."""

    async def running(number: int) -> None:
        run_id = await start_run(soak.connection, name, options=RunOptions())
        soak.runs[run_id] = "started"
        soak.counts["runs"] += 1
        if number % 6 == 5:
            await asyncio.sleep(soak.chance.uniform(0, 2))
            try:
                await cancel_run(soak.connection, run_id)
                soak.counts["runs canceled"] += 1
            except EvalmetaError as error:
                if "already finished" not in str(error):
                    raise
        await poll_run(soak.connection, run_id, wait=300)
        run = await fetch_results(soak.connection, run_id)
        soak.runs[run_id] = str(run.status)

    return running


def reader(soak: Soak, browser: httpx.AsyncClient) -> Callable[[int], Awaitable[None]]:
    """Read the pages as a browser does, which logs in again every hundred pages."""

    async def reading(number: int) -> None:
        if number % 100 == 0:
            browser.cookies.clear()
            assert (await browser.post("/login", data={"token": soak.token})).status_code == httpx.codes.OK
        run = next(reversed(soak.runs), None)
        path = PAGES[number % (len(PAGES) if run else len(PAGES) - 1)]
        reply = await browser.get(path.format(run=run))
        assert reply.status_code == httpx.codes.OK, (path, reply.status_code)
        soak.counts["pages"] += 1
        await asyncio.sleep(0.1)

    return reading


def killer(soak: Soak, *, every: float) -> Callable[[int], Awaitable[None]]:
    """Kill a worker of a run with SIGKILL, now and then."""

    async def killing(_: int) -> None:
        await asyncio.sleep(soak.chance.uniform(0.5, 1.5) * every)
        if workers := _children(soak.server):
            os.kill(soak.chance.choice(workers), signal.SIGKILL)
            soak.counts["workers killed"] += 1

    return killing


def _children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    return [int(each) for each in found if b"run_worker" in Path(f"/proc/{each}/cmdline").read_bytes()]
