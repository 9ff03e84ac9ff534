"""Lists of the runs of all orgs: filtered, searched, and page by page, the newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from evalmeta.model.run import RunStatus
from evalmeta.protocol.connect import read_run
from evalmeta.protocol.run_options import read_options
from evalmeta.store.kept_numbers import KeptTally, tallies_of, tally_of_remote

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from evalmeta.model.login import User
    from evalmeta.model.run import Summary, Verdict
    from evalmeta.model.run_options import RunOptions
    from evalmeta.store.database import Database, Row

OUTCOMES: Final = ("passed", "failed", "errors", "undecided", "unfinished")
# The parameters are the fields of `RunFilter`, the user's id if it is not an admin, the place and the limit.
_PAGE: Final = """
    SELECT * FROM listed_run
    WHERE (?1 = '' OR instr(lower(definition || ' ' || subject || ' ' || id), lower(?1)))
      AND (?2 = '' OR definition = ?2 COLLATE NOCASE) AND (?3 = '' OR subject = ?3)
      AND (?4 = '' OR branch = ?4) AND (?5 = '' OR suite = ?5)
      AND (?6 IS NULL OR started >= ?6) AND (?7 IS NULL OR started <= ?7) AND (?8 IS NULL OR user_id = ?8)
      AND CASE ?9
        WHEN 'unfinished' THEN status IN ('NEW', 'IN_PROGRESS')
        WHEN 'failed' THEN coalesce(json_extract(tally, '$[2]') > 0, EXISTS (
          SELECT 1 FROM case_result WHERE run_id = listed_run.id AND verdict = 'FAILURE'))
        WHEN 'errors' THEN status IN ('ERROR', 'TERMINATED') OR coalesce(json_extract(tally, '$[3]') > 0, EXISTS (
          SELECT 1 FROM case_result WHERE run_id = listed_run.id AND verdict = 'ERROR'))
        WHEN 'undecided' THEN verdict = 'UNDECIDED' OR coalesce(json_extract(tally, '$[4]') > 0, EXISTS (
          SELECT 1 FROM case_result WHERE run_id = listed_run.id AND verdict = 'UNDECIDED'))
        WHEN 'passed' THEN status = 'COMPLETED' AND coalesce(verdict = 'PASS', NOT EXISTS (
          SELECT 1 FROM case_result WHERE run_id = listed_run.id AND verdict IN ('FAILURE', 'ERROR')))
        ELSE 1 END
      AND (?13 = '' OR (org_url = '' AND EXISTS (
        SELECT 1 FROM json_each(CAST(body AS TEXT), '$.origin.tags') WHERE value = ?13)))
      AND (?10 IS NULL OR (started, id) < (?10, ?11))
    ORDER BY started DESC, id DESC LIMIT ?12
"""
_LATEST: Final = """
    SELECT * FROM listed_run WHERE ?1 IS NULL OR definition = ?1 COLLATE NOCASE ORDER BY started DESC, id DESC LIMIT ?2
"""
_NO_LIMIT: Final = -1
_ONE: Final = "SELECT * FROM listed_run WHERE id = ?1 AND org_url = ?2 AND (?3 IS NULL OR user_id = ?3)"
_BY_ID: Final = "SELECT * FROM listed_run WHERE id IN ({})"
# The place of a column of the view, after which the user's id follows, and the columns of the tally.
_PLACE: Final = 12
_TALLY: Final = 13
# SQLite before 3.32 allows 999.
_MAX_PARAMETERS: Final = 900
_RECENT: Final = """
    SELECT org_url, id FROM (
      SELECT org_url, id,
        row_number() OVER (PARTITION BY definition COLLATE NOCASE ORDER BY started DESC, id DESC) AS place
      FROM listed_run WHERE answers_of IS NULL AND (?1 IS NULL OR user_id = ?1) AND (?2 = '' OR definition = ?2)
    ) WHERE place <= ?3
"""
_VALUES: Final = {
    "tag": """
        SELECT DISTINCT value FROM listed_run, json_each(CAST(body AS TEXT), '$.origin.tags')
        WHERE org_url = '' AND (?1 IS NULL OR user_id = ?1)
    """,
    "definition": "SELECT DISTINCT definition FROM listed_run WHERE definition <> '' AND (?1 IS NULL OR user_id = ?1)",
    "subject": "SELECT DISTINCT subject FROM listed_run WHERE subject <> '' AND (?1 IS NULL OR user_id = ?1)",
    "branch": "SELECT DISTINCT branch FROM listed_run WHERE branch <> '' AND (?1 IS NULL OR user_id = ?1)",
}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; empty values are ignored.

    Attributes:
        text: a part of the name of the test or the subject, or of the run's id, ignoring case.
        test: the name of the test.
        tag: a tag that chose the run's cases, in the project's own org.
        outcome: one of `OUTCOMES`.
        since: the earliest start, in seconds since the epoch; `until` is the latest.
        user: the user whose rights count: admins see all runs, others their own. None for all runs.
    """

    text: str = ""
    test: str = ""
    subject: str = ""
    outcome: str = ""
    branch: str = ""
    suite: str = ""
    tag: str = ""
    since: float | None = None
    until: float | None = None
    user: User | None = None


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in a list; times are in seconds since the epoch.

    Attributes:
        org_url: the org's address; empty for the project's own org.
        org_name: the name of the org when the run started; empty for the project's own org.
        total: the number of case results of the complete run.
        answers_of: the run whose answers it judged again; None if an agent was asked.
        summary: the counts of its case results so far.
        verdict: the verdict on the run, PASS if it has passed; None while it is in progress.
        is_stopped: whether it is in progress although no process works on it, where that was looked up.
    """

    org_url: str
    org_name: str
    id: str
    definition: str
    subject: str
    status: RunStatus
    started: float
    ended: float | None
    total: int
    suite: str
    branch: str
    answers_of: str | None
    summary: Summary
    verdict: Verdict | None
    options: RunOptions
    is_stopped: bool = False

    @property
    def done(self) -> int:
        """Return the number of case results so far."""
        return self.summary.total

    @property
    def is_partial(self) -> bool:
        """Return whether it asked only some of the test's cases."""
        return self.options.is_partial

    @property
    def is_whole(self) -> bool:
        """Return whether an agent was asked all cases: only such runs have comparable pass rates."""
        return self.status is RunStatus.COMPLETED and not self.is_partial and self.answers_of is None


