"""The history of runs in the project's own org and in others, and the stored runs of other orgs."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.model.aggregation import counted_verdicts
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.protocol.run_options import read_options
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.run import Run, RunOptions
    from evalmeta.store.database import Database, Row


_LATEST: Final = """
    SELECT * FROM (
      SELECT '' AS org_url, '' AS org_name, id, definition, status, created_at AS started_at, ended_at, total,
        NULL AS passed, NULL AS failed, NULL AS errors, NULL AS undecided, 1 AS is_here, answers_of, options
      FROM run
      UNION ALL
      SELECT org_url, org_name, id, definition, status, started_at, ended_at, total, passed, failed, errors, undecided,
        0, NULL, body
      FROM remote_run
    )
    WHERE ?1 IS NULL OR definition = ?1 COLLATE NOCASE
    ORDER BY started_at DESC, id DESC LIMIT ?2
"""
_COMPLETE: Final = """
    SELECT '' AS org_url, id, definition, created_at AS started_at FROM run WHERE status = 'COMPLETED'
    UNION ALL
    SELECT org_url, id, definition, started_at FROM remote_run WHERE status = 'COMPLETED'
    ORDER BY started_at, id
"""
_NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run in a list, with its org, its times and the counts of its case results.

    Attributes:
        org_url: the org's address; empty for the project's own org.
        org_name: the name of the org when the run started; empty for the project's own org.
        total: the number of case results of the complete run.
        passed: the number of case results; so are `failed`, `errors` and `undecided`.
        is_partial: whether it asked only some of the test's cases.
        answers_of: the run whose answers it judged again; None if an agent was asked.
    """

    org_url: str
    org_name: str
    id: str
    definition: str
    status: RunStatus
    started: float
    ended: float | None
    total: int
    passed: int
    failed: int
    errors: int
    undecided: int
    is_partial: bool = False
    answers_of: str | None = None

    @property
    def pass_rate(self) -> float | None:
        """Return passed / (passed + failed), 0 to 1; None if no case was judged."""
        decided = self.passed + self.failed
        return self.passed / decided if decided else None

    @property
    def is_whole(self) -> bool:
        """Return whether an agent was asked all cases: only such runs have comparable pass rates."""
        return self.status is RunStatus.COMPLETED and not self.is_partial and self.answers_of is None


class CompleteRun(NamedTuple):
    """A complete run; `org_url` is empty for the project's own org."""

    org_url: str
    id: str
    definition: str
    started: float


def complete_runs(database: Database) -> list[CompleteRun]:
    """List the complete runs of all orgs, the oldest first; their cases are not read."""
    return [CompleteRun(*row) for row in database.query(_COMPLETE)]


def list_runs(database: Database, *, definition: str | None = None, limit: int | None = None) -> list[PastRun]:
    """List the runs of a definition, or of all, in all orgs, the oldest first; at most the latest `limit`."""
    rows = database.query(_LATEST, (definition, _NO_LIMIT if limit is None else limit))
    return [_past_run(database, row) for row in reversed(rows)]


def _past_run(database: Database, row: Row) -> PastRun:
    url, name, run_id, definition, status, started, ended, total, *counts, is_here, answers_of, body = row
    if is_here:
        options = read_options(orjson.loads(body))
        counts = _counts(database, run_id, options)
    else:
        run = read_run(orjson.loads(body))
        options, answers_of = run.options, run.answers_of
    place = url, name, run_id, definition, RunStatus(status), started, ended, total
    passed, failed, errors, undecided = counts
    return PastRun(*place, passed, failed, errors, undecided, options.is_partial, answers_of)


def _counts(database: Database, run_id: str, options: RunOptions) -> list[int]:
    found: Counter[str] = Counter()
    sql = "SELECT verdict, count(*) FROM case_result WHERE run_id = ? GROUP BY verdict"
    found.update(dict(database.query(sql, (run_id,))))
    # Only the full results show which cases are undecided in part or averaged over iterations.
    is_mixed = options.iterations > 1 and found[Verdict.PASS] < found.total()
    if options.undecided == "fail" or (is_mixed and _may_average(database, run_id)):
        judged = counted_verdicts(Runs(database).stream(run_id), options)
        found = Counter(verdict.value for _, verdict in judged)
    return [found[each.value] for each in (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED)]


def _may_average(database: Database, run_id: str) -> bool:
    """Return whether a run may have averaged results: runs of files may, whose content is JSON instead of XML."""
    [(begin,)] = database.query("SELECT substr(content, 1, 1) FROM run WHERE id = ?", (run_id,))
    return bool(begin == b"{")


# An id has 15 characters; three more only check it.
_ID_CHARS: Final = 15


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run in another org.

    Attributes:
        org_url: the org's address.
        org_name: the name of the org when the run started: an alias, a username or the address.
        run: the last known state of the run; its id is that of the first job.
        jobs: the ids of the org's own runs, one for each iteration that has started.
    """

    org_url: str
    org_name: str
    run: Run
    jobs: tuple[str, ...]


class RemoteRuns:
    """The runs of other orgs."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, remote: RemoteRun) -> None:
        """Save the current state of a run."""
        run = remote.run
        verdicts = Counter(verdict for _, verdict in counted_verdicts(run.cases, run.options))
        sql = """
            INSERT OR REPLACE INTO remote_run
              (org_url, id, org_name, definition, status, started_at, ended_at, total,
               passed, failed, errors, undecided, jobs, body)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
        place = (remote.org_url, run.id, remote.org_name, run.definition)
        times = (run.status.value, run.started, run.ended, run.total)
        counts = tuple(verdicts[each] for each in (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED))
        blobs = (orjson.dumps(remote.jobs), orjson.dumps(write_run(run, escape=False)))
        self._database.execute(sql, (*place, *times, *counts, *blobs))

    def find(self, run_id: str, *, org_url: str | None = None) -> list[RemoteRun]:
        """Return the runs with an id of 15 or 18 characters, the latest first; several orgs may have the same id."""
        sql = """
            SELECT org_url, org_name, jobs, body FROM remote_run
            WHERE id >= ?1 AND id < ?1 || '~' AND (?2 IS NULL OR org_url = ?2) ORDER BY started_at DESC
        """
        rows = self._database.query(sql, (run_id[:_ID_CHARS], org_url))
        return [
            RemoteRun(url, name, read_run(orjson.loads(body)), tuple(orjson.loads(jobs)))
            for url, name, jobs, body in rows
        ]


@contextmanager
def open_remote_runs(state_dir: Path) -> Iterator[RemoteRuns]:
    """Open the stored runs of other orgs in a state folder.

    Raises:
        StoreError: The database cannot be used.
    """
    with open_database(state_dir) as database:
        yield RemoteRuns(database)
