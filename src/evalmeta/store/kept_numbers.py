"""Numbers kept with runs: counts and verdicts of runs that are over, for lists, and digests for pages of the viewer."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.run import Coverage, RunStatus, Summary, Verdict
from evalmeta.model.tally import run_verdict, summarise
from evalmeta.store.runs import Runs
from evalmeta.store.sql import upsert

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run_options import RunOptions
    from evalmeta.store.database import Database


_COUNTS: Final = ("passed", "partly_judged", "failed", "errors", "undecided", "quarantined")
_KEPT: Final = len(_COUNTS)
_KEPT_NAMES: Final = 20
_COUNT_VERDICTS: Final = """
    SELECT run_id, verdict, count(*) FROM case_result
    WHERE run_id IN (SELECT value FROM json_each(?, '$')) GROUP BY run_id, verdict
"""
_SELECT_STATES: Final = "SELECT id, status, ended_at, total FROM run WHERE id IN (SELECT value FROM json_each(?, '$'))"
_UPDATE_TALLY: Final = """
    UPDATE run SET tally = ?, verdict = ?
    WHERE id = ? AND ended_at IS ? AND status NOT IN ('NEW', 'IN_PROGRESS')
"""


class KeptTally(NamedTuple):
    """The counts of a run, without its averages; the verdict as `run_verdict`.

    `is_whole` says that there are none, and the names of undecided results are few, so that they were kept too.
    """

    summary: Summary
    verdict: Verdict | None
    is_whole: bool = False

    @classmethod
    def of(cls, summary: Summary, status: RunStatus, *, total: int) -> KeptTally:
        """Return the tally of a run that has `total` case results when it is complete."""
        is_complete = status is RunStatus.COMPLETED and summary.total >= total
        return cls(summary, run_verdict(summary, status, is_complete=is_complete))

    @classmethod
    def read(cls, tally: str, verdict: str | None, options: RunOptions) -> KeptTally:
        """Return the tally that `columns` wrote."""
        numbers = orjson.loads(tally)
        counts, (quarantined_passed, judged, results, outside, *undecided) = numbers[:_KEPT], numbers[_KEPT:]
        summary = Summary(
            total=sum(counts),
            **dict(zip(_COUNTS, counts, strict=True)),
            min_pass_rate=options.min_pass_rate,
            coverage=Coverage(judged, results, outside),
            min_decided=options.min_decided,
            quarantined_passed=quarantined_passed,
            undecided_results=tuple((name, number) for name, number in next(iter(undecided), None) or ()),
        )
        return cls(summary, Verdict(verdict) if verdict else None, is_whole=undecided not in ([], [None]))

    def columns(self) -> tuple[str, str | None]:
        """Return what is kept of a run: counts as JSON, and the verdict."""
        counts = [getattr(self.summary, name) for name in _COUNTS]
        undecided = self.summary.undecided_results
        known = None if self.summary.averaged or len(undecided) > _KEPT_NAMES else undecided
        numbers = [*counts, self.summary.quarantined_passed, *self.summary.coverage, known]
        return orjson.dumps(numbers).decode(), None if self.verdict is None else self.verdict.value


def whole_summary(database: Database, run_id: str, options: RunOptions) -> Summary | None:
    """Return the summary of a run that is over, as it was kept; None if only its results give all of it."""
    [(tally, verdict)] = database.query("SELECT tally, verdict FROM run WHERE id = ?", (run_id,))
    kept = None if tally is None else KeptTally.read(tally, verdict, options)
    return kept.summary if kept and kept.is_whole else None


def tallies_of(database: Database, runs: Mapping[str, RunOptions]) -> dict[str, KeptTally]:
    """Count the results of runs without a kept tally, and keep those of runs that are over.

    In a large run that is not over, each result counts with its own verdict, because lists are often shown again:
    partly judged ones count as passed then.
    """
    if not runs:
        return {}
    verdicts: dict[str, Counter[str]] = {run_id: Counter() for run_id in runs}
    ids = orjson.dumps([*runs]).decode()
    for run_id, verdict, number in database.query(_COUNT_VERDICTS, (ids,)):
        verdicts[run_id][verdict] = number
    tallies = {}
    for run_id, state, ended, total in database.query(_SELECT_STATES, (ids,)):
        counts, status = verdicts[run_id], RunStatus(state)
        if counts and (status.is_over or counts.total() <= limits.MAX_LIVE_CASES):
            summary = summarise(Runs(database).stream(run_id), runs[run_id])
        else:
            summary = _by_verdicts(counts, runs[run_id])
        tallies[run_id] = tally = KeptTally.of(summary, status, total=total)
        if status.is_over:
            # Another program may be writing; the results are then counted again for the next list.
            with suppress(StoreError):
                database.execute(_UPDATE_TALLY, (*tally.columns(), run_id, ended))
    return tallies


def _by_verdicts(counts: Counter[str], options: RunOptions) -> Summary:
    return Summary(
        total=counts.total(),
        passed=counts[Verdict.PASS],
        failed=counts[Verdict.FAILURE],
        errors=counts[Verdict.ERROR],
        undecided=counts[Verdict.UNDECIDED],
        min_pass_rate=options.min_pass_rate,
        min_decided=options.min_decided,
    )


def find_digest(database: Database, run_id: str, stamp: str, *, org_url: str = "") -> JsonObject | None:
    """Return what was kept for a run with this stamp; None if there is nothing."""
    sql = "SELECT body FROM run_digest WHERE org_url = ? AND run_id = ? AND stamp = ?"
    rows = database.query(sql, (org_url, run_id, stamp))
    digest: JsonObject | None = orjson.loads(rows[0][0]) if rows else None
    return digest


def keep_digest(database: Database, run_id: str, stamp: str, digest: JsonObject, *, org_url: str = "") -> None:
    """Keep the numbers of a run; `stamp` must change when the run gets other results.

    `run_id` can be the ids of several runs, separated by spaces, the runs after the first in this org, and after the
    ids a word in lower case that says what is kept.
    """
    sql = upsert("run_digest", "org_url, run_id", "org_url, run_id, stamp, body")
    database.execute(sql, (org_url, run_id, stamp, orjson.dumps(digest).decode()))


def forget_digests_of_deleted_runs(database: Database) -> None:
    """Delete what was kept for runs that were deleted; call it inside a transaction."""
    digests = database.query("SELECT org_url, run_id FROM run_digest")
    runs = {(org_url, run_id) for org_url, run_id in database.query("SELECT org_url, id FROM listed_run")}
    ids = {run_id for _, run_id in runs}
    for org_url, key in digests:
        first, *others = (word for word in key.split() if not word.islower())
        own = {(org_url, run_id) for run_id in others or [first]}
        if first not in ids or not own <= runs:
            database.execute("DELETE FROM run_digest WHERE org_url = ? AND run_id = ?", (org_url, key))
