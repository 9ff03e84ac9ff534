"""Deployments and retrieves of an org: queued, executed by one worker at a time, and stored with their replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from evalmeta import limits
from evalmeta.store.database import Database, full_id, next_ids
from evalmeta.store.runs import Lease

if TYPE_CHECKING:
    from evalmeta.model.login import User
    from evalmeta.store.sql import Row


JobKind = Literal["deploy", "retrieve"]
_PREFIXES: Final[dict[JobKind, str]] = {"deploy": "0Af", "retrieve": "09S"}
_SELECT_JOB: Final = """
    SELECT id, kind, status, user_id, user_name, check_only, created_at, started_at, ended_at, validation,
      canceled_by, canceled_name, options, worker, lease_until
    FROM job
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A job without its request and its reply; times are seconds since the epoch."""

    id: str
    kind: JobKind
    status: str  # Pending, InProgress, Canceling, Canceled, Succeeded, SucceededPartial or Failed
    user_id: str
    user_name: str
    check_only: bool
    created: float
    started: float | None
    ended: float | None
    validation: str | None  # the id of the validation that a quick deploy deploys
    canceled_by: str | None
    canceled_name: str | None
    options: bytes  # JSON

    @property
    def is_over(self) -> bool:
        """Return whether the job has ended."""
        return self.ended is not None


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of an org; ids may have 15 or 18 characters."""

    _database: Database

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
        """Save a new job and return its id; call it inside a transaction."""
        [job_id] = next_ids(self._database, _PREFIXES[kind])
        sql = """
            INSERT INTO job (id, kind, status, user_id, user_name, check_only, created_at, validation, options, request)
            VALUES (?, ?, 'Pending', ?, ?, ?, ?, ?, ?, ?)
        """
        row = (job_id, kind, user.id, user.name, check_only, now, validation, options, request)
        self._database.execute(sql, row)
        return job_id

    def get(self, kind: JobKind, job_id: str) -> Job | None:
        """Return a job; None if there is none of this kind."""
        rows = self._database.query(f"{_SELECT_JOB} WHERE id = ? AND kind = ?", (full_id(job_id), kind))
        return _job(rows[0]) if rows else None

    def history(self) -> list[Job]:
        """List the finished deployments in the order of their execution."""
        sql = f"{_SELECT_JOB} WHERE kind = 'deploy' AND place IS NOT NULL ORDER BY place"
        return [_job(row) for row in self._database.query(sql)]

    def latest(self, *, limit: int, user_id: str | None = None) -> tuple[list[Job], int]:
        """List the finished deployments of a user, or of all, the newest first up to a limit; and count all of them."""
        sql = f"""
            {_SELECT_JOB} WHERE kind = 'deploy' AND place IS NOT NULL AND (user_id = ?1 OR ?1 IS NULL)
            ORDER BY place DESC LIMIT ?2
        """
        latest = [_job(row) for row in self._database.query(sql, (user_id, limit))]
        sql = "SELECT count(*) FROM job WHERE kind = 'deploy' AND place IS NOT NULL AND (user_id = ?1 OR ?1 IS NULL)"
        [(count,)] = self._database.query(sql, (user_id,))
        return latest, int(count)

    def applied(self, *, since: float, limit: int) -> list[Job]:
        """List the latest deployments that may have changed the org since a time, in the order of their execution."""
        sql = f"""
            {_SELECT_JOB} WHERE kind = 'deploy' AND NOT check_only AND status IN ('Succeeded', 'SucceededPartial')
              AND ended_at >= ? ORDER BY place DESC LIMIT ?
        """
        return [_job(row) for row in reversed(self._database.query(sql, (since, limit)))]

    def request(self, job_id: str) -> bytes | None:
        """Return the request of a job; None if it was deleted."""
        rows = self._database.query("SELECT request FROM job WHERE id = ?", (full_id(job_id),))
        return rows[0][0] if rows else None

    def reply(self, job_id: str) -> bytes | None:
        """Return the reply of a finished job; None for others."""
        rows = self._database.query("SELECT reply FROM job WHERE id = ?", (full_id(job_id),))
        return rows[0][0] if rows else None

    def count_unfinished(self) -> int:
        """Return the number of jobs that are waiting or in progress."""
        [(count,)] = self._database.query("SELECT count(*) FROM job WHERE place IS NULL AND reply IS NULL")
        return int(count)

    def is_unfinished(self, job_id: str) -> bool:
        """Return whether a job is waiting or in progress; False for unknown ids."""
        sql = "SELECT EXISTS (SELECT 1 FROM job WHERE id = ? AND place IS NULL AND reply IS NULL)"
        [(found,)] = self._database.query(sql, (full_id(job_id),))
        return bool(found)

    def unfinished(self) -> list[tuple[Job, Lease]]:
        """List the jobs that are waiting or in progress with their leases, the oldest first."""
        rows = self._database.query(f"{_SELECT_JOB} WHERE place IS NULL AND reply IS NULL ORDER BY id")
        return [(_job(row), Lease(*row[-2:])) for row in rows]

    def claim(self, job_id: str, worker: str, *, taken_from: Lease, now: float) -> bool:
        """Lease a job whose lease is still `taken_from`; False if another worker was faster or it has ended."""
        sql = """
            UPDATE job SET worker = ?, lease_until = ?, started_at = coalesce(started_at, ?),
              status = CASE status WHEN 'Pending' THEN 'InProgress' ELSE status END
            WHERE id = ? AND place IS NULL AND reply IS NULL AND worker IS ? AND lease_until IS ?
        """
        values = (worker, now + limits.RUN_LEASE_SECONDS, now, job_id, taken_from.worker, taken_from.until)
        return self._database.execute(sql, values) == 1

    def finish(self, job_id: str, status: str, reply: bytes, *, now: float) -> None:
        """End a job and delete its request, except that of a successful validation, which a quick deploy needs.

        Call it inside the transaction that executes the job, after checking with `get` that the job has not ended.
        """
        sql = """
            UPDATE job SET status = ?, reply = ?, ended_at = ?, worker = NULL, lease_until = NULL,
              request = CASE WHEN check_only AND ? = 'Succeeded' THEN request END,
              place = (SELECT coalesce(max(place), 0) + 1 FROM job)
            WHERE id = ?
        """
        self._database.execute(sql, (status, reply, now, status, job_id))

    def request_cancel(self, job_id: str, user: User) -> None:
        """Request that a job ends before it has changed anything."""
        sql = """
            UPDATE job SET status = 'Canceling', canceled_by = ?, canceled_name = ?
            WHERE id = ? AND place IS NULL AND reply IS NULL
        """
        self._database.execute(sql, (user.id, user.name, full_id(job_id)))

    def void_validations(self) -> None:
        """Delete the zips of all validations: a component was deleted, which leaves no other trace."""
        self._database.execute("UPDATE job SET request = NULL WHERE check_only AND place IS NOT NULL", ())

    def is_outdated(self, validation: str) -> bool:
        """Return whether something was deployed to the org, or a component was saved or deleted, after a validation."""
        sql = """
            SELECT EXISTS (
              SELECT 1 FROM job WHERE id = ?1 AND request IS NULL
            ) OR EXISTS (
              SELECT 1 FROM component WHERE modified_at > (SELECT ended_at FROM job WHERE id = ?1)
            ) OR EXISTS (
              SELECT 1 FROM job WHERE kind = 'deploy' AND NOT check_only AND status IN ('Succeeded', 'SucceededPartial')
                AND place > (SELECT place FROM job WHERE id = ?1)
            )
        """
        [(found,)] = self._database.query(sql, (validation,))
        return bool(found)

    def is_used(self, validation: str) -> bool:
        """Return whether a quick deploy of a validation is waiting, in progress or done."""
        sql = "SELECT EXISTS (SELECT 1 FROM job WHERE validation = ? AND status NOT IN ('Failed', 'Canceled'))"
        [(found,)] = self._database.query(sql, (validation,))
        return bool(found)

    def prune(self, *, now: float) -> None:
        """Delete jobs that ended long ago, and the zips of validations that cannot be deployed any more."""
        kept = {"deploy": limits.DEPLOY_KEPT_SECONDS, "retrieve": limits.RETRIEVE_KEPT_SECONDS}
        for kind, seconds in kept.items():
            self._database.execute("DELETE FROM job WHERE kind = ? AND ended_at < ?", (kind, now - seconds))
        # A quick deploy of the validation counts as a later deployment too.
        sql = """
            UPDATE job SET request = NULL WHERE check_only AND place IS NOT NULL AND request IS NOT NULL AND (
              ended_at < ? OR place < (
                SELECT max(place) FROM job
                WHERE kind = 'deploy' AND NOT check_only AND status IN ('Succeeded', 'SucceededPartial')
              )
            )
        """
        self._database.execute(sql, (now - limits.QUICK_DEPLOY_SECONDS,))


def _job(row: Row) -> Job:
    job_id, kind, status, user_id, user_name, check_only, *rest, _worker, _lease_until = row
    return Job(job_id, kind, status, user_id, user_name, bool(check_only), *rest)
