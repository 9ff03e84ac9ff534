"""The history of runs in the project's own org and in others, and the stored runs of other orgs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.model.run import RunStatus
from evalmeta.model.tally import summarise
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.store.database import SHORT_ID_CHARS, open_database
from evalmeta.store.kept_numbers import KeptTally

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.store.database import Database, Row


_COMPLETE: Final = """
    SELECT '' AS org_url, id, definition, coalesce(started_at, created_at) AS started_at,
      CASE WHEN substr(content, 1, 8) = CAST('{"file":' AS BLOB) THEN content END AS file
    FROM run WHERE status = 'COMPLETED'
    UNION ALL
    SELECT org_url, id, definition, started_at, NULL FROM remote_run WHERE status = 'COMPLETED'
    ORDER BY started_at, id
"""
_NEWEST: Final = """
    SELECT org_url, id, definition, status FROM (
      SELECT '' AS org_url, id, definition, status, coalesce(started_at, created_at) AS started_at FROM run
      UNION ALL
      SELECT org_url, id, definition, status, started_at FROM remote_run
    )
    WHERE (?1 IS NULL OR definition = ?1 COLLATE NOCASE) AND (?2 IS NULL OR org_url = ?2)
    ORDER BY started_at DESC, id DESC
"""
_ASKS_AGAIN: Final = """
    SELECT 1 FROM run WHERE ?2 = '' AND id = ?1 AND instr(options, ?3)
    UNION ALL
    SELECT 1 FROM remote_run WHERE org_url = ?2 AND id = ?1 AND instr(body, ?3)
"""


class CompleteRun(NamedTuple):
    """A complete run; `org_url` is empty for the project's own org, and `file` for runs of deployed definitions."""

    org_url: str
    id: str
    definition: str
    started: float
    file: str = ""


class KnownRun(NamedTuple):
    """A run in any state; `org_url` is empty for the project's own org."""

    org_url: str
    id: str
    definition: str
    status: RunStatus


def newest_runs(database: Database, *, definition: str | None = None, org_url: str | None = None) -> list[KnownRun]:
    """List the runs of a definition, or of all, in an org, or in all, the newest first."""
    rows = database.query(_NEWEST, (definition, org_url))
    return [KnownRun(url, run_id, name, RunStatus(status)) for url, run_id, name, status in rows]


def only_asks_again(database: Database, run: KnownRun) -> bool:
    """Return whether a run only asked the suspect cases of another run again."""
    # In JSON, only a key is followed by a quote and a colon: quotes in texts are escaped.
    return bool(database.query(_ASKS_AGAIN, (run.id, run.org_url, b'"confirms":"')))


def complete_runs(database: Database) -> list[CompleteRun]:
    """List the complete runs of all orgs, the oldest first; their cases are not read."""
    return [
        CompleteRun(url, run_id, definition, started, orjson.loads(content)["file"] if content else "")
        for url, run_id, definition, started, content in database.query(_COMPLETE)
    ]


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run in another org."""

    org_url: str
    org_name: str  # an alias, a username or the address, as the org was called when the run started
    run: Run  # the last known state; its id is that of the first job
    jobs: tuple[str, ...]  # the ids of the org's own runs, one for each iteration that has started
    content: bytes | None = None  # the definition as it was in the org; None if it was not retrieved


class RemoteRuns:
    """The runs of other orgs."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, remote: RemoteRun) -> None:
        """Save the current state of a run."""
        run = remote.run
        tally = KeptTally.of(summarise(run.cases, run.options), run.status, total=run.total)
        sql = """
            INSERT OR REPLACE INTO remote_run
              (org_url, id, org_name, definition, status, started_at, ended_at, total,
               tally, verdict, jobs, body, suite, branch, content)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
        place = (remote.org_url, run.id, remote.org_name, run.definition)
        times = (run.status.value, run.started, run.ended, run.total)
        blobs = (orjson.dumps(remote.jobs), orjson.dumps(write_run(run, escape=False)))
        origin = (run.options.origin.suite or None, run.options.origin.branch or None)
        self._database.execute(sql, (*place, *times, *tally.columns(), *blobs, *origin, remote.content))

    def find(self, run_id: str, *, org_url: str | None = None) -> list[RemoteRun]:
        """Return the runs with an id of 15 or 18 characters, the latest first; several orgs may have the same id."""
        sql = """
            SELECT org_url, org_name, jobs, body, content FROM remote_run
            WHERE id >= ?1 AND id < ?1 || '~' AND (?2 IS NULL OR org_url = ?2) ORDER BY started_at DESC
        """
        return list(map(_remote_run, self._database.query(sql, (run_id[:SHORT_ID_CHARS], org_url))))

    def same(self, remote: RemoteRun, *, limit: int) -> list[RemoteRun]:
        """Return at most `limit` complete runs of the same definition, unchanged, in the same org, the newest first.

        The run itself is not one of them.
        """
        sql = """
            SELECT org_url, org_name, jobs, body, content FROM remote_run
            WHERE org_url = ? AND definition = ? AND content = ? AND status = 'COMPLETED' AND id <> ?
            ORDER BY started_at DESC LIMIT ?
        """
        values = (remote.org_url, remote.run.definition, remote.content, remote.run.id, limit)
        return list(map(_remote_run, self._database.query(sql, values)))


def _remote_run(row: Row) -> RemoteRun:
    url, name, jobs, body, content = row
    return RemoteRun(url, name, read_run(orjson.loads(body)), tuple(orjson.loads(jobs)), content)


@contextmanager
def open_remote_runs(state_dir: Path) -> Iterator[RemoteRuns]:
    """Open the stored runs of other orgs in a state folder."""
    with open_database(state_dir) as database:
        yield RemoteRuns(database)
