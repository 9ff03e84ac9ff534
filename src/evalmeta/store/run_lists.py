"""Lists of the runs of all orgs, the newest first: filtered, searched, and page by page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.model.run import RunStatus, Summary, Verdict
from evalmeta.protocol.runs import read_options
from evalmeta.store.kept_numbers import KeptTally, tallies_of
from evalmeta.store.run_orders import NEWEST, RunOrder, RunPlace
from evalmeta.store.sql import placeholders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from evalmeta.model.login import User
    from evalmeta.model.run_options import RunOptions
    from evalmeta.store.database import Database
    from evalmeta.store.sql import Row

# The condition for each field of `RunFilter` that is set, except `outcome`.
CONDITIONS: Final = {
    "id": "id = ?",
    "text": "instr(lower(definition || ' ' || title || ' ' || subject || ' ' || id), lower(?)) > 0",
    "test": "definition = ? COLLATE NOCASE",
    "subject": "subject = ?",
    "status": "status = ?",
    "branch": "branch = ?",
    "suite": "suite = ?",
    "tag": """org_url = '' AND EXISTS (
        SELECT 1 FROM json_each(CAST(options AS TEXT), '$.origin.tags') WHERE value = ?)""",
    "confirms": "confirms = ?",
    "org_url": "org_url = ?",
    "since": "started >= ?",
    "until": "started <= ?",
    "user": "user_id = ?",
}


_RESULT: Final = "EXISTS (SELECT 1 FROM case_result WHERE run_id = listed_run.id AND verdict IN"


def _has(*verdicts: str) -> str:
    listed = ", ".join(f"'{verdict}'" for verdict in verdicts)
    return f"{_RESULT} ({listed}))"


def _counted(place: int, verdict: str) -> str:
    return f"coalesce(CAST(json_extract(tally, '$[{place}]') AS INTEGER) > 0, {_has(verdict)})"


# Runs that are not over have no tally. The numbers are the places of counts in `KeptTally.columns`.
_OUTCOMES: Final = {
    "passed": f"status = 'COMPLETED' AND coalesce(verdict = 'PASS', NOT {_has('FAILURE', 'ERROR')})",
    "failed": _counted(2, "FAILURE"),
    "errors": f"(status IN ('ERROR', 'TERMINATED') OR {_counted(3, 'ERROR')})",
    "undecided": f"(verdict = 'UNDECIDED' OR {_counted(4, 'UNDECIDED')})",
    "unfinished": "status IN ('NEW', 'IN_PROGRESS')",
}
OUTCOMES: Final = tuple(_OUTCOMES)
# Places in the rows of the view.
_NAMED: Final = (0, 2, 3, 9, 6)
_ID, _STARTED, _CONFIRMS = 2, 6, 12
# Runs are read in batches, because most lists are not read to the end.
_CHUNK: Final = 100
# SQLite before 3.32 allows 999.
_MAX_PARAMETERS: Final = 900
_RUNS: Final = "SELECT * FROM listed_run WHERE"
_UNCOUNTED: Final = "SELECT id, options FROM run WHERE tally IS NULL AND status NOT IN ('NEW', 'IN_PROGRESS')"
_VALUES: Final = "SELECT DISTINCT"
_TAGS: Final = "value FROM listed_run, json_each(CAST(options AS TEXT), '$.origin.tags') WHERE org_url = ''"
_RECENT: Final = """
    SELECT org_url, id FROM (
      SELECT org_url, id,
        row_number() OVER (PARTITION BY definition COLLATE NOCASE ORDER BY started DESC, id DESC) AS place
      FROM listed_run WHERE answers_of IS NULL AND (user_id = ?1 OR ?1 IS NULL) AND (definition = ?2 OR ?2 = '')
        AND (?4 = 1 OR confirms = '')
    ) AS ranked WHERE place <= ?3
"""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; empty values are ignored.

    Attributes:
        text: a part of the name or the title of the test, of the subject, or of the run's id, ignoring case.
        test: the name of the test, ignoring case.
        status: a `RunStatus`.
        tag: a tag that chose the run's cases, in the project's own org.
        outcome: one of `OUTCOMES`.
        confirms: the run whose suspect cases were asked again.
        org_url: the address of the org; empty for the project's own, None for all.
        since: the earliest start, in seconds since the epoch; `until` is the latest.
        user: the user whose rights count: admins see all runs, others their own. None for all runs.
    """

    id: str = ""
    text: str = ""
    test: str = ""
    subject: str = ""
    status: str = ""
    outcome: str = ""
    branch: str = ""
    suite: str = ""
    tag: str = ""
    confirms: str = ""
    org_url: str | None = None
    since: float | None = None
    until: float | None = None
    user: User | None = None


