"""Deleting runs that nobody needs any more, and how large the store is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.store.kept_numbers import forget_digests_of_deleted_runs
from evalmeta.store.search_index import forget_deleted_runs
from evalmeta.store.sqlite import pause_after

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.store.database import Database

_WEEK_SECONDS: Final = 7 * 24 * 3600.0
# Other programs write between two steps: each takes some hundredths of a second.
_ROWS_OF_A_STEP: Final = 2_000
# The age of a run is the number of complete runs of all cases of its test that began later. If a test has none, its
# other complete runs count. Runs that only asked suspect cases again go with the runs whose cases these are.
_OLD: Final = """
    WITH own AS (
      SELECT org_url, id, definition, started, total, (status = 'COMPLETED' AND answers_of IS NULL) AS is_complete,
        (coalesce(json_extract(CAST(options AS TEXT), '$.cases'), json_extract(CAST(options AS TEXT), '$.shard'))
          IS NULL) AS has_all
      FROM listed_run WHERE confirms = ''
    ), counted AS (
      SELECT *, CASE WHEN is_complete AND (has_all OR count(*) FILTER (WHERE is_complete AND has_all) OVER test = 0)
        THEN 1 ELSE 0 END AS counts
      FROM own WINDOW test AS (PARTITION BY org_url, definition COLLATE NOCASE)
    ), aged AS (
      SELECT *, coalesce(sum(counts) OVER (
        PARTITION BY org_url, definition COLLATE NOCASE ORDER BY started DESC, id DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS age FROM counted
    )
    SELECT org_url, id, definition, started, total, use FROM aged JOIN run_use USING (org_url, id)
    WHERE (age >= ?1 OR ?1 IS NULL) AND (started < ?2 OR ?2 IS NULL) ORDER BY started, id
"""
_DELETIONS: Final = ("DELETE FROM remote_run WHERE org_url = ? AND id = ?", "DELETE FROM run WHERE ? = '' AND id = ?")


class OldRun(NamedTuple):
    """A run that is too old to stay; `use` says why it stays nevertheless, empty if it goes.

    The address of the org is empty for the project's own; `started` is in seconds since the epoch.
    """

    org_url: str
    id: str
    definition: str
    started: float
    results: int
    use: str


def old_runs(database: Database, *, keep: int | None, before: float | None) -> list[OldRun]:
    """List the runs that began before the latest `keep` complete ones of their test, and before a time.

    The oldest comes first. None stands for no such condition. Runs that were canceled, that asked only some cases, or
    that judge the answers of another run are not counted as complete.
    """
    return [OldRun(*row) for row in database.query(_OLD, (keep, before))]


def note_baseline(database: Database, baseline: str, tests: Mapping[str, Sequence[str]]) -> None:
    """Note from which runs tests of a baseline were saved, by their names, so that these runs stay."""
    with database.transaction():
        for test, run_ids in tests.items():
            database.execute("DELETE FROM used_run WHERE baseline = ? AND test = ?", (baseline, test))
            rows = [(baseline, test, run_id) for run_id in run_ids]
            database.execute_many("INSERT INTO used_run VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)


def noted_baselines(database: Database) -> list[str]:
    """List the baselines whose runs are noted."""
    return [baseline for (baseline,) in database.query("SELECT DISTINCT baseline FROM used_run ORDER BY baseline")]


def forget_baseline(database: Database, baseline: str) -> None:
    """Delete the note about a baseline, which does not exist any more."""
    database.execute("DELETE FROM used_run WHERE baseline = ?", (baseline,))


def delete_runs(database: Database, runs: Sequence[OldRun]) -> tuple[OldRun, ...]:
    """Delete runs with all that belongs to them, and return them; those that are needed by now stay, with their use.

    Other programs can read and write meanwhile. If the process is killed, a run is there with all its results or not at
    all; the next call deletes results that are left.
    """
    # A run goes before its results, which are too many for one transaction.
    with database.references_unchecked():
        known = tuple(run._replace(use=_delete_run(database, run)) for run in runs)
    _delete_rest(database)
    forget_deleted_runs(database)
    return known


def _delete_run(database: Database, run: OldRun) -> str:
    """Delete a run, unless it is needed; return what for."""
    place = (run.org_url, run.id)
    confirming = "SELECT id FROM listed_run WHERE org_url = ? AND confirms = ?"
    with database.transaction():
        for (use,) in database.query("SELECT use FROM run_use WHERE org_url = ? AND id = ?", place):
            if use:
                return str(use)
        for (run_id,) in [(run.id,), *database.query(confirming, place)]:
            for sql in _DELETIONS:
                database.execute(sql, (run.org_url, run_id))
    return ""


def _delete_rest(database: Database) -> None:
    """Delete what belongs to no run any more: results, step by step, and contents, kept numbers and suites."""
    for (run_id,) in database.query("SELECT DISTINCT run_id FROM case_result WHERE run_id NOT IN (SELECT id FROM run)"):
        has_more = True
        while has_more:
            with pause_after():
                has_more = _delete_some_results(database, run_id)
    with database.transaction():
        delete_unused_contents(database)
        forget_digests_of_deleted_runs(database)
        database.execute("""
            DELETE FROM suite WHERE id NOT IN (SELECT suite FROM listed_run)
              AND id NOT IN (SELECT suite FROM suite_test WHERE state = 'due')
        """)


def _delete_some_results(database: Database, run_id: str) -> bool:
    """Delete some results of a run; return whether there are more."""
    first = "SELECT iteration, number FROM case_result WHERE run_id = ? ORDER BY iteration, number LIMIT 1 OFFSET ?"
    rows = database.query(first, (run_id, _ROWS_OF_A_STEP))
    if rows:
        sql = "DELETE FROM case_result WHERE run_id = ? AND (iteration, number) < (?, ?)"
        database.execute(sql, (run_id, *rows[0]))
    else:
        database.execute("DELETE FROM case_result WHERE run_id = ?", (run_id,))
    return bool(rows)


def delete_unused_contents(database: Database) -> None:
    """Delete the contents of tests that no run has; call it inside a transaction."""
    database.execute("""
        DELETE FROM content WHERE sha256 NOT IN (
          SELECT content_sha256 FROM run WHERE content_sha256 IS NOT NULL
          UNION ALL SELECT content_sha256 FROM remote_run WHERE content_sha256 IS NOT NULL
        )
    """)


class StoreState(NamedTuple):
    """The size of a store, in bytes, its runs, when the first began, and about how much it grew in the last week."""

    size: int
    runs: int
    since: float | None
    growth: float


def state_of_store(database: Database, *, now: float) -> StoreState:
    """Return the size and growth of a store; the growth is the share of the results of the last week."""
    sql = """
        SELECT count(*), min(started), CAST(coalesce(sum(total), 0) AS BIGINT),
          CAST(coalesce(sum(CASE WHEN started > ? THEN total ELSE 0 END), 0) AS BIGINT)
        FROM listed_run
    """
    [(runs, since, results, recent)] = database.query(sql, (now - _WEEK_SECONDS,))
    size = database.size()
    return StoreState(size, runs, since, size * recent / max(1, results))
