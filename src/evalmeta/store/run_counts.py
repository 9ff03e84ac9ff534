"""The numbers of case results of runs by verdict, for lists of runs."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.run import Verdict
from evalmeta.model.tally import summarise
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.run import RunOptions
    from evalmeta.store.database import Database


COUNTED: Final = (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED)
_VERDICTS: Final = """
    SELECT run_id, verdict, count(*) FROM case_result
    WHERE run_id IN (SELECT value FROM json_each(?)) GROUP BY run_id, verdict
"""
_SAVED: Final = """
    SELECT id, status NOT IN ('NEW', 'IN_PROGRESS'), ended_at, counts, substr(content, 1, 1) = x'7B' FROM run
    WHERE id IN (SELECT value FROM json_each(?))
"""
_SAVE: Final = """
    UPDATE run SET counts = ? WHERE id = ? AND ended_at IS ? AND status NOT IN ('NEW', 'IN_PROGRESS')
"""


def counts_of_runs(database: Database, runs: Mapping[str, RunOptions]) -> dict[str, list[int]]:
    """Return how many case results of each run passed, failed, ended in errors and are undecided.

    In a large run that is not over, each result counts with its own verdict, because lists are often shown again.
    """
    found: dict[str, Counter[str]] = {each: Counter() for each in runs}
    for run_id, verdict, number in database.query(_VERDICTS, (_list(runs),)):
        found[run_id][verdict] = number
    counts = {run_id: [verdicts[each] for each in COUNTED] for run_id, verdicts in found.items()}
    unclear = [run_id for run_id, options in runs.items() if _needs_results(options, found[run_id])]
    saved = database.query(_SAVED, (_list(unclear),)) if unclear else []
    for run_id, is_over, ended, known, is_file in saved:
        # Only runs of files may have averaged results; their content is JSON instead of XML.
        can_differ = runs[run_id].undecided == "fail" or is_file
        if known:
            counts[run_id] = list(orjson.loads(known))
        elif can_differ and (is_over or found[run_id].total() <= limits.MAX_LIVE_CASES):
            counts[run_id] = _count_all(database, run_id, runs[run_id], ended)
    return counts


def _needs_results(options: RunOptions, found: Counter[str]) -> bool:
    """Return whether only the full results show which cases are undecided in part or averaged over iterations."""
    return options.undecided == "fail" or (options.iterations > 1 and found[Verdict.PASS] < found.total())


def _count_all(database: Database, run_id: str, options: RunOptions, ended: float | None) -> list[int]:
    """Count the full results of a run, and save the counts if it is over and was not extended in the meantime."""
    found = summarise(Runs(database).stream(run_id), options)
    counts = [found.passed + found.partly_judged, found.failed, found.errors, found.undecided]
    # Another program may be writing; the results are then counted again for the next list.
    with suppress(StoreError):
        database.execute(_SAVE, (orjson.dumps(counts).decode(), run_id, ended))
    return counts


def _list(ids: Mapping[str, RunOptions] | list[str]) -> str:
    return orjson.dumps([*ids]).decode()
