"""Uses a served org for a long time, with several clients at once, and prints a table of what came of it.

python -m soak.run MINUTES [DEPLOYMENTS RUNS]: for that time, and until there were as many deployments and runs.
Exits with 1 if something was lost or wrong. The memory is the resident set of the served org's process: the median
of the tenth after the first fifth, which is the warm-up, and the median of the last tenth.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING

import httpx

from evalmeta.client.connection import Connection
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.org.serving.server_file import read_server
from evalmeta.store.database import open_database
from org.parts import SETTINGS, definition, deploy, make_project, opened_of, package
from soak.clients import CASES, Soak, deployer, killer, reader, retriever, runner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalmeta.package.project import Project

TESTED = ("Orders0", "Orders1", "Orders2")
MOST_GROWTH = 1.10
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """The served org at one moment."""

    megabytes: float
    descriptors: int
    threads: int


@dataclass(frozen=True)
class Outcome:
    """What a soak counted, and what was wrong."""

    seconds: float
    counts: Counter[str]
    before: Sample
    after: Sample
    wrong: list[str]

    @property
    def growth(self) -> float:
        """Return how the memory at the end compares with that after the warm-up."""
        return self.after.megabytes / self.before.megabytes

    def table(self) -> str:
        """Return the figures as a table in Markdown."""
        rows = [("minutes", f"{self.seconds / 60:.1f}"), *((name, f"{n:,}") for name, n in self.counts.items())]
        rows.append(("memory after the warm-up", f"{self.before.megabytes:.1f} MB"))
        rows.append(("memory at the end", f"{self.after.megabytes:.1f} MB ({self.growth - 1:+.1%})"))
        rows.append(("file descriptors", f"{self.before.descriptors}, at the end {self.after.descriptors}"))
        rows.append(("threads", f"{self.before.threads}, at the end {self.after.threads}"))
        rows.append(("lost or wrong", f"{len(self.wrong):,}"))
        lines = [f"| {name} | {value} |" for name, value in rows]
        return "\n".join(["| Soak of a served org | Figure |", "|---|---|", *lines])


def soak(
    folder: Path,
    *,
    seconds: float,
    deployments: int = 0,
    runs: int = 0,
    kill_every: float | None = 15,
    settings: str = SETTINGS,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Serve a project, let the clients use it, and check what is left."""
    project = make_project(folder / "project", settings=settings, seconds=0.02)
    with opened_of(project) as org:
        deploy(org, package({name: definition(name, cases=CASES) for name in TESTED}))
        token = org.new_token(ADMIN, now=time.time(), expires=time.time() + 86_400)
    log = folder / "server.log"
    command = [sys.executable, "-m", "evalmeta.viewer.server", str(project.root), "127.0.0.1", "0"]
    with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, env=os.environ | environment) as process:
        try:
            while (server := read_server(project.state_dir)) is None:
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            begun = time.monotonic()

            def is_wanted(counts: Counter[str]) -> bool:
                is_time_over = time.monotonic() - begun >= seconds
                return not is_time_over or counts["deployments"] < deployments or counts["runs"] < runs

            state, samples = asyncio.run(_use(server.url, token, process.pid, is_wanted, kill_every))
            elapsed = time.monotonic() - begun
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
    wrong = [*state.wrong, *_left_wrong(project, state, log)]
    if code:
        wrong.append(f"the server ended with {code}")
    length = max(1, len(samples) // 10)
    warm = len(samples) // 5
    before, after = _median(samples[warm : warm + length]), _median(samples[-length:])
    return Outcome(elapsed, state.counts, before, after, wrong)


async def _use(
    url: str, token: str, server: int, is_wanted: Callable[[Counter[str]], bool], kill_every: float | None
) -> tuple[Soak, list[Sample]]:
    samples: list[Sample] = []
    async with (
        Connection(url=url, token=token, api_version=NEWEST_API_VERSION, poll_seconds=0.2, is_ours=True) as connection,
        httpx.AsyncClient(base_url=f"{url}/view", follow_redirects=True, timeout=60, trust_env=False) as browser,
    ):
        counts: Counter[str] = Counter()
        state = Soak(connection, token, server, lambda: is_wanted(counts), random.Random(1), counts)  # noqa: S311

        async def sampling(_: int) -> None:
            samples.append(_sample(server))
            await asyncio.sleep(0.5)

        work = [
            *(deployer(state, f"Own{number}") for number in range(2)),
            *(runner(state, name) for name in TESTED),
            *(retriever(state), reader(state, browser), sampling),
            *([killer(state, every=kill_every)] if kill_every else []),
        ]
        await asyncio.gather(*map(state.repeat, work))
    return state, samples


def _left_wrong(project: Project, state: Soak, log: Path) -> list[str]:
    """Return what a look at the database and at the logs finds wrong."""
    wrong: list[str] = []
    with open_database(project.store) as database:
        if (found := database.query("PRAGMA integrity_check")) != [("ok",)]:
            wrong.append(f"integrity_check: {found}")
        kept = dict(database.query("SELECT id, status FROM job WHERE kind = 'deploy' AND place IS NOT NULL"))
        wrong += [f"deployment {each} is lost" for each, status in state.jobs.items() if kept.get(each) != status]
        results = Counter(run_id for (run_id,) in database.query("SELECT run_id FROM case_result"))
        for run_id, status in state.runs.items():
            is_whole = results[run_id] == CASES if status == "COMPLETED" else status == "TERMINATED"
            if not is_whole:
                wrong.append(f"run {run_id} is {status} with {results[run_id]} results")
    for file in [log, *(project.state_dir / "logs").iterdir()]:
        if "Traceback" in (text := file.read_text(errors="replace")):
            wrong.append(f"{file.name}: {text[text.index('Traceback') :][:2000]}")
    return wrong


def _sample(process: int) -> Sample:
    root = Path(f"/proc/{process}")
    pages = int((root / "statm").read_text(encoding="ascii").split()[1])
    descriptors, threads = (len(list((root / each).iterdir())) for each in ("fd", "task"))
    return Sample(pages * PAGE_BYTES / 1e6, descriptors, threads)


def _median(samples: list[Sample]) -> Sample:
    return Sample(
        median(sample.megabytes for sample in samples),
        int(median(sample.descriptors for sample in samples)),
        int(median(sample.threads for sample in samples)),
    )


def main(minutes: str, deployments: str = "0", runs: str = "0") -> int:
    """Print the table, then what was wrong; give the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = soak(Path(folder), seconds=float(minutes) * 60, deployments=int(deployments), runs=int(runs))
    sys.stdout.write("\n".join([outcome.table(), *outcome.wrong[:20], ""]))
    return 1 if outcome.wrong or outcome.growth > MOST_GROWTH else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
