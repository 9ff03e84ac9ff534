"""A suite: a project with several definitions of one agent, which writes down every question and answer."""

from __future__ import annotations

import time
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WAIT = 120
# An answer comes when WANTED questions are in flight, or when no other question is left to fill the places.
AGENT = """\
import asyncio, os, pathlib, time

WANTED, TOTAL = {wanted}, {total}
here = pathlib.Path(__file__).parent
log = os.open(here / "asked.txt", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

def words(name):
    file = here / name
    return file.read_text().split(",") if file.exists() else []

def is_full(mine):
    lines = (here / "asked.txt").read_text().splitlines()
    if sum(line[0] == "+" for line in lines) >= TOTAL:
        return True
    place, in_flight = max(n for n, line in enumerate(lines) if line == mine), 0
    for n, line in enumerate(lines):
        in_flight += 1 if line[0] == "+" else -1
        if n >= place and in_flight >= WANTED:
            return True
    return False

async def answer(utterance):
    mine = f"+{{utterance}}"
    os.write(log, f"{{mine}}\\n".encode())
    try:
        until = time.monotonic() + 60
        while (WANTED and not is_full(mine)) or any(utterance.endswith(each) for each in words("held")):
            if time.monotonic() > until:
                raise TimeoutError(f"{{WANTED}} questions were never in flight")
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.01)
    finally:
        os.write(log, f"-{{utterance}}\\n".encode())
    if any(utterance.endswith(each) for each in words("broken")):
        raise RuntimeError("the agent is down")
    is_wrong = any(utterance.endswith(each) for each in words("wrong"))
    return {{"outcome": "Done.", "topic": "Refunds" if is_wrong else "Orders"}}
"""
SETTINGS = """\
[run]
concurrency = {concurrency}
{more}
[subjects.Desk]
adapter = "python"
target = "desk:answer"
"""


class Suite(NamedTuple):
    """The project in `root`; questions are `Question TEST CASE` with numbers of two digits.

    Questions that end with one of the texts in the file `held` are not answered while it exists; those in `wrong` get
    an answer that fails, and those in `broken` none.
    """

    root: Path
    tests: int
    cases: int

    @property
    def questions(self) -> list[str]:
        """Return all questions in the order of definitions."""
        return [f"Question {test:02} {case:02}" for test in range(self.tests) for case in range(1, self.cases + 1)]

    def asked(self) -> list[str]:
        """Return the questions that were asked, in order."""
        return [line[1:] for line in self._log() if line[0] == "+"]

    def answered(self) -> list[str]:
        """Return the questions that are not in flight any more, in the order of their answers."""
        return [line[1:] for line in self._log() if line[0] == "-"]

    def most_in_flight(self) -> int:
        """Return how many questions were in flight at most."""
        return max(accumulate(1 if line[0] == "+" else -1 for line in self._log()), default=0)

    def write(self, name: str, *questions: str) -> None:
        """Write a file that the agent reads with each question."""
        (self.root / name).write_text(",".join(questions))

    def forget(self) -> None:
        """Forget all questions so far."""
        (self.root / "asked.txt").write_text("")

    def _log(self) -> list[str]:
        file = self.root / "asked.txt"
        return file.read_text().splitlines() if file.exists() else []


def make_suite(
    root: Path,
    *,
    tests: int = 20,
    cases: int = 3,
    concurrency: int = 10,
    wanted: int | None = None,
    more: str = "",
    expectation: tuple[str, str] = ("topic_sequence_match", "Orders"),
) -> Suite:
    """Create a suite whose agent answers as soon as `wanted` questions are in flight; 0 for at once.

    `more` are further lines of [run]; `expectation` is the name and the expected value of what each case expects.
    """
    folder = root / "aiEvaluationDefinitions"
    folder.mkdir(parents=True)
    wanted = concurrency if wanted is None else wanted
    (root / "desk.py").write_text(AGENT.format(wanted=wanted, total=tests * cases))
    (root / "evalmeta.toml").write_text(SETTINGS.format(concurrency=concurrency, more=more))
    for test in range(tests):
        content = "".join(
            f"<testCase><number>{case}</number><inputs><utterance>Question {test:02} {case:02}</utterance></inputs>"
            "<expectation><name>{}</name><expectedValue>{}</expectedValue></expectation></testCase>".format(
                *expectation
            )
            for case in range(1, cases + 1)
        )
        (folder / f"Test_{test:02}.aiEvaluationDefinition").write_text(
            f'<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata"><name>Test_{test:02}</name>'
            f"<subjectName>Desk</subjectName><subjectType>AGENT</subjectType>{content}</AiEvaluationDefinition>"
        )
    return Suite(root, tests, cases)


def wait_until(happened: Callable[[], object]) -> None:
    """Wait until something has happened."""
    deadline = time.monotonic() + WAIT
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
