"""Deployments and retrieves: accepted, carried out by one worker at a time, kept with the reply to whoever asks.

The jobs that a project's commands began in an org, so that later ones find them again.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import orjson

from evalmeta import limits
from evalmeta.store.database import next_ids, open_database, whole_id
from evalmeta.store.runs import Lease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.login import User
    from evalmeta.store.database import Database, Row


JobKind = Literal["deploy", "retrieve"]


_PREFIXES: Final[dict[JobKind, str]] = {"deploy": "0Af", "retrieve": "09S"}
_COLUMNS: Final = (
    "id, kind, status, user_id, user_name, check_only, created_at, started_at, ended_at, validation,"
    " canceled_by, canceled_name, options"
)
_UNFINISHED: Final = "place IS NULL AND reply IS NULL"


@dataclass(frozen=True, slots=True)
class Job:
    """A job without its request and its reply; times are seconds since the epoch.

    Attributes:
        status: Pending, InProgress, Canceling, Canceled, Succeeded, SucceededPartial or Failed.
        options: how it is to be done, as JSON.
        validation: the id of the validation whose bytes a quick deploy saves.
    """

    id: str
    kind: JobKind
    status: str
    user_id: str
    user_name: str
    check_only: bool
    created: float
    started: float | None
    ended: float | None
    validation: str | None
    canceled_by: str | None
    canceled_name: str | None
    options: bytes

    @property
    def is_over(self) -> bool:
        """Says whether nothing more will happen."""
        return self.ended is not None


class Jobs:
    """Keeps jobs. Ids are taken with 15 characters as well as with 18."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def submit(
        self,
        kind: JobKind,
        user: User,
        request: bytes,
        *,
        options: bytes,
        now: float,
        check_only: bool = False,
        validation: str | None = None,
    ) -> str:
        """Accepts a job and gives its id; call it inside a transaction."""
        [job_id] = next_ids(self._database, _PREFIXES[kind])
        sql = """
            INSERT INTO job (id, kind, status, user_id, user_name, check_only, created_at, validation, options, request)
            VALUES (?, ?, 'Pending', ?, ?, ?, ?, ?, ?, ?)
        """
        row = (job_id, kind, user.id, user.name, check_only, now, validation, options, request)
        self._database.execute(sql, row)
        return job_id

    def get(self, kind: JobKind, job_id: str) -> Job | None:
        """Gives a job; None when there is none of this kind."""
        sql = f"SELECT {_COLUMNS} FROM job WHERE id = ? AND kind = ?"  # noqa: S608 - constants
        rows = self._database.query(sql, (whole_id(job_id), kind))
        return _job(rows[0]) if rows else None

    def history(self) -> list[Job]:
        """Lists the finished deployments in the order in which they were carried out."""
        sql = f"SELECT {_COLUMNS} FROM job WHERE kind = 'deploy' AND place IS NOT NULL ORDER BY place"  # noqa: S608
        return [_job(row) for row in self._database.query(sql)]

    def request(self, job_id: str) -> bytes | None:
        """Gives what was sent; None when it is not kept any more."""
        return self._blob("request", job_id)

    def reply(self, job_id: str) -> bytes | None:
        """Gives a finished job's reply; None before."""
        return self._blob("reply", job_id)

    def count_unfinished(self) -> int:
        """Counts the jobs that wait or are worked on."""
        [(count,)] = self._database.query(f"SELECT count(*) FROM job WHERE {_UNFINISHED}")  # noqa: S608 - a constant
        return int(count)

    def is_unfinished(self, job_id: str) -> bool:
        """Tells whether a job waits or is worked on; there may be none of that id."""
        sql = f"SELECT EXISTS (SELECT 1 FROM job WHERE id = ? AND {_UNFINISHED})"  # noqa: S608 - a constant
        [(found,)] = self._database.query(sql, (whole_id(job_id),))
        return bool(found)

    def unfinished(self) -> list[tuple[Job, Lease]]:
        """Lists the jobs that wait or are worked on, the oldest first, and who works on each."""
        sql = f"SELECT worker, lease_until, {_COLUMNS} FROM job WHERE {_UNFINISHED} ORDER BY id"  # noqa: S608
        return [(_job(row[2:]), Lease(row[0], row[1])) for row in self._database.query(sql)]

    def claim(self, job_id: str, worker: str, *, taken_from: Lease, now: float) -> bool:
        """Takes a job whose lease is still as it was seen; False when somebody was faster or it is over."""
        sql = f"""
            UPDATE job SET worker = ?, lease_until = ?, started_at = coalesce(started_at, ?),
              status = CASE status WHEN 'Pending' THEN 'InProgress' ELSE status END
            WHERE id = ? AND {_UNFINISHED} AND worker IS ? AND lease_until IS ?
        """  # noqa: S608 - a constant
        values = (worker, now + limits.RUN_LEASE_SECONDS, now, job_id, taken_from.worker, taken_from.until)
        return self._database.execute(sql, values) == 1

    def finish(self, job_id: str, status: str, reply: bytes, *, now: float) -> None:
        """Ends a job; the request of a validation is kept for a quick deploy, others are dropped.

        Call it inside the transaction that does what the job is about, after `get` has said that it is not over.
        """
        sql = """
            UPDATE job SET status = ?, reply = ?, ended_at = ?, worker = NULL, lease_until = NULL,
              request = CASE WHEN check_only AND ? = 'Succeeded' THEN request END,
              place = (SELECT coalesce(max(place), 0) + 1 FROM job)
            WHERE id = ?
        """
        self._database.execute(sql, (status, reply, now, status, job_id))

    def ask_to_cancel(self, job_id: str, user: User) -> None:
        """Notes who wants a job to end before it has changed anything."""
        sql = f"""
            UPDATE job SET status = 'Canceling', canceled_by = ?, canceled_name = ? WHERE id = ? AND {_UNFINISHED}
        """  # noqa: S608 - a constant
        self._database.execute(sql, (user.id, user.name, whole_id(job_id)))

    def is_outdated(self, validation: str) -> bool:
        """Tells whether the org was deployed to after a validation."""
        sql = """
            SELECT EXISTS (
              SELECT 1 FROM job WHERE kind = 'deploy' AND NOT check_only AND status IN ('Succeeded', 'SucceededPartial')
                AND place > (SELECT place FROM job WHERE id = ?)
            )
        """
        [(found,)] = self._database.query(sql, (validation,))
        return bool(found)

    def is_used(self, validation: str) -> bool:
        """Tells whether a quick deploy of a validation waits, is being carried out or was carried out."""
        sql = "SELECT EXISTS (SELECT 1 FROM job WHERE validation = ? AND status NOT IN ('Failed', 'Canceled'))"
        [(found,)] = self._database.query(sql, (validation,))
        return bool(found)

    def prune(self, *, now: float) -> None:
        """Forgets jobs that ended long ago (limits.DEPLOY_KEPT_SECONDS, limits.RETRIEVE_KEPT_SECONDS).

        The zips of validations go when nobody can deploy them any more.
        """
        kept = {"deploy": limits.DEPLOY_KEPT_SECONDS, "retrieve": limits.RETRIEVE_KEPT_SECONDS}
        for kind, seconds in kept.items():
            self._database.execute("DELETE FROM job WHERE kind = ? AND ended_at < ?", (kind, now - seconds))
        # A validation that was used is one that the org was deployed to after.
        sql = """
            UPDATE job SET request = NULL WHERE check_only AND place IS NOT NULL AND request IS NOT NULL AND (
              ended_at < ? OR place < (
                SELECT max(place) FROM job
                WHERE kind = 'deploy' AND NOT check_only AND status IN ('Succeeded', 'SucceededPartial')
              )
            )
        """
        self._database.execute(sql, (now - limits.QUICK_DEPLOY_SECONDS,))

    def _blob(self, column: Literal["request", "reply"], job_id: str) -> bytes | None:
        rows = self._database.query(f"SELECT {column} FROM job WHERE id = ?", (whole_id(job_id),))  # noqa: S608
        return rows[0][0] if rows else None


