"""The jobs that a project's commands began in an org, so that later ones find them again."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

import orjson

from evalmeta import limits
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.store.database import Database

__all__ = ["ReceiptKind", "Receipts", "Sent", "open_receipts"]

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
    database = open_database(state_dir)
    try:
        yield Receipts(database, project=os.path.relpath(root, state_dir), org_url=org_url)
    finally:
        database.close()


def _write(sent: Sent) -> bytes:
    return orjson.dumps({kind: {name: each.hex() for name, each in ours.items()} for kind, ours in sent.items()})


def _read(data: bytes) -> Sent:
    stored: dict[str, dict[str, str]] = orjson.loads(data)
    return {kind: {name: bytes.fromhex(each) for name, each in ours.items()} for kind, ours in stored.items()}
