"""The same cases and checks as `engine_run.py`, in pydantic-evals; prints the seconds of the run, without imports."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext, MaxDuration


@dataclass
class Answer:
    outcome: str
    actions: list[str]


@dataclass
class SameActions(Evaluator[str, Answer, None]):
    def evaluate(self, ctx: EvaluatorContext[str, Answer, None]) -> bool:
        return ctx.output.actions == ["GetOrder", "GetShipment"]


@dataclass
class Contains(Evaluator[str, Answer, None]):
    def evaluate(self, ctx: EvaluatorContext[str, Answer, None]) -> bool:
        return "on its way" in ctx.output.outcome


async def answer(_: str) -> Answer:
    return Answer("Your order is on its way.", ["GetOrder", "GetShipment"])


async def main(count: int) -> None:
    cases = [Case(name=f"case {number}", inputs="Where is it?") for number in range(count)]
    dataset = Dataset(name="bench", cases=cases, evaluators=[SameActions(), Contains(), MaxDuration(seconds=1.0)])
    begun = time.perf_counter()
    report = await dataset.evaluate(answer, progress=False, max_concurrency=100)
    seconds = time.perf_counter() - begun
    assert len(report.cases) == count
    assert report.averages().assertions == 1.0
    print(seconds)


asyncio.run(main(int(sys.argv[1])))