@dataclass(frozen=True)
class ListedRun:
    """A run in a list; times are in seconds since the epoch.

    What is stored as JSON is read when it is first used, because most of a long list is only searched.

    Attributes:
        org_url: the org's address; empty for the project's own org.
        org_name: the name of the org when the run started; empty for the project's own org.
        total: the number of case results of the complete run.
        answers_of: the run whose answers it judged again; None if an agent was asked.
        confirms: the run whose suspect cases it asked again; empty if it is a run of its own.
        file: the path of the file that was run, in the project's own org; empty for deployed definitions.
        title: the name that the file of the test gives it; empty if it has no other name than the test.
        kept: the counts of its case results so far and the verdict, as `KeptTally.columns` wrote them.
        written_options: its options as JSON.
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
    confirms: str
    file: str
    title: str
    kept: tuple[str, str | None]
    written_options: bytes
    is_stopped: bool = False

    @cached_property
    def options(self) -> RunOptions:
        """Return its options."""
        return read_options(orjson.loads(self.written_options))

    @cached_property
    def tally(self) -> KeptTally:
        """Return its counts so far and its verdict, as they were kept."""
        return KeptTally.read(*self.kept, self.options)

    @property
    def summary(self) -> Summary:
        """Return the counts of its case results so far."""
        return self.tally.summary

    @property
    def is_plain(self) -> bool:
        """Return whether the verdicts of its results are what counts, so that nothing else must be read."""
        options, tally = self.options, self.tally
        is_judged_once = options.undecided == "ignore" and not options.is_repeated
        return is_judged_once and tally.is_whole and not tally.summary.quarantined

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict on the run, PASS if it has passed; None while it is in progress."""
        return Verdict(self.kept[1]) if self.kept[1] else None

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


class SuiteRun(NamedTuple):
    """What names a run: its org, its id, its test, the suite that it belongs to, empty if none, and its start."""

    org_url: str
    id: str
    definition: str
    suite: str
    started: float


class RunPage(NamedTuple):
    """One page of a list; `after` is where the next one begins, None after the last."""

    runs: tuple[ListedRun, ...]
    after: RunPlace | None


_ALL: Final = RunFilter()


def run_page(
    database: Database, wanted: RunFilter, *, limit: int, after: RunPlace | None = None, order: RunOrder = NEWEST
) -> RunPage:
    """Return a page of runs, by default the newest first; `after` is a place in the same order."""
    if order.by:
        _count_all(database)
    found = _rows(database, wanted, limit=limit + 1, after=after, order=order)
    # The value by which they are sorted comes last.
    rows = [row[:-1] for row in found[:limit]] if order.by else found[:limit]
    runs = tuple(_listed(database, rows))
    if len(found) <= limit:
        return RunPage(runs, None)
    return RunPage(runs, RunPlace(runs[-1].started, runs[-1].id, found[limit - 1][-1] if order.by else None))


def _count_all(database: Database) -> None:
    """Keep the tallies of all runs that are over; most have one since they ended."""
    uncounted = database.query(_UNCOUNTED)
    tallies_of(database, {run_id: read_options(orjson.loads(options)) for run_id, options in uncounted})


def count_runs(database: Database) -> int:
    """Return the number of runs in all orgs."""
    [(number,)] = database.query("SELECT count(*) FROM listed_run")
    return int(number)


def newest_runs(
    database: Database, wanted: RunFilter = _ALL, *, limit: int | None = None, counted: bool = True
) -> Iterator[ListedRun]:
    """Yield the runs that a filter finds, the newest first; at most the latest `limit`.

    Without `counted`, runs whose results were never counted have no counts and no verdict: see `with_counts`.
    """
    for rows in _batches(database, wanted, limit):
        yield from _listed(database, rows, counted=counted)


def newest_named(database: Database, wanted: RunFilter = _ALL) -> Iterator[SuiteRun]:
    """Yield what names the runs that a filter finds, the newest first, but not those that asked again."""
    # An unfinished run is counted when it is listed, which takes long.
    for rows in _batches(database, wanted, None):
        yield from (SuiteRun(*(row[place] for place in _NAMED)) for row in rows if not row[_CONFIRMS])


def runs_of_suite(database: Database, suite_id: str) -> list[SuiteRun]:
    """Return the runs of a suite in the order of its tests, without those that asked suspect cases again."""
    rows = database.query(f"{_RUNS} suite = ? AND confirms = '' ORDER BY place, started, id", (suite_id,))
    return [SuiteRun(*(row[place] for place in _NAMED)) for row in rows]


def _batches(database: Database, wanted: RunFilter, limit: int | None) -> Iterator[list[Row]]:
    """Yield the rows of the view that a filter finds, the newest first."""
    after, left = None, limit
    while left is None or left > 0:
        size = _CHUNK if left is None else min(_CHUNK, left)
        rows = _rows(database, wanted, limit=size, after=after)
        yield rows
        if len(rows) < size:
            return
        after, left = RunPlace(rows[-1][_STARTED], rows[-1][_ID]), left and left - size


def list_runs(database: Database, wanted: RunFilter = _ALL, *, limit: int | None = None) -> list[ListedRun]:
    """Return the runs that `newest_runs` yields, the oldest first."""
    return [*newest_runs(database, wanted, limit=limit)][::-1]


