"""Runs cases with the engine's own classes, every result on disk; prints the seconds.

python engine_run.py CASES SECONDS CONCURRENCY: SECONDS is how long the agent takes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.engine.runner import execute
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunContent
from evalmeta.model.run_options import RunOptions
from evalmeta.store.database import open_database
from evalmeta.store.runs import RunJournal, Runs
from orders import expectations

if TYPE_CHECKING:
    from collections.abc import Iterator


class Agent:
    """An agent that answers every question in the same way; it is its own session."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def open(self, _: Case) -> Agent:
        return self

    async def ask(self, _: str) -> GeneratedData:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return GeneratedData("Your order was sent to Paris.", "Orders", (Action("Find_Order"),))

    async def close(self) -> None:
        pass


class Cases:
    """Cases that are made one by one, as if they came from a file."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Case]:
        return (Case(number, (Turn("Where is it?", expectations(number)),)) for number in range(1, self.count + 1))


async def run(count: int, seconds: float, concurrency: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        database, now = open_database(Path(folder)), time.time()
        runs, evaluation = Runs(database), Evaluation("Bench", "Order_Desk", Cases(count))
        run_id = runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b""), RunOptions(), total=count, now=now)
        runs.claim(run_id, "bench", taken_from=runs.lease(run_id), until=now + 600)
        options, wall, cpu = RunOptions(concurrency=concurrency), time.perf_counter(), time.process_time()
        await execute(evaluation, Agent(seconds), RunJournal(database, run_id, "bench"), options=options)
        taken = time.perf_counter() - wall, time.process_time() - cpu
        assert runs.count(run_id).total() == count
        database.close()
    return taken


def main(count: str, seconds: str, concurrency: str) -> None:
    taken = asyncio.run(run(int(count), float(seconds), int(concurrency)))
    print(json.dumps(taken))


if __name__ == "__main__":
    main(*sys.argv[1:])
