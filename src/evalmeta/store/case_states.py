"""The results of cases over several runs, without reading more than their verdicts."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.model.statistics import RunCounts
from evalmeta.store.sql import placeholders
from evalmeta.store.stored_cases import decode_case

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.store.database import Database

# SQLite before 3.32 allows 999 parameters.
_CHUNK: Final = 900
_HALF: Final = _CHUNK // 2
_CONTENTS: Final = "SELECT id, coalesce(content_sha256, content) FROM run WHERE id IN"
_VERDICTS_OF: Final = "SELECT number, verdict FROM case_result WHERE run_id = ? AND"
_BODIES: Final = "SELECT body FROM case_result WHERE run_id = ? AND"
# Most cases have one result, and share its counts.
_ONE: Final[dict[str, RunCounts]] = {
    Verdict.PASS: RunCounts(passed=1),
    Verdict.FAILURE: RunCounts(failed=1),
    Verdict.ERROR: RunCounts(errors=1),
    Verdict.UNDECIDED: RunCounts(undecided=1),
}
# With the verdicts, the index has all that is read.
_JUDGING: Final = """
    SELECT id FROM run
    WHERE EXISTS (SELECT 1 FROM case_result WHERE run_id = run.id AND verdict IN ('PASS', 'FAILURE')"""
_VERDICTS: Final = "verdict IN ('PASS', 'FAILURE', 'ERROR', 'UNDECIDED')"


def contents_of(database: Database, run_ids: Sequence[str]) -> dict[str, bytes]:
    """Return what tells the content of the tests of runs apart, by run."""
    rows = database.query(f"{_CONTENTS} ({placeholders(run_ids)})", run_ids)
    return {run_id: bytes(content) for run_id, content in rows}


def counts_of_cases(database: Database, run_id: str, numbers: Collection[int] | None = None) -> dict[int, RunCounts]:
    """Return how often each case of a run had which verdict, by number; of some cases, or of all."""
    counts: dict[int, RunCounts] = {}
    ordered = [] if numbers is None else sorted(numbers)
    chunks = [ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK)]
    for chunk in [None] if numbers is None else chunks:
        only = "" if chunk is None else f" AND number IN ({placeholders(chunk)})"
        for number, verdict in database.query(f"{_VERDICTS_OF} {_VERDICTS}{only}", (run_id, *(chunk or ()))):
            known, one = counts.get(number), _ONE[verdict]
            counts[number] = one if known is None else RunCounts(*map(add, known, one))
    return counts


def judging_runs(database: Database, run_ids: Sequence[str], numbers: Collection[int] | None = None) -> set[str]:
    """Return which runs decided one of some cases, or of all."""
    ordered = [] if numbers is None else sorted(numbers)
    chunks = [ordered[start : start + _HALF] for start in range(0, len(ordered), _HALF)]
    judging: set[str] = set()
    for start in range(0, len(run_ids), _HALF):
        runs = run_ids[start : start + _HALF]
        for chunk in [None] if numbers is None else chunks:
            only = "" if chunk is None else f" AND number IN ({placeholders(chunk)})"
            rows = database.query(f"{_JUDGING}{only}) AND id IN ({placeholders(runs)})", (*(chunk or ()), *runs))
            judging.update(run_id for (run_id,) in rows)
    return judging


def results_of_cases(database: Database, run_id: str, numbers: Collection[int]) -> Iterator[CaseResult]:
    """Yield the results of some cases of a run, by number and iteration."""
    ordered = sorted(numbers)
    for start in range(0, len(ordered), _CHUNK):
        chunk = ordered[start : start + _CHUNK]
        sql = f"{_BODIES} {_VERDICTS} AND number IN ({placeholders(chunk)}) ORDER BY number, iteration"
        for (body,) in database.query(sql, (run_id, *chunk)):
            yield decode_case(body)
