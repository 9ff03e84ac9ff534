"""The same cases, answers and checks as `evaluate_run.py`, in pydantic-evals; prints the same numbers.

One evaluator for each check, as its documentation shows; without a progress bar and without Logfire, which make it
slower. With `file`, the dataset is read from a JSON file, its faster format.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from typing_extensions import TypedDict

WARM_UP = 20
FAILING = 10


class Action(TypedDict):
    name: str
    input: dict[str, str]


class Answer(TypedDict):
    outcome: str
    topic: str
    actions: list[Action]


class Expected(TypedDict):
    topic: str
    actions: list[str]
    city: str


# What is expected of an answer is metadata, because `expected_output` has the type of answers.
Context = EvaluatorContext[str, Answer, Expected]


@dataclass
class SameTopic(Evaluator[str, Answer, Expected]):
    def evaluate(self, ctx: Context) -> bool:
        return ctx.output["topic"] == ctx.metadata["topic"]


@dataclass
class SameActions(Evaluator[str, Answer, Expected]):
    def evaluate(self, ctx: Context) -> bool:
        return [action["name"] for action in ctx.output["actions"]] == ctx.metadata["actions"]


@dataclass
class NamesTheCity(Evaluator[str, Answer, Expected]):
    def evaluate(self, ctx: Context) -> bool:
        return ctx.metadata["city"] in ctx.output["outcome"]


EVALUATORS = (SameTopic, SameActions, NamesTheCity)


async def answer(utterance: str) -> Answer:
    if work["seconds"]:
        await asyncio.sleep(work["seconds"])
    return reply(utterance)


def reply(utterance: str) -> Answer:
    actions = [Action(name="Find_Order", input={"question": utterance})]
    return Answer(outcome="Your order was sent to Paris.", topic="Orders", actions=actions)


def make_dataset(count: int) -> Dataset[str, Answer, Expected]:
    cases = [
        Case(
            name=f"case {number}",
            inputs=f"Where is order {number}?",
            metadata=Expected(topic="Orders", actions=["Find_Order"], city="Paris" if number % FAILING else "Rome"),
        )
        for number in range(1, count + 1)
    ]
    return Dataset(name="orders", cases=cases, evaluators=[evaluator() for evaluator in EVALUATORS])


def evaluate(dataset: Dataset[str, Answer, Expected]) -> None:
    agent = answer if work["is_async"] else reply
    concurrency = work["concurrency"] or None  # None is its default: all cases at the same time
    report = dataset.evaluate_sync(agent, progress=False, max_concurrency=concurrency)
    failed = sum(not all(assertion.value for assertion in case.assertions.values()) for case in report.cases)
    assert (len(report.failures), failed) == (0, len(dataset.cases) // FAILING)


def main() -> None:
    evaluate(make_dataset(WARM_UP))
    dataset = make_dataset(work["cases"] * work["definitions"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.json"
        if work["file"]:
            dataset.to_file(path)
        wall, cpu = time.perf_counter(), time.process_time()
        if work["file"]:
            dataset = Dataset[str, Answer, Expected].from_file(path, custom_evaluator_types=EVALUATORS)
        evaluate(dataset)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps([wall, cpu]))


if __name__ == "__main__":
    work = json.loads(sys.argv[1])
    main()
