"""Runs cases against an agent that takes a given time, every result on disk; prints seconds, and peak memory in MB."""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.engine.runner import execute
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunOptions
from evalmeta.store.database import open_database
from evalmeta.store.runs import RunJournal, Runs

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTATIONS = (
    Expectation("action_sequence_match", "['GetOrder', 'GetShipment']"),
    Expectation(
        "string_comparison",
        parameters=(
            Parameter("operator", "contains"),
            Parameter("actual", "$.generatedData.outcome", is_reference=True),
            Parameter("expected", "on its way"),
        ),
    ),
    Expectation("output_latency_milliseconds", "1000"),
)


class Agent:
    """An agent that takes its time and says the same to everybody; it is its own session."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def open(self, _: Case) -> Agent:
        return self

    async def ask(self, _: str) -> GeneratedData:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return GeneratedData("Your order is on its way.", "Orders", (Action("GetOrder"), Action("GetShipment")))

    async def close(self) -> None:
        pass


class Cases:
    """Cases that are made when they are asked for, as if they came out of a file."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Case]:
        return (Case(number, (Turn("Where is it?", EXPECTATIONS),)) for number in range(1, self.count + 1))


async def run(count: int, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        database, now = open_database(Path(folder)), time.time()
        runs, evaluation = Runs(database), Evaluation("Bench", "Order_Desk", Cases(count))
        run_id = runs.start(EVALUATION_DEFINITION, evaluation, b"", RunOptions(), total=count, now=now)
        runs.claim(run_id, "bench", taken_from=runs.lease(run_id), until=now + 600)
        options, begun = RunOptions(concurrency=100), time.perf_counter()
        await execute(evaluation, Agent(seconds), RunJournal(database, run_id, "bench"), options=options)
        taken = time.perf_counter() - begun
        assert runs.count(run_id) == (count, 0)
        database.close()
    return taken


def main(count: str, seconds: str = "0") -> None:
    taken = asyncio.run(run(int(count), float(seconds)))
    print(taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main(*sys.argv[1:])
