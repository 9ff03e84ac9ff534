"""Deployments and retrieves that an org has carried out: each with the reply to whoever asks about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from evalmeta.store.record_ids import next_ids

if TYPE_CHECKING:
    from evalmeta.store.database import Database

__all__ = ["JobKind", "Jobs"]

JobKind = Literal["deploy", "retrieve"]

_PREFIXES: Final[dict[JobKind, str]] = {"deploy": "0Af", "retrieve": "09S"}


class Jobs:
    """Keeps jobs; call `new_id` and `save` inside one transaction."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def new_id(self, kind: JobKind) -> str:
        """Takes the next id of a kind of job."""
        return next_ids(self._database, _PREFIXES[kind])[0]

    def save(self, kind: JobKind, job_id: str, reply: bytes, *, now: float) -> None:
        """Keeps a finished job's reply."""
        self._database.execute("INSERT INTO job VALUES (?, ?, ?, ?)", (job_id, kind, now, reply))

    def reply(self, kind: JobKind, job_id: str) -> bytes | None:
        """Gives a job's reply; None when there is no such job."""
        rows = self._database.query("SELECT reply FROM job WHERE id = ? AND kind = ?", (job_id, kind))
        return rows[0][0] if rows else None
