"""The components of an org, those that a project and an org had in common last, and the project's jobs there."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson

from evalmeta import limits
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import MetadataType, hash_of
from evalmeta.store.database import SHORT_ID_CHARS, Database, next_ids, open_database
from evalmeta.store.sql import upsert

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.store import Store


ReceiptKind = Literal["deploy", "validate", "test"]
Sent = dict[str, dict[str, bytes]]
"""SHA-256 of the contents that were sent, by type and full name."""


@dataclass(frozen=True, slots=True)
class StoredComponent:
    """A component in the org without its content; times are seconds since the epoch, users are ids."""

    type: str
    full_name: str
    id: str
    created: float
    modified: float
    created_by: str = ADMIN.id
    modified_by: str = ADMIN.id


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of saving one component: it was created, changed, or neither."""

    id: str
    created: bool
    changed: bool


class Components:
    """The components of an org; full names ignore case."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, type_name: str) -> list[StoredComponent]:
        """List the components of a type by name, without their content."""
        sql = """
            SELECT type, full_name, id, created_at, modified_at, created_by, modified_by
            FROM component WHERE type = ? ORDER BY full_name COLLATE NOCASE
        """
        return [StoredComponent(*row) for row in self._database.query(sql, (type_name,))]

    def hashes(self, type_name: str) -> dict[str, bytes]:
        """Return the SHA-256 of the content of each component of a type by its full name."""
        rows = self._database.rows("SELECT full_name, content FROM component WHERE type = ?", (type_name,))
        return {name: hash_of(content) for name, content in rows}

    def content(self, type_name: str, full_name: str) -> bytes | None:
        """Return the bytes of a component as they were deployed; None if it does not exist."""
        sql = "SELECT content FROM component WHERE type = ? AND full_name = ? COLLATE NOCASE"
        rows = self._database.query(sql, (type_name, full_name))
        return rows[0][0] if rows else None

    def next_timestamp(self, now: float) -> float:
        """Return the time of a change, in whole milliseconds: `now`, or later if an earlier change is not before it."""
        sql = """
            SELECT max((SELECT coalesce(max(modified_at), 0) FROM component),
                       (SELECT coalesce(max(ended_at), 0) FROM job WHERE kind = 'deploy'))
        """
        [(last,)] = self._database.query(sql)
        return max(math.floor(now * 1000), round(float(last) * 1000) + 1) / 1000

    def save(
        self, kind: MetadataType, contents: Mapping[str, bytes], *, now: float, by: str = ADMIN.id
    ) -> dict[str, Change]:
        """Create or replace components by name; call it inside a transaction.

        Unchanged components keep their date and user.
        """
        changes = {name: self._change(kind.name, name, content) for name, content in contents.items()}
        new = [name for name, change in changes.items() if change.created]
        for name, record_id in zip(new, next_ids(self._database, kind.id_prefix, len(new)) if new else [], strict=True):
            changes[name] = Change(record_id, created=True, changed=True)
        sql = """
            INSERT INTO component (type, full_name, id, content, created_at, modified_at, created_by, modified_by)
            VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?6)
            ON CONFLICT (type, full_name COLLATE NOCASE) DO UPDATE
            SET full_name = excluded.full_name, content = excluded.content, modified_at = excluded.modified_at,
                modified_by = excluded.modified_by
        """
        changed = ((name, content) for name, content in contents.items() if changes[name].changed)
        rows = ((kind.name, name, changes[name].id, content, now, by) for name, content in changed)
        self._database.execute_many(sql, rows)
        return changes

    def rename(self, type_name: str, old: str, new: str, *, now: float, by: str) -> None:
        """Change the full name of a component, whose id stays; call it inside a transaction."""
        sql = """
            UPDATE component SET full_name = ?, modified_at = ?, modified_by = ?
            WHERE type = ? AND full_name = ? COLLATE NOCASE
        """
        self._database.execute(sql, (new, now, by, type_name, old))

    def delete(self, type_name: str, full_name: str) -> str | None:
        """Delete a component and return its id; None if it does not exist."""
        sql = "DELETE FROM component WHERE type = ? AND full_name = ? COLLATE NOCASE RETURNING id"
        rows = self._database.query(sql, (type_name, full_name))
        return rows[0][0] if rows else None

    def _change(self, type_name: str, name: str, content: bytes) -> Change:
        sql = """
            SELECT id, content = ? AND full_name = ? COLLATE BINARY FROM component
            WHERE type = ? AND full_name = ? COLLATE NOCASE
        """
        rows = self._database.query(sql, (content, name, type_name, name))
        return (
            Change(rows[0][0], created=False, changed=not rows[0][1])
            if rows
            else Change("", created=True, changed=True)
        )


@dataclass(frozen=True, slots=True)
class Synced:
    """The last common state of a component: the hash of its bytes, and its date in the org.

    The org's changes are known until that date: the lastModifiedDate or the end of a deployment, empty if unknown.
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

    def sent(self, type_name: str) -> dict[str, set[bytes]]:
        """Return the contents that deployments sent whose end is not known here, by full name in lower case.

        A command that is killed does not learn what the org made of its deployment.
        """
        contents: dict[str, set[bytes]] = {}
        for _, sent in self._unfinished():
            for name, sha256 in sent.get(type_name, {}).items():
                contents.setdefault(name.casefold(), set()).add(sha256)
        return contents

    def remember(self, type_name: str, components: Mapping[str, Synced]) -> None:
        """Save the current common state of components, by full name, in one transaction."""
        key = "project, org_url, type, full_name"
        sql = upsert("synced", f"{key} COLLATE NOCASE", f"{key}, sha256, modified")
        rows = (
            (*self._owner, type_name, name, component.sha256, component.modified)
            for name, component in components.items()
        )
        with self._database.transaction():
            self._database.execute_many(sql, rows)
            self._settle(type_name, components)

    def forget(self, type_name: str, full_names: Iterable[str]) -> None:
        """Delete components that neither the project nor the org has any more."""
        sql = "DELETE FROM synced WHERE project = ? AND org_url = ? AND type = ? AND full_name = ? COLLATE NOCASE"
        names = list(full_names)
        with self._database.transaction():
            self._database.execute_many(sql, ((*self._owner, type_name, name) for name in names))
            self._settle(type_name, names)

    def _unfinished(self) -> list[tuple[int, Sent]]:
        sql = """
            SELECT number, sent FROM receipt
            WHERE project = ? AND org_url = ? AND kind = 'deploy' AND sent IS NOT NULL ORDER BY number
        """
        return [(number, _read_sent(sent)) for number, sent in self._database.query(sql, self._owner)]

    def _settle(self, type_name: str, full_names: Iterable[str]) -> None:
        """Remove components from what was sent: if the org has the same content again later, others made it so."""
        settled = {name.casefold() for name in full_names}
        for number, sent in self._unfinished():
            ours = sent.get(type_name, {})
            left = {name: sha256 for name, sha256 in ours.items() if name.casefold() not in settled}
            if len(left) < len(ours):
                values = (_written_sent(sent | {type_name: left}), number)
                self._database.execute("UPDATE receipt SET sent = ? WHERE number = ?", values)


