"""Asks many cases in this process or on a cluster of Ray, and writes how that went to told.json.

python remote_run.py JSON FOLDER: the keys of `Work`, and an empty folder for the project. It runs in the environment
that has Ray; `RAY_ADDRESS` names the cluster.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import evalmeta
from evalmeta.model.evaluation import Case, Turn
from orders import expectations

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each process of the agent notes, at each n-th question, the time, its questions, its processor seconds and the order.
AGENT = """\
import asyncio, os, time
from pathlib import Path

FILE = (Path({folder!r}) / f"{{os.getpid()}}.asked").open("w", buffering=1)
asked = 0

async def answer(utterance):
    global asked
    asked += 1
    if asked % {every} == 0:
        FILE.write(f"{{time.time()}} {{asked}} {{time.process_time()}} {{utterance[15:-1]}}\\n")
    if {seconds}:
        await asyncio.sleep({seconds})
    actions = [{{"name": "Find_Order", "input": {{"question": utterance}}}}]
    return {{"outcome": "Your order was sent to Paris.", "topic": "Orders", "actions": actions}}
"""


class Work(TypedDict):
    """What to ask."""

    cases: int
    concurrency: int
    seconds: float  # that the agent takes
    rate: float  # questions a second; 0: as many as possible
    every: int  # which questions are noted
    on: str  # empty: this process


def run(work: Work, folder: Path) -> dict[str, float]:
    (folder / "asked").mkdir()
    agent = AGENT.format(folder=str(folder / "asked"), every=work["every"], seconds=work["seconds"])
    (folder / "remote_desk.py").write_text(agent)
    subject = {"adapter": "python", "target": "remote_desk:answer"}
    options = evalmeta.RunOptions(concurrency=work["concurrency"], rate_limit=work["rate"] or None)
    ended = [0.0]
    begun = time.time()
    finished = evalmeta.evaluate(
        Cases(work["cases"]),
        subject,
        options=options,
        journal=folder / "journal",
        root=folder,
        keep_results=False,
        on_results=lambda _: ended.append(time.time()),
        on=work["on"] or None,
    )
    counts = (finished.summary.total, finished.summary.errors, finished.summary.failed)
    assert counts == (work["cases"], 0, work["cases"] // 10), counts
    return {"begun": begun, "ended": ended[-1], "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024}


class Cases:
    """Makes cases whenever they are needed, as a journal needs them more than once."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __iter__(self) -> Iterator[Case]:
        return (
            Case(number, (Turn(f"Where is order {number}?", expectations(number)),))
            for number in range(1, self._count + 1)
        )


if __name__ == "__main__":
    # Ray prints lines of its own.
    Path(sys.argv[2], "told.json").write_text(json.dumps(run(json.loads(sys.argv[1]), Path(sys.argv[2]))))
