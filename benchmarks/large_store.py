"""A project whose store has as many runs and results as a team collects in years."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.model.tally import summarise
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from evalmeta.store.kept_numbers import KeptTally
from evalmeta.store.runs import Runs
from evalmeta.store.stored_cases import decode_case, encode_case

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS, RUNS_OF_SUITE = 40, 20
_MINUTE, _DAY = 60, 86_400
# In the newest runs of all tests, one case in so many fails that passed before.
BROKEN = 50
ANSWER = "Your order was sent to Paris on Monday and arrives within three days. " * 2
# Of twenty cases, one fails, one ends in an error, and one is undecided.
VERDICTS = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED, *(Verdict.PASS,) * 17)


class LargeStore(NamedTuple):
    """A project with runs, and their ids, the oldest first; the last one has the `largest` number of results.

    `wide` are two runs of one test with a tenth of that each, one after the other.
    """

    root: Path
    ids: list[str]
    largest: int
    wide: tuple[str, str]

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
def open_large(*, runs: int, results: int, largest: int, tests: int = TESTS) -> Iterator[LargeStore]:
    """Make a project with runs of some tests.

    All results are written in one transaction, with the bytes that the journal writes. Each run keeps its counts, as
    workers write them when they end a run.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "evalmeta.toml").write_text("")
        project, sizes = find_project(root), _sizes(runs, results, largest)
        with open_database(project.state_dir) as database:
            database.execute("PRAGMA synchronous = OFF")
            stored, today, ids = Runs(database), time.time() // _DAY * _DAY, list[str]()
            for number, size in enumerate(sizes):
                is_newest = number >= runs - tests
                # Each test runs once a day, on the same branch.
                started = today - (runs - 1 - number) // tests * _DAY - _DAY + number % tests * _MINUTE
                test = f"Orders_{number % tests}"
                ids.append(_save(stored, number, size, test=test, is_newest=is_newest, started=started))
                with database.transaction():
                    rows = _rows(ids[-1], size, is_newest=is_newest)
                    database.execute_many("INSERT INTO case_result VALUES (?, ?, ?, ?, ?)", rows)
        first, last = _places_of_wide(runs)
        yield LargeStore(root, ids, largest, (ids[first], ids[last]))


def _sizes(runs: int, results: int, largest: int) -> list[int]:
    """Return the number of results of each run."""
    wide = {place: largest // 10 for place in _places_of_wide(runs) if runs > TESTS + 1}
    left = results - largest - sum(wide.values())
    each = left // (runs - 1 - len(wide))
    return [*(wide.get(place, each) for place in range(runs - 1)), largest]


def _places_of_wide(runs: int) -> tuple[int, int]:
    """Return the places of the two wide runs."""
    return max(0, runs - 2 - TESTS), max(0, runs - 2)


def _save(runs: Runs, number: int, size: int, *, test: str, is_newest: bool, started: float) -> str:
    options = RunOptions(origin=Origin(_suite(number), "main", f"{number:040x}"))
    evaluation = Evaluation(test, "Order_Desk", ())
    run_id = runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b""), options, total=size, now=started)
    runs.claim(run_id, "bench", taken_from=runs.lease(run_id), until=started + _DAY, now=started)
    kept = _kept(size, is_newest=is_newest)
    runs.finish(run_id, "bench", RunStatus.COMPLETED, error=None, now=started + _MINUTE / 2, kept=kept)
    return run_id


@cache
def _kept(size: int, *, is_newest: bool) -> tuple[str, str | None]:
    """Return what a worker keeps of a run with so many results."""
    cases = (_case(*_places(number, is_newest=is_newest)) for number in range(1, size + 1))
    return KeptTally.of(summarise(cases, RunOptions()), RunStatus.COMPLETED, total=size).columns()


@cache
def _case(judged: int, asked: int) -> CaseResult:
    return decode_case(b"[1" + end_of_case(judged, asked))


def _rows(run_id: str, size: int, *, is_newest: bool) -> Iterator[tuple[str, int, int, str, bytes]]:
    for number in range(1, size + 1):
        judged, asked = _places(number, is_newest=is_newest)
        yield run_id, 1, number, VERDICTS[judged].value, b"[%d%b" % (number, end_of_case(judged, asked))


def _places(number: int, *, is_newest: bool) -> tuple[int, int]:
    """Return the place of a case's verdict, and of what it asks."""
    asked = number % len(VERDICTS)
    return (VERDICTS.index(Verdict.FAILURE) if is_newest and number % BROKEN == BROKEN // 2 else asked), asked


def _suite(number: int) -> str:
    """Return the suite of a run by its place."""
    return f"{number // RUNS_OF_SUITE:012x}"


@cache
def end_of_case(place: int, asked: int | None = None) -> bytes:
    """Return the JSON of a case after its number; `place` is that of its verdict, and says what it asks, too."""
    verdict = VERDICTS[place]
    error = "the agent did not answer" if verdict is Verdict.ERROR else None
    checks = (
        TestResult("topic_sequence_match", Verdict.PASS, "Orders", "Orders", score=1.0),
        TestResult("action_sequence_match", Verdict.PASS, "['Find_Order']", "['Find_Order']", score=1.0),
        TestResult("output_validation", verdict, "Sent to Paris", ANSWER, explanation="It names the city.", score=4.0),
    )
    generated = GeneratedData(ANSWER, "Orders", (Action("Find_Order", {"question": "Where?"}),), 250.0)
    utterance = f"Where is the order that I placed {(place if asked is None else asked) + 2} days ago?"
    case = CaseResult(0, 1, utterance, verdict, 0.0, 1.0, checks, None if error else generated, error)
    return encode_case(case).removeprefix(b"[0")
