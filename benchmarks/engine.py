"""Running cases, every result on disk, against a bare asyncio loop that keeps nothing: instant agent, three checks."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from evalmeta.engine.runner import execute
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.generated import Action, GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunOptions
from evalmeta.store.database import open_database
from evalmeta.store.runs import RunJournal, Runs
from timing import Pair, compare

CASES = 5_000
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
ANSWER = GeneratedData("Your order is on its way.", "Orders", (Action("GetOrder"), Action("GetShipment")))


class Instant:
    """An agent that answers at once; it is its own session."""

    async def open(self, _: Case) -> Instant:
        return self

    async def ask(self, _: str) -> GeneratedData:
        return ANSWER

    async def close(self) -> None:
        pass


def measure() -> tuple[str, Pair]:
    cases = tuple(Case(number, (Turn("Where is it?", EXPECTATIONS),)) for number in range(1, CASES + 1))
    evaluation = Evaluation("Bench", "Order_Desk", cases)
    pair = compare(lambda: asyncio.run(_ours(evaluation)), lambda: asyncio.run(_bare(evaluation)))
    return f"engine, {CASES:,} cases, durable ({CASES / pair.ours:,.0f} cases/s) / bare asyncio loop", pair


async def _ours(evaluation: Evaluation) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder))
        now = time.time()
        runs = Runs(database)
        run_id = runs.start(EVALUATION_DEFINITION, evaluation, b"", RunOptions(), total=CASES, now=now)
        runs.claim(run_id, "bench", taken_from=runs.lease(run_id), until=now + 600)
        await execute(evaluation, Instant(), RunJournal(database, run_id, "bench"), options=RunOptions(concurrency=100))
        assert runs.count(run_id) == (CASES, 0)
        database.close()


async def _bare(evaluation: Evaluation) -> None:
    agent = Instant()
    limit = asyncio.Semaphore(100)

    async def one(case: Case) -> bool:
        async with limit:
            answer = await agent.ask(case.turns[0].utterance)
            names = [action.name for action in answer.actions]
            return names == ["GetOrder", "GetShipment"] and "on its way" in answer.outcome

    assert all(await asyncio.gather(*(one(case) for case in evaluation.cases)))