class Receipts:
    """The jobs that one project started in one org."""

    __slots__ = ("_database", "_owner")

    def __init__(self, database: Database, *, project: str, org_url: str) -> None:
        self._database = database
        self._owner = (project, org_url)

    def keep(self, kind: ReceiptKind, job_id: str, *, now: float, sent: Sent | None = None) -> int:
        """Save a job as the most recent of its kind, delete jobs that orgs have forgotten, and return its number.

        The id may be empty until `name` is called, for a job that is about to start.
        """
        encoded = None if sent is None else _written_sent(sent)
        sql = """
            INSERT INTO receipt (project, org_url, kind, job_id, kept_at, sent) VALUES (?, ?, ?, ?, ?, ?)
            RETURNING number
        """
        with self._database.transaction():
            self._database.execute("DELETE FROM receipt WHERE kept_at < ?", (now - limits.DEPLOY_KEPT_SECONDS,))
            [(number,)] = self._database.query(sql, (*self._owner, kind, job_id, now, encoded))
        return int(number)

    def name(self, number: int, job_id: str) -> None:
        """Save the id that the org gave to a job."""
        self._database.execute("UPDATE receipt SET job_id = ? WHERE number = ?", (job_id, number))

    def latest(self, *kinds: ReceiptKind) -> str | None:
        """Return the id of the most recent job of these kinds; None if there is none."""
        sql = """
            SELECT job_id FROM receipt
            WHERE project = ? AND org_url = ? AND kind IN (SELECT value FROM json_each(?, '$')) AND job_id <> ''
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
        sql = """
            SELECT sent FROM receipt
            WHERE project = ? AND org_url = ? AND substr(job_id, 1, ?) = ? AND sent IS NOT NULL
        """
        rows = self._database.query(sql, (*self._owner, SHORT_ID_CHARS, job_id[:SHORT_ID_CHARS]))
        return _read_sent(rows[0][0]) if rows else None

    def delete_sent(self, job_id: str) -> None:
        """Delete the contents that a job sent; the job itself is kept."""
        sql = "UPDATE receipt SET sent = NULL WHERE project = ? AND org_url = ? AND substr(job_id, 1, ?) = ?"
        self._database.execute(sql, (*self._owner, SHORT_ID_CHARS, job_id[:SHORT_ID_CHARS]))


def _written_sent(sent: Sent) -> bytes:
    return orjson.dumps({kind: {name: digest.hex() for name, digest in ours.items()} for kind, ours in sent.items()})


def _read_sent(encoded: bytes) -> Sent:
    stored: dict[str, dict[str, str]] = orjson.loads(encoded)
    return {kind: {name: bytes.fromhex(text) for name, text in ours.items()} for kind, ours in stored.items()}


@contextmanager
def open_tracking(store: Store, *, root: Path, org_url: str) -> Iterator[Tracking]:
    """Open the tracked components of the project in `root` and an org; projects may share the store."""
    with open_database(store) as database:
        yield Tracking(database, project=store.project(root), org_url=org_url)


@contextmanager
def open_receipts(store: Store, *, root: Path, org_url: str) -> Iterator[Receipts]:
    """Open the jobs of the project in `root` in an org; projects may share the store."""
    with open_database(store) as database:
        yield Receipts(database, project=store.project(root), org_url=org_url)
