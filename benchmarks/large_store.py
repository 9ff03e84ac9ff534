"""A project whose store has as many runs and results as a team collects in years."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs
from evalmeta.store.stored_cases import encode_case

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS, RUNS_OF_SUITE, SECONDS = 40, 20, 3_600
ANSWER = "Your order was sent to Paris on Monday and arrives within three days. " * 2
# Of twenty cases, one fails, one ends in an error, and one is undecided.
VERDICTS = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED, *(Verdict.PASS,) * 17)


class LargeStore(NamedTuple):
    """A project with runs, and their ids, the oldest first; the last one has the `largest` number of results."""

    root: Path
    ids: list[str]
    largest: int

    @property
    def last(self) -> str:
        """Return the id of the largest run."""
        return self.ids[-1]

    @property
    def deep(self) -> str:
        """Return the place after most results of the largest run, as addresses have it."""
        return f"3.0.{self.largest * 9 // 10}.1"

    @property
    def suite(self) -> str:
        """Return the suite before the last, whose runs all have few results."""
        return _suite(len(self.ids) - RUNS_OF_SUITE - 1)


@contextmanager
def open_large(*, runs: int, results: int, largest: int) -> Iterator[LargeStore]:
    """Make a project with runs.

    All results are written in one transaction, with the bytes that the journal writes.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "evalmeta.toml").write_text("")
        project, ends = find_project(root), [end_of_case(place) for place in range(len(VERDICTS))]
        with open_database(project.state_dir) as database:
            database.execute("PRAGMA synchronous = OFF")
            each = (results - largest) // (runs - 1)
            sizes = [each] * (runs - 1) + [largest]
            stored, begun = Runs(database), time.time() - runs * SECONDS
            ids = [_save(stored, number, size, now=begun + number * SECONDS) for number, size in enumerate(sizes)]
            with database.transaction():
                for run_id, size in zip(ids, sizes, strict=True):
                    database.execute_many("INSERT INTO case_result VALUES (?, ?, ?, ?, ?)", _rows(run_id, size, ends))
        yield LargeStore(root, ids, largest)


def _save(runs: Runs, number: int, size: int, *, now: float) -> str:
    options = RunOptions(origin=Origin(_suite(number), f"feature/{number % 7}", f"{number:040x}"))
    evaluation = Evaluation(f"Orders_{number % TESTS}", "Order_Desk", ())
    run_id = runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b""), options, total=size, now=now)
    runs.claim(run_id, "bench", taken_from=runs.lease(run_id), until=now + SECONDS)
    runs.finish(run_id, "bench", RunStatus.COMPLETED, error=None, now=now + SECONDS / 2)
    return run_id


def _suite(number: int) -> str:
    """Return the suite of a run by its place."""
    return f"{number // RUNS_OF_SUITE:012x}"


def end_of_case(place: int) -> bytes:
    """Return the JSON of a case after its number."""
    verdict = VERDICTS[place]
    error = "the agent did not answer" if verdict is Verdict.ERROR else None
    checks = (
        TestResult("topic_sequence_match", Verdict.PASS, "Orders", "Orders", score=1.0),
        TestResult("action_sequence_match", Verdict.PASS, "['Find_Order']", "['Find_Order']", score=1.0),
        TestResult("output_validation", verdict, "Sent to Paris", ANSWER, explanation="It names the city.", score=4.0),
    )
    generated = GeneratedData(ANSWER, "Orders", (Action("Find_Order", {"question": "Where?"}),), 250.0)
    utterance = f"Where is the order that I placed {place + 2} days ago?"
    case = CaseResult(0, 1, utterance, verdict, 0.0, 1.0, checks, None if error else generated, error)
    return encode_case(case).removeprefix(b"[0")


def _rows(run_id: str, size: int, ends: list[bytes]) -> Iterator[tuple[str, int, int, str, bytes]]:
    for number in range(1, size + 1):
        place = number % len(ends)
        yield run_id, 1, number, VERDICTS[place].value, b"[%d%b" % (number, ends[place])
