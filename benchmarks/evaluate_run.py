"""Evaluates a Python function with cases as users do, and prints the seconds of the second call.

python evaluate_run.py JSON: the keys of `Work`. The first, small call imports what is needed; the start of a program
has a row of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TypedDict

import evalmeta
from evalmeta.model.evaluation import Case, Evaluation, Turn
from orders import FAILING, expectations, make_tests

WARM_UP = 20


class Work(TypedDict):
    """What to evaluate; the peer's script has the same keys."""

    cases: int  # in each definition
    definitions: int
    concurrency: int
    seconds: float  # that the agent takes
    journal: bool
    is_async: bool
    file: str  # a definition to read; empty: cases are made in memory


async def answer(utterance: str) -> dict[str, object]:
    if work["seconds"]:
        await asyncio.sleep(work["seconds"])
    return reply(utterance)


def reply(utterance: str) -> dict[str, object]:
    actions = [{"name": "Find_Order", "input": {"question": utterance}}]
    return {"outcome": "Your order was sent to Paris.", "topic": "Orders", "actions": actions}


def evaluate(what: list[Evaluation] | Evaluation | Path, folder: Path) -> None:
    agent = answer if work["is_async"] else reply
    options = evalmeta.RunOptions(concurrency=work["concurrency"])
    journal = folder / "journal" if work["journal"] else None
    finished = evalmeta.evaluate(what, agent, options=options, journal=journal, root=folder)
    for summary in [each.summary for each in (finished if isinstance(finished, tuple) else (finished,))]:
        assert (summary.failed, summary.errors) == (summary.total // FAILING, 0)


def make_cases(count: int) -> tuple[Case, ...]:
    return tuple(
        Case(number, (Turn(f"Where is order {number}?", expectations(number)),)) for number in range(1, count + 1)
    )


def make_warm_up(folder: Path) -> Evaluation | Path:
    """Return few cases from the same kind of source as the others, so that the same modules are imported."""
    if not work["file"]:
        return Evaluation("Warm_Up", "Order_Desk", make_cases(WARM_UP))
    evalmeta.write(make_tests("Warm_Up", WARM_UP), folder / "Warm_Up.aiEvaluationDefinition")
    return folder / "Warm_Up.aiEvaluationDefinition"


def make_work() -> list[Evaluation] | Evaluation | Path:
    if work["file"]:
        return Path(work["file"])
    count, cases = work["definitions"], make_cases(work["cases"])
    made = [Evaluation(f"Orders_{number}", "Order_Desk", cases) for number in range(count)]
    return made if count > 1 else made[0]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        evaluate(make_warm_up(Path(folder)), Path(folder))
        what = make_work()
        wall, cpu = time.perf_counter(), time.process_time()
        evaluate(what, Path(folder))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps([wall, cpu]))


if __name__ == "__main__":
    work: Work = json.loads(sys.argv[1])
    main()
