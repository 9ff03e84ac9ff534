"""Runs in other orgs, kept beside the project's own with all that came back."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.model.averages import counted_verdicts
from evalmeta.model.run import Verdict
from evalmeta.store.database import open_database
from evalmeta.wire.connect import read_run, write_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.store.database import Database

__all__ = ["RemoteRun", "RemoteRuns", "open_remote_runs"]

# An id has 15 characters, and three more that only check it.
_ID_CHARS: Final = 15


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run in another org.

    Attributes:
        org_url: the org's address.
        org_name: what people called the org then: an alias, a username or the address.
        run: the run as it was last seen; its id is that of the first job.
        jobs: the ids of the org's own runs, one for each iteration that has begun.
    """

    org_url: str
    org_name: str
    run: Run
    jobs: tuple[str, ...]


class RemoteRuns:
    """Keeps runs of other orgs, each once for its org."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, remote: RemoteRun) -> None:
        """Keeps a run as it is now, in place of what was known of it."""
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
        """Gives the runs with an id, of 15 characters or 18, the latest first: orgs count their ids on their own."""
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
    """Opens the runs of other orgs that are kept in a state folder.

    Raises:
        StoreError: the database cannot be used.
    """
    database = open_database(state_dir)
    try:
        yield RemoteRuns(database)
    finally:
        database.close()