class RunPage(NamedTuple):
    """One page of a list; `after` is where the next one begins, None after the last."""

    runs: tuple[ListedRun, ...]
    after: tuple[float, str] | None


def run_page(database: Database, wanted: RunFilter, *, limit: int, after: tuple[float, str] | None = None) -> RunPage:
    """Return a page of runs, the newest first."""
    texts = wanted.text, wanted.test, wanted.subject, wanted.branch, wanted.suite
    limits_of_time = wanted.since, wanted.until, _only(wanted.user)
    rows = database.query(
        _PAGE, (*texts, *limits_of_time, wanted.outcome, *(after or (None, None)), limit + 1, wanted.tag)
    )
    runs = tuple(_listed(database, rows[:limit]))
    return RunPage(runs, (runs[-1].started, runs[-1].id) if len(rows) > limit else None)


def find_listed(database: Database, run_id: str, *, org_url: str = "", user: User | None = None) -> ListedRun | None:
    """Return a run as lists show it; None if it does not exist or the user may not see it."""
    rows = database.query(_ONE, (run_id, org_url, _only(user)))
    return next(iter(_listed(database, rows)), None)


def distinct_values(database: Database, column: str, *, user: User | None = None) -> list[str]:
    """Return the values that the `definition`, `subject`, `branch` or `tag` of runs has, in order."""
    return sorted(value for (value,) in database.query(_VALUES[column], (_only(user),)))


def recent_runs(
    database: Database, *, of_each: int, test: str = "", user: User | None = None
) -> dict[str, list[ListedRun]]:
    """Return the latest runs of each test that asked an agent, by the test's name, the oldest first."""
    places = {(url, run_id) for url, run_id in database.query(_RECENT, (_only(user), test, of_each))}
    found: dict[str, list[ListedRun]] = {}
    for each in _listed(database, _rows_of(database, places)):
        found.setdefault(each.definition, []).append(each)
    return {name: sorted(runs, key=lambda run: (run.started, run.id)) for name, runs in sorted(found.items())}


def _rows_of(database: Database, places: Collection[tuple[str, str]]) -> list[Row]:
    """Return the rows of runs by org and id; SQLite finds ids that are parameters with its indexes."""
    ids = sorted({run_id for _, run_id in places})
    found: list[Row] = []
    for start in range(0, len(ids), _MAX_PARAMETERS):
        chunk = ids[start : start + _MAX_PARAMETERS]
        found += database.query(_BY_ID.format(", ".join("?" * len(chunk))), chunk)
    return [row for row in found if (row[0], row[2]) in places]


def _only(user: User | None) -> str | None:
    """Return the user whose runs alone are shown; None if all are."""
    return None if user is None or user.is_admin else user.id


def _listed(database: Database, rows: Sequence[Row]) -> list[ListedRun]:
    """Return the runs of rows of the view; its last column has the options of own runs, and all of other orgs' runs."""
    own = {row[2]: read_options(orjson.loads(row[-1])) for row in rows if not row[0]}
    counted = tallies_of(database, {row[2]: own[row[2]] for row in rows if not row[0] and row[_TALLY] is None})
    return [
        _remote(database, row) if row[0] else _run(row, counted.get(row[2]) or _kept(row, own[row[2]]), own[row[2]])
        for row in rows
    ]


def _kept(row: Row, options: RunOptions) -> KeptTally:
    return KeptTally.read(row[_TALLY], row[_TALLY + 1], options)


def _remote(database: Database, row: Row) -> ListedRun:
    body = orjson.loads(row[-1])
    run = read_run(body if row[_TALLY] is None else {**body, "testCases": []})
    place = [*row[:_PLACE]]
    place[4], place[11] = run.subject_name, run.answers_of
    tally = tally_of_remote(database, row[0], run) if row[_TALLY] is None else _kept(row, run.options)
    return _run(tuple(place), tally, run.options)


def _run(row: Row, tally: KeptTally, options: RunOptions) -> ListedRun:
    place = [*row[:_PLACE]]
    place[5] = RunStatus(place[5])
    values: tuple[Any, ...] = (*place, *tally, options)  # type: ignore[explicit-any] # the columns of the view
    return ListedRun(*values)


def list_runs(database: Database, *, definition: str | None = None, limit: int | None = None) -> list[ListedRun]:
    """List the runs of a definition, or of all, in all orgs, the oldest first; at most the latest `limit`."""
    rows = database.query(_LATEST, (definition, _NO_LIMIT if limit is None else limit))
    return _listed(database, rows[::-1])
