"""The stored runs of other orgs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from evalmeta.model.registry import hash_of
from evalmeta.model.tally import summarise
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.protocol.runs import write_options
from evalmeta.store.database import SHORT_ID_CHARS, Database, open_database
from evalmeta.store.kept_numbers import KeptTally
from evalmeta.store.runs import keep_content
from evalmeta.store.sql import upsert
from evalmeta.store.suites import mark_started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.model.store import Store
    from evalmeta.store.sql import Row, Value


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
        origin, tally = run.options.origin, KeptTally.of(summarise(run.cases, run.options), run.status, total=run.total)
        counts, verdict = tally.columns()
        columns: dict[str, Value] = {
            "org_url": remote.org_url,
            "id": run.id,
            "org_name": remote.org_name,
            "definition": run.definition,
            "content_sha256": remote.content and hash_of(remote.content),
            "subject": run.subject_name,
            "status": run.status.value,
            "options": orjson.dumps(write_options(run.options)),
            "total": run.total,
            "suite": origin.suite,
            "branch": origin.branch,
            "answers_of": run.answers_of,
            "confirms": run.options.confirms,
            "place": origin.place,
            "started_at": run.started,
            "ended_at": run.ended,
            "tally": counts,
            "verdict": verdict,
            "jobs": orjson.dumps(remote.jobs),
            "body": orjson.dumps(write_run(run, escape=False)),
        }
        with self._database.transaction():
            if remote.content:
                keep_content(self._database, remote.content)
            self._database.execute(upsert("remote_run", "org_url, id", ", ".join(columns)), [*columns.values()])
            mark_started(self._database, run.options)

    def find(self, run_id: str, *, org_url: str | None = None) -> list[RemoteRun]:
        """Return the runs with an id of 15 or 18 characters, the latest first; several orgs may have the same id."""
        sql = """
            SELECT org_url, org_name, jobs, body, data FROM remote_run LEFT JOIN content ON sha256 = content_sha256
            WHERE id >= ?1 AND id < ?1 || '~' AND (org_url = ?2 OR ?2 IS NULL) ORDER BY started_at DESC
        """
        return list(map(_remote_run, self._database.query(sql, (run_id[:SHORT_ID_CHARS], org_url))))

    def same(self, remote: RemoteRun, *, limit: int) -> list[RemoteRun]:
        """Return at most `limit` complete runs of the same definition, unchanged, in the same org, the newest first.

        The run itself is not one of them.
        """
        sql = """
            SELECT org_url, org_name, jobs, body, data FROM remote_run LEFT JOIN content ON sha256 = content_sha256
            WHERE org_url = ? AND definition = ? AND content_sha256 = ? AND status = 'COMPLETED' AND id <> ?
            ORDER BY started_at DESC LIMIT ?
        """
        digest = hash_of(remote.content or b"")
        values = (remote.org_url, remote.run.definition, digest, remote.run.id, limit)
        return list(map(_remote_run, self._database.query(sql, values)))


def _remote_run(row: Row) -> RemoteRun:
    url, name, jobs, body, content = row
    return RemoteRun(url, name, read_run(orjson.loads(body)), tuple(orjson.loads(jobs)), content)


@contextmanager
def open_remote_runs(place: Store | Path) -> Iterator[RemoteRuns]:
    """Open the stored runs of other orgs in a store."""
    with open_database(place) as database:
        yield RemoteRuns(database)
