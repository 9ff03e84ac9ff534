"""Deleting runs that nobody needs any more, and giving their room on the disk back."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.store.database import Database

_WEEK_SECONDS: Final = 7 * 24 * 3600.0
# Other programs write between two steps: each takes some hundredths of a second.
_ROWS_OF_A_STEP: Final = 2_000
_PAGES_OF_A_STEP: Final = 2_000
_ROOM_TO_REWRITE: Final = 2.2
_PAGES: Final = """
    SELECT page_size, page_count, freelist_count, auto_vacuum
    FROM pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_auto_vacuum
"""
# The age of a run is the number of complete runs of all cases of its test that began later. If a test has none, its
# other complete runs count. Runs that only asked suspect cases again go with the runs whose cases these are.
_OLD: Final = """
    WITH own AS (
      SELECT org_url, id, definition, started, total, status = 'COMPLETED' AND answers_of IS NULL AS is_complete,
        coalesce(json_extract(CAST(options AS TEXT), '$.cases'), json_extract(CAST(options AS TEXT), '$.shard')) IS NULL
          AS has_all
      FROM listed_run WHERE confirms = ''
    ), counted AS (
      SELECT *, is_complete AND (has_all OR NOT max(is_complete AND has_all) OVER test) AS counts FROM own
      WINDOW test AS (PARTITION BY org_url, definition COLLATE NOCASE)
    ), aged AS (
      SELECT *, coalesce(sum(counts) OVER (
        PARTITION BY org_url, definition COLLATE NOCASE ORDER BY started DESC, id DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS age FROM counted
    )
    SELECT org_url, id, definition, started, total, use FROM aged JOIN run_use USING (org_url, id)
    WHERE (?1 IS NULL OR age >= ?1) AND (?2 IS NULL OR started < ?2) ORDER BY started, id
"""
_DELETIONS: Final = (
    "DELETE FROM run_digest WHERE org_url = ? AND run_id = ?",
    "DELETE FROM remote_run WHERE org_url = ? AND id = ?",
    "DELETE FROM run WHERE ? = '' AND id = ?",
)


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
            database.execute_many("INSERT OR IGNORE INTO used_run VALUES (?, ?, ?)", rows)


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
    database.execute("PRAGMA foreign_keys = OFF")
    try:
        known = tuple(run._replace(use=_delete_run(database, run)) for run in runs)
    finally:
        database.execute("PRAGMA foreign_keys = ON")
    _delete_rest(database)
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
    """Delete what belongs to no run any more: results, step by step, and contents and suites."""
    for (run_id,) in database.query("SELECT DISTINCT run_id FROM case_result WHERE run_id NOT IN (SELECT id FROM run)"):
        has_more = True
        while has_more:
            with _pause_after():
                has_more = _delete_some_results(database, run_id)
    with database.transaction():
        delete_unused_contents(database)
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
          SELECT content_sha256 FROM run WHERE content_sha256 NOT NULL
          UNION ALL SELECT content_sha256 FROM remote_run WHERE content_sha256 NOT NULL
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
        SELECT count(*), min(started), coalesce(sum(total), 0), coalesce(sum(total * (started > ?)), 0) FROM listed_run
    """
    [(runs, since, results, recent)] = database.query(sql, (now - _WEEK_SECONDS,))
    size = store_bytes(database.path)
    return StoreState(size, runs, since, size * recent / max(1, results))


def store_bytes(path: Path) -> int:
    """Return the size of a database's files, its log included."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def shrink(database: Database) -> None:
    """Make the file smaller by its free room.

    If little is in use, the file is written anew, which takes a second for 100 MB and needs twice as much room on the
    disk. Otherwise, or if there is not enough room, free pages are given back step by step for
    `limits.SHRINK_SECONDS`; new runs use what is left. A file from before incremental vacuum must be written anew.
    """
    [(page_size, pages, free, mode)] = database.query(_PAGES)
    used = page_size * (pages - free)
    has_room = shutil.disk_usage(database.path.parent).free > _ROOM_TO_REWRITE * used
    if free and has_room and used <= limits.MAX_REWRITTEN_BYTES:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("VACUUM")
    elif mode:
        _give_pages_back(database, free)
    # The log may be as large as the file was; it stays if somebody reads.
    with suppress(StoreError):
        database.query("PRAGMA wal_checkpoint(TRUNCATE)")


def _give_pages_back(database: Database, free: int) -> None:
    deadline = time.monotonic() + limits.SHRINK_SECONDS
    while free and time.monotonic() < deadline:
        with _pause_after():
            database.execute_script(f"PRAGMA incremental_vacuum({_PAGES_OF_A_STEP})")
        [(free,)] = database.query("PRAGMA freelist_count")


@contextmanager
def _pause_after() -> Iterator[None]:
    """Leave the database to other programs after the block: a sixth of the time, so that none waits too long."""
    begun = time.monotonic()
    yield
    time.sleep((time.monotonic() - begun) / 5)