def find_listed(database: Database, run_id: str, *, org_url: str = "", user: User | None = None) -> ListedRun | None:
    """Return a run as lists show it; None if it does not exist or the user may not see it."""
    rows = _rows(database, RunFilter(id=run_id, org_url=org_url, user=user), limit=1)
    return next(iter(_listed(database, rows)), None)


def distinct_values(database: Database, column: str, *, user: User | None = None) -> list[str]:
    """Return the values that the `definition`, `subject`, `branch` or `tag` of runs has, in order."""
    what = _TAGS if column == "tag" else f"{column} FROM listed_run WHERE {column} <> ''"
    rows = database.query(f"{_VALUES} {what} AND (user_id = ?1 OR ?1 IS NULL)", (_only(user),))
    return sorted(value for (value,) in rows)


def runs_without_tags(database: Database, run_ids: Sequence[str]) -> set[str]:
    """Return the runs whose results may lack the tags of their cases: those of other orgs, and of an older evalmeta."""
    ids = orjson.dumps([*run_ids]).decode()
    sql = "SELECT id FROM run WHERE id IN (SELECT value FROM json_each(?, '$')) AND keeps_tags = 1"
    return {*run_ids} - {run_id for (run_id,) in database.query(sql, (ids,))}


def recent_runs(
    database: Database,
    *,
    of_each: int,
    test: str = "",
    user: User | None = None,
    confirming: bool = True,
    counted: bool = True,
) -> dict[str, list[ListedRun]]:
    """Return the latest runs of each test that asked an agent, by the test's name, the oldest first.

    Unless `confirming`, runs that only asked suspect cases again are left out. `counted` is as for `newest_runs`.
    """
    values = _only(user), test, of_each, int(confirming)
    places = {(url, run_id) for url, run_id in database.query(_RECENT, values)}
    by_name: dict[str, list[ListedRun]] = {}
    for run in _listed(database, _rows_of(database, places), counted=counted):
        by_name.setdefault(run.definition, []).append(run)
    return {name: sorted(runs, key=lambda run: (run.started, run.id)) for name, runs in sorted(by_name.items())}


def with_counts(database: Database, runs: Sequence[ListedRun]) -> list[ListedRun]:
    """Return runs with their counts and verdicts, in the same order."""
    missing = {(run.org_url, run.id) for run in runs if not run.kept[0]}
    counted = {(run.org_url, run.id): run for run in _listed(database, _rows_of(database, missing))} if missing else {}
    return [counted.get((run.org_url, run.id), run) for run in runs]


def _rows(
    database: Database, wanted: RunFilter, *, limit: int, after: RunPlace | None = None, order: RunOrder = NEWEST
) -> list[Row]:
    """Return the rows of the view that a filter finds; only fields that are set make conditions."""
    fields = {**{name: getattr(wanted, name) for name in CONDITIONS}, "user": _only(wanted.user)}
    values = {name: value for name, value in fields.items() if value != getattr(_ALL, name)}
    conditions = [_OUTCOMES.get(wanted.outcome, "TRUE"), *(CONDITIONS[name] for name in values)]
    behind, place = after.behind(order) if after else ("TRUE", ())
    sql = f"{order.select} {' AND '.join([*conditions, behind])} ORDER BY {order.sql} LIMIT ?"
    return database.query(sql, (*values.values(), *place, limit))


def _rows_of(database: Database, places: Collection[tuple[str, str]]) -> list[Row]:
    """Return the rows of runs by org and id; SQLite finds ids that are parameters with its indexes."""
    ids = sorted({run_id for _, run_id in places})
    rows: list[Row] = []
    for start in range(0, len(ids), _MAX_PARAMETERS):
        chunk = ids[start : start + _MAX_PARAMETERS]
        rows += database.query(f"{_RUNS} id IN ({placeholders(chunk)})", chunk)
    return [row for row in rows if (row[0], row[2]) in places]


def _only(user: User | None) -> str | None:
    """Return the user whose runs alone are shown; None if all are."""
    return None if user is None or user.is_admin else user.id


def _listed(database: Database, rows: Sequence[Row], *, counted: bool = True) -> list[ListedRun]:
    """Return the runs of rows of the view: the last columns are the place, the tally, the verdict, options and user."""
    if not counted:
        return [_run((*row[:-5], (row[-4] or "", row[-3]), row[-2])) for row in rows]
    # Only runs here have no tally, if they are not over.
    uncounted = {row[2]: read_options(orjson.loads(row[-2])) for row in rows if row[-4] is None}
    tallies = tallies_of(database, uncounted)
    columns = [row[-4:-2] if row[-4] else tallies[row[2]].columns() for row in rows]
    return [_run((*row[:-5], kept, row[-2])) for row, kept in zip(rows, columns, strict=True)]


def _run(values: Row) -> ListedRun:
    return ListedRun(*values[:5], RunStatus(values[5]), *values[6:])  # type: ignore[call-arg] # as many as the view has
