"""What a project remembers of an org: the components that both had last, and the jobs that it started there."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import orjson

from evalmeta import limits
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.store.database import Database


ReceiptKind = Literal["deploy", "validate", "test"]
Sent = dict[str, dict[str, bytes]]
"""SHA-256 of the contents that were sent, by type and full name."""


# An id has 15 characters; three more only check it.
_ID_CHARS: Final = 15


@dataclass(frozen=True, slots=True)
class Synced:
    """The last common state of a component.

    Attributes:
        sha256: the hash of its bytes.
        modified: the time until which the org's changes are known, as the org writes dates: its lastModifiedDate or
            the end of a deployment; empty if it is not known.
    """

    sha256: bytes
    modified: str


class Tracking:
    """The components that one project and one org had in common last; full names ignore case."""

    __slots__ = ("_database", "_owner")

    def __init__(self, database: Database, *, project: str, org_url: str) -> None:
        self._database = database
        self._owner = (project, org_url)

    def load(self, type_name: str) -> dict[str, Synced]:
        """Return the components of a type by full name in lower case."""
        sql = "SELECT full_name, sha256, modified FROM synced WHERE project = ? AND org_url = ? AND type = ?"
        rows = self._database.query(sql, (*self._owner, type_name))
        return {name.casefold(): Synced(sha256, modified) for name, sha256, modified in rows}

    def remember(self, type_name: str, components: Mapping[str, Synced]) -> None:
        """Save the current common state of components, by full name, in one transaction."""
        sql = "INSERT OR REPLACE INTO synced VALUES (?, ?, ?, ?, ?, ?)"
        rows = ((*self._owner, type_name, name, each.sha256, each.modified) for name, each in components.items())
        with self._database.transaction():
            self._database.execute_many(sql, rows)

    def forget(self, type_name: str, full_names: Iterable[str]) -> None:
        """Delete components that neither the project nor the org has any more."""
        sql = "DELETE FROM synced WHERE project = ? AND org_url = ? AND type = ? AND full_name = ?"
        with self._database.transaction():
            self._database.execute_many(sql, ((*self._owner, type_name, name) for name in full_names))


class Receipts:
    """The jobs that one project started in one org."""

    __slots__ = ("_database", "_owner")

    def __init__(self, database: Database, *, project: str, org_url: str) -> None:
        self._database = database
        self._owner = (project, org_url)

    def keep(self, kind: ReceiptKind, job_id: str, *, now: float, sent: Sent | None = None) -> None:
        """Save a job as the most recent of its kind, and delete jobs that orgs have forgotten."""
        sql = "INSERT INTO receipt (project, org_url, kind, job_id, kept_at, sent) VALUES (?, ?, ?, ?, ?, ?)"
        with self._database.transaction():
            self._database.execute("DELETE FROM receipt WHERE kept_at < ?", (now - limits.DEPLOY_KEPT_SECONDS,))
            self._database.execute(sql, (*self._owner, kind, job_id, now, None if sent is None else _write(sent)))

    def latest(self, *kinds: ReceiptKind) -> str | None:
        """Return the id of the most recent job of these kinds; None if there is none."""
        sql = """
            SELECT job_id FROM receipt
            WHERE project = ? AND org_url = ? AND kind IN (SELECT value FROM json_each(?))
            ORDER BY number DESC LIMIT 1
        """
        rows = self._database.query(sql, (*self._owner, orjson.dumps(kinds).decode()))
        return rows[0][0] if rows else None

    def latest_anywhere(self, kind: ReceiptKind) -> tuple[str, str] | None:
        """Return the org's address and the id of the project's most recent job of a kind in any org."""
        sql = "SELECT org_url, job_id FROM receipt WHERE project = ? AND kind = ? ORDER BY number DESC LIMIT 1"
        rows = self._database.query(sql, (self._owner[0], kind))
        return (rows[0][0], rows[0][1]) if rows else None

    def sent(self, job_id: str) -> Sent | None:
        """Return the contents that a job sent; None if they are not known or were deleted."""
        sql = "SELECT sent FROM receipt WHERE project = ? AND org_url = ? AND substr(job_id, 1, ?) = ? AND sent NOTNULL"
        rows = self._database.query(sql, (*self._owner, _ID_CHARS, job_id[:_ID_CHARS]))
        return _read(rows[0][0]) if rows else None

    def delete_sent(self, job_id: str) -> None:
        """Delete the contents that a job sent; the job itself is kept."""
        sql = "UPDATE receipt SET sent = NULL WHERE project = ? AND org_url = ? AND substr(job_id, 1, ?) = ?"
        self._database.execute(sql, (*self._owner, _ID_CHARS, job_id[:_ID_CHARS]))


@contextmanager
def open_tracking(state_dir: Path, *, root: Path, org_url: str) -> Iterator[Tracking]:
    """Open the tracked components of a project and an org.

    Args:
        state_dir: The folder with the project's database; projects may share it.
        root: The project's folder.
        org_url: The org's address.

    Raises:
        StoreError: The database cannot be used.
    """
    with open_database(state_dir) as database:
        yield Tracking(database, project=os.path.relpath(root, state_dir), org_url=org_url)


@contextmanager
def open_receipts(state_dir: Path, *, root: Path, org_url: str) -> Iterator[Receipts]:
    """Open the jobs of a project in an org; the arguments are those of `open_tracking`.

    Raises:
        StoreError: The database cannot be used.
    """
    with open_database(state_dir) as database:
        yield Receipts(database, project=os.path.relpath(root, state_dir), org_url=org_url)


def _write(sent: Sent) -> bytes:
    return orjson.dumps({kind: {name: each.hex() for name, each in ours.items()} for kind, ours in sent.items()})


def _read(data: bytes) -> Sent:
    stored: dict[str, dict[str, str]] = orjson.loads(data)
    return {kind: {name: bytes.fromhex(each) for name, each in ours.items()} for kind, ours in stored.items()}
