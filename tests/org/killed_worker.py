"""Kills the worker of a run with SIGKILL at random moments, again and again; says as JSON what that did.

python killed_worker.py FOLDER KILLS SEED: runs follow each other until there were as many kills; each is then
carried to its end. What was committed when the process was killed, or while it still lived, is remembered.
`lost`: results that were there once, and then gone or changed. `repeated`: questions asked although their answers
were committed before. `unreported`: the most questions of one life whose answers were not kept. `torn`: runs that
did not end with every result once.
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
import evalmeta.engine.raters.rules.decisions
import evalmeta.engine.runner
import evalmeta.engine.subjects.python  # noqa: F401
from evalmeta import limits
from evalmeta.model.run import RunOptions, RunStatus
from evalmeta.org.run_worker import main as work
from evalmeta.store.database import open_database
from org.parts import asked, make_project, opened_of, started

if TYPE_CHECKING:
    from evalmeta.package.project import Project

# Commits come often, so that kills come in the middle of them.
limits.JOURNAL_SECONDS = 0.01
CASES, ITERATIONS = 250, 4
AGENT = """\
import asyncio, os, pathlib

file = os.open(pathlib.Path(__file__).parent / "asked.txt", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

async def answer(utterance):
    os.write(file, f"{utterance}\\n".encode())
    await asyncio.sleep(0.002)
    return {"outcome": "Done. " * len(utterance), "topic": "Orders"}
"""


class Watch:
    """What was seen of one run, and what must not have been."""

    def __init__(self, project: Project, run_id: str) -> None:
        self.project, self.run_id = project, run_id
        self.seen: dict[tuple[int, int], bytes] = {}
        self.lost = self.repeated = self.unreported = 0

    def look(self) -> None:
        """Read the committed results, and check that all earlier ones are unchanged."""
        sql = "SELECT iteration, number, body FROM case_result WHERE run_id = ?"
        with open_database(self.project.state_dir) as database:
            now = {(iteration, number): body for iteration, number, body in database.query(sql, (self.run_id,))}
        self.lost += sum(now.get(key) != body for key, body in self.seen.items())
        self.seen = now

    def live(self, chance: random.Random | None) -> bool:
        """Run a worker to its end or kill it at a random moment; return whether it was killed."""
        self.look()
        due = {f"Orders {number}": ITERATIONS for number in range(1, CASES + 1)}
        for _, number in self.seen:
            due[f"Orders {number}"] -= 1
        before, kept = len(asked(self.project)), len(self.seen)
        killed = _live(self.project, self.run_id, self.look, chance)
        self.look()
        again = Counter(asked(self.project)[before:])
        self.repeated += sum(count > due[utterance] for utterance, count in again.items())
        self.unreported = max(self.unreported, again.total() - (len(self.seen) - kept))
        return killed

    def is_whole(self) -> bool:
        with opened_of(self.project) as org:
            is_over = org.runs.get(self.run_id).status is RunStatus.COMPLETED
            is_sound = org.database.query("PRAGMA integrity_check") == [("ok",)]
        every = {(iteration, number) for iteration in range(1, ITERATIONS + 1) for number in range(1, CASES + 1)}
        return is_over and is_sound and self.seen.keys() == every


def _live(project: Project, run_id: str, look: object, chance: random.Random | None) -> bool:
    child = os.fork()
    if child == 0:
        work(str(project.root), run_id)
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
        options = RunOptions(
            iterations=ITERATIONS, concurrency=chance.choice((2, 4, 16)), seed=chance.choice((None, 7))
        )
        watch = Watch(project, started(project, cases=CASES, options=options))
        while left and watch.live(chance):
            left -= 1
            totals["kills"] += 1
        watch.live(None)
        totals.update(runs=1, results=len(watch.seen), asked=len(asked(project)), torn=not watch.is_whole())
        totals.update(lost=watch.lost, repeated=watch.repeated)
        totals["unreported"] = max(totals["unreported"], watch.unreported)
    sys.stdout.write(json.dumps(totals))


if __name__ == "__main__":
    main(*sys.argv[1:])
