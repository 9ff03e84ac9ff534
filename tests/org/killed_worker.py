"""Kills the worker of a suite with SIGKILL at random moments, again and again; says as JSON what that did.

python killed_worker.py FOLDER KILLS SEED: suites follow each other until there were as many kills; each is then
carried to its end. What was committed when the process was killed, or while it still lived, is remembered.
`runs`: the runs of all suites. `lost`: results that were there once, and then gone or changed. `repeated`:
questions asked although their answers were committed before. `unreported`: the most questions of one life whose
answers were not kept. `torn`: runs that did not end with every result once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent))

# What a worker imports late is imported here, once for all that are killed.
import evalmeta.engine.runner
import evalmeta.engine.subjects.objects
import evalmeta.rules_rater.decisions  # noqa: F401
from evalmeta import limits
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunStatus
from evalmeta.model.run_options import RunOptions
from evalmeta.org.run_worker import main as work
from evalmeta.store.database import open_database
from org.parts import asked, definition, deploy, make_project, opened_of, package, start_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.run import Run
    from evalmeta.package.project import Project

# Commits come often, so that kills come in the middle of them.
limits.JOURNAL_SECONDS = 0.01
TESTS, CASES, ITERATIONS = 5, 50, 4
NAMES = [f"Orders{test}" for test in range(TESTS)]
AGENT = """\
import asyncio, os, pathlib

file = os.open(pathlib.Path(__file__).parent / "asked.txt", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

async def answer(utterance):
    os.write(file, f"{utterance}\\n".encode())
    await asyncio.sleep(0.002)
    return {"outcome": "Done. " * len(utterance), "topic": "Orders"}
"""


class Watch:
    """What was seen of the runs of a suite, by run, iteration and number; and what must not have been."""

    def __init__(self, project: Project, runs: Mapping[str, str], concurrency: int) -> None:
        self.project, self.runs, self.concurrency = project, runs, concurrency
        self.seen: dict[tuple[str, int, int], bytes] = {}
        self.lost = self.repeated = self.unreported = self.too_many = 0

    def look(self) -> None:
        """Read the committed results, and check that all earlier ones are unchanged."""
        sql = "SELECT run_id, iteration, number, body FROM case_result"
        with open_database(self.project.store) as database:
            now = {tuple(key): body for *key, body in database.query(sql)}
        self.lost += sum(now.get(key) != body for key, body in self.seen.items())
        self.seen = now

    def live(self, chance: random.Random | None) -> bool:
        """Run a worker to its end or kill it at a random moment; return whether it was killed."""
        self.look()
        due = {f"{name} {number}": ITERATIONS for name in self.runs.values() for number in range(1, CASES + 1)}
        for run_id, _, number in self.seen:
            due[f"{self.runs[run_id]} {number}"] -= 1
        before, kept = len(asked(self.project)), len(self.seen)
        killed = _live(self.project, [*self.runs], self.look, chance)
        self.look()
        again = Counter(asked(self.project)[before:])
        self.repeated += sum(count > due[utterance] for utterance, count in again.items())
        unreported = again.total() - (len(self.seen) - kept)
        self.unreported = max(self.unreported, unreported)
        self.too_many += unreported > self.concurrency
        return killed

    def torn(self) -> int:
        """Return the number of runs that did not end with every result once."""
        with opened_of(self.project) as org:
            assert org.database.query("PRAGMA integrity_check") == [("ok",)]
            return sum(not self._is_whole(org.runs.get(run_id)) for run_id in self.runs)

    def _is_whole(self, run: Run) -> bool:
        every = {(iteration, number) for iteration in range(1, ITERATIONS + 1) for number in range(1, CASES + 1)}
        found = [(iteration, number) for run_id, iteration, number in self.seen if run_id == run.id]
        return run.status is RunStatus.COMPLETED and sorted(found) == sorted(every)


def start_suite(project: Project, options: RunOptions) -> dict[str, str]:
    """Deploy the definitions, start a run of each without a worker, and return their names by run id."""
    with opened_of(project) as org:
        deploy(org, package({name: definition(name, cases=CASES) for name in NAMES}))
        return {start_run(org, EVALUATION_DEFINITION, name, options): name for name in NAMES}


def _live(project: Project, run_ids: Sequence[str], look: object, chance: random.Random | None) -> bool:
    child = os.fork()
    if child == 0:
        work(str(project.root), *run_ids)
        os._exit(0)
    if chance:
        _wait_in(project, child, chance)
        if chance.random() < 0.5:
            look()
            time.sleep(chance.uniform(0, 0.01))
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def _wait_in(project: Project, child: int, chance: random.Random) -> None:
    """Wait for a random moment: during the worker's start, or around a commit after some utterances."""
    if chance.random() < 0.8:
        log = project.root / "asked.txt"
        wanted = (log.stat().st_size if log.exists() else 0) + 10 * chance.randrange(1, 20)
        while not log.exists() or log.stat().st_size < wanted:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return
            time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.015))


def main(folder: str, kills: str, seed: str) -> None:
    chance, left, totals = random.Random(seed), int(kills), Counter()  # noqa: S311 - not for secrets
    while left:
        project = make_project(Path(folder) / f"project{totals['runs']}", agent=AGENT)
        concurrency = chance.choice((2, 4, 16))
        options = RunOptions(iterations=ITERATIONS, concurrency=concurrency, seed=chance.choice((None, 7)))
        watch = Watch(project, start_suite(project, options), concurrency)
        while left and watch.live(chance):
            left -= 1
            totals["kills"] += 1
        watch.live(None)
        totals.update(runs=TESTS, results=len(watch.seen), asked=len(asked(project)), torn=watch.torn())
        totals.update(lost=watch.lost, repeated=watch.repeated, too_many=watch.too_many)
        totals["unreported"] = max(totals["unreported"], watch.unreported)
    sys.stdout.write(json.dumps(totals))


if __name__ == "__main__":
    main(*sys.argv[1:])
