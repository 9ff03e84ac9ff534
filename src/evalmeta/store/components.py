"""The components of an org.

What a project and an org had in common last: the base that changes and conflicts are told by.
"""

from __future__ import annotations

import math
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.model.login import ADMIN
from evalmeta.store.database import next_ids, open_database

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.registry import MetadataType
    from evalmeta.store.database import Database


@dataclass(frozen=True, slots=True)
class StoredComponent:
    """A component as the org keeps it; times are seconds since the epoch, users are told by their ids."""

    type: str
    full_name: str
    id: str
    created: float
    modified: float
    created_by: str = ADMIN.id
    modified_by: str = ADMIN.id


@dataclass(frozen=True, slots=True)
class Change:
    """What saving one component did: made it, changed it, or found it as it was."""

    id: str
    created: bool
    changed: bool


class Components:
    """Reads and saves components, whose names are the same in any case; call `save` inside a transaction."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, type_name: str) -> list[StoredComponent]:
        """Lists the components of a type by name, without their content."""
        sql = """
            SELECT type, full_name, id, created_at, modified_at, created_by, modified_by
            FROM component WHERE type = ? ORDER BY full_name
        """
        return [StoredComponent(*row) for row in self._database.query(sql, (type_name,))]

    def content(self, type_name: str, full_name: str) -> bytes | None:
        """Gives a component's bytes as they were deployed; None when there is no such component."""
        sql = "SELECT content FROM component WHERE type = ? AND full_name = ?"
        rows = self._database.query(sql, (type_name, full_name))
        return rows[0][0] if rows else None

    def next_moment(self, now: float) -> float:
        """Gives the moment of a change, in whole milliseconds: now, but later than every change before."""
        sql = """
            SELECT max((SELECT coalesce(max(modified_at), 0) FROM component),
                       (SELECT coalesce(max(ended_at), 0) FROM job WHERE kind = 'deploy'))
        """
        [(last,)] = self._database.query(sql)
        return max(math.floor(now * 1000), round(float(last) * 1000) + 1) / 1000

    def save(
        self, kind: MetadataType, contents: Mapping[str, bytes], *, now: float, by: str = ADMIN.id
    ) -> dict[str, Change]:
        """Makes or replaces components, byte for byte, for a user; unchanged ones keep their date and user."""
        changes = {name: self._change(kind.name, name, content) for name, content in contents.items()}
        new = [name for name, change in changes.items() if change.created]
        for name, record_id in zip(new, next_ids(self._database, kind.id_prefix, len(new)) if new else [], strict=True):
            changes[name] = Change(record_id, created=True, changed=True)
        sql = """
            INSERT INTO component (type, full_name, id, content, created_at, modified_at, created_by, modified_by)
            VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?6)
            ON CONFLICT (type, full_name) DO UPDATE
            SET full_name = excluded.full_name, content = excluded.content, modified_at = excluded.modified_at,
                modified_by = excluded.modified_by
        """
        changed = ((name, content) for name, content in contents.items() if changes[name].changed)
        rows = ((kind.name, name, changes[name].id, content, now, by) for name, content in changed)
        self._database.execute_many(sql, rows)
        return changes

    def delete(self, type_name: str, full_name: str) -> str | None:
        """Deletes a component and gives its id; None when there is no such component."""
        sql = "DELETE FROM component WHERE type = ? AND full_name = ? RETURNING id"
        rows = self._database.query(sql, (type_name, full_name))
        return rows[0][0] if rows else None

    def _change(self, type_name: str, name: str, content: bytes) -> Change:
        sql = "SELECT id, content = ? AND full_name = ? COLLATE BINARY FROM component WHERE type = ? AND full_name = ?"
        rows = self._database.query(sql, (content, name, type_name, name))
        return (
            Change(rows[0][0], created=False, changed=not rows[0][1])
            if rows
            else Change("", created=True, changed=True)
        )


@dataclass(frozen=True, slots=True)
class Synced:
    """What both sides had.

    Attributes:
        sha256: the hash of the bytes.
        modified: until when the org's changes are known, as the org writes dates: its
            lastModifiedDate, or the end of a deployment; empty when it is not known.
    """

    sha256: bytes
    modified: str


class Tracking:
    """Remembers one project's and one org's components; full names are the same in any case."""

    __slots__ = ("_database", "_owner")

    def __init__(self, database: Database, *, project: str, org_url: str) -> None:
        self._database = database
        self._owner = (project, org_url)

    def load(self, type_name: str) -> dict[str, Synced]:
        """Gives what is remembered of a type, by full name in small letters."""
        sql = "SELECT full_name, sha256, modified FROM synced WHERE project = ? AND org_url = ? AND type = ?"
        rows = self._database.query(sql, (*self._owner, type_name))
        return {name.casefold(): Synced(sha256, modified) for name, sha256, modified in rows}

    def remember(self, type_name: str, components: Mapping[str, Synced]) -> None:
        """Keeps what both sides have now, by full name; all of it or nothing."""
        sql = "INSERT OR REPLACE INTO synced VALUES (?, ?, ?, ?, ?, ?)"
        rows = ((*self._owner, type_name, name, each.sha256, each.modified) for name, each in components.items())
        with self._database.transaction():
            self._database.execute_many(sql, rows)

    def forget(self, type_name: str, full_names: Iterable[str]) -> None:
        """Drops components that neither side has any more."""
        sql = "DELETE FROM synced WHERE project = ? AND org_url = ? AND type = ? AND full_name = ?"
        with self._database.transaction():
            self._database.execute_many(sql, ((*self._owner, type_name, name) for name in full_names))


@contextmanager
def open_tracking(state_dir: Path, *, root: Path, org_url: str) -> Iterator[Tracking]:
    """Opens what a project remembers of an org.

    Args:
        state_dir: the folder with the project's database; projects may share it.
        root: the project's folder.
        org_url: the org's address.

    Raises:
        StoreError: the database cannot be used.
    """
    with open_database(state_dir) as database:
        yield Tracking(database, project=os.path.relpath(root, state_dir), org_url=org_url)