def _job(row: Row) -> Job:
    job_id, kind, status, user_id, user_name, check_only, *rest = row
    return Job(job_id, kind, status, user_id, user_name, bool(check_only), *rest)


ReceiptKind = Literal["deploy", "validate", "test"]
Sent = dict[str, dict[str, bytes]]
"""SHA-256 of the contents that were sent, by type and full name."""


# An id has 15 characters, and three more that only check it.
_ID_CHARS: Final = 15


class Receipts:
    """Keeps one project's jobs in one org."""

    __slots__ = ("_database", "_owner")

    def __init__(self, database: Database, *, project: str, org_url: str) -> None:
        self._database = database
        self._owner = (project, org_url)

    def keep(self, kind: ReceiptKind, job_id: str, *, now: float, sent: Sent | None = None) -> None:
        """Notes a job as the most recent of its kind, and forgets those that orgs do not know any more."""
        sql = "INSERT INTO receipt (project, org_url, kind, job_id, kept_at, sent) VALUES (?, ?, ?, ?, ?, ?)"
        with self._database.transaction():
            self._database.execute("DELETE FROM receipt WHERE kept_at < ?", (now - limits.DEPLOY_KEPT_SECONDS,))
            self._database.execute(sql, (*self._owner, kind, job_id, now, None if sent is None else _write(sent)))

    def latest(self, *kinds: ReceiptKind) -> str | None:
        """Gives the id of the most recent job of these kinds; None when there is none."""
        sql = f"""
            SELECT job_id FROM receipt WHERE project = ? AND org_url = ? AND kind IN ({", ".join("?" * len(kinds))})
            ORDER BY number DESC LIMIT 1
        """  # noqa: S608 - question marks
        rows = self._database.query(sql, (*self._owner, *kinds))
        return rows[0][0] if rows else None

    def latest_anywhere(self, kind: ReceiptKind) -> tuple[str, str] | None:
        """Gives the org's address and the id of the project's most recent job of a kind in any org."""
        sql = "SELECT org_url, job_id FROM receipt WHERE project = ? AND kind = ? ORDER BY number DESC LIMIT 1"
        rows = self._database.query(sql, (self._owner[0], kind))
        return (rows[0][0], rows[0][1]) if rows else None

    def sent(self, job_id: str) -> Sent | None:
        """Gives what a job sent; None when it is not known, or is settled."""
        sql = "SELECT sent FROM receipt WHERE project = ? AND org_url = ? AND substr(job_id, 1, ?) = ? AND sent NOTNULL"
        rows = self._database.query(sql, (*self._owner, _ID_CHARS, job_id[:_ID_CHARS]))
        return _read(rows[0][0]) if rows else None

    def settle(self, job_id: str) -> None:
        """Drops what a job sent, when it is remembered elsewhere; the job itself is still found."""
        sql = "UPDATE receipt SET sent = NULL WHERE project = ? AND org_url = ? AND substr(job_id, 1, ?) = ?"
        self._database.execute(sql, (*self._owner, _ID_CHARS, job_id[:_ID_CHARS]))


@contextmanager
def open_receipts(state_dir: Path, *, root: Path, org_url: str) -> Iterator[Receipts]:
    """Opens a project's jobs in an org.

    Args:
        state_dir: the folder with the project's database; projects may share it.
        root: the project's folder.
        org_url: the org's address.

    Raises:
        StoreError: the database cannot be used.
    """
    with open_database(state_dir) as database:
        yield Receipts(database, project=os.path.relpath(root, state_dir), org_url=org_url)


def _write(sent: Sent) -> bytes:
    return orjson.dumps({kind: {name: each.hex() for name, each in ours.items()} for kind, ours in sent.items()})


def _read(data: bytes) -> Sent:
    stored: dict[str, dict[str, str]] = orjson.loads(data)
    return {kind: {name: bytes.fromhex(each) for name, each in ours.items()} for kind, ours in stored.items()}
