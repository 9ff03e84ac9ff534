"""The components of an org."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.model.login import ADMIN
from evalmeta.store.database import next_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.registry import MetadataType
    from evalmeta.store.database import Database


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
            FROM component WHERE type = ? ORDER BY full_name
        """
        return [StoredComponent(*row) for row in self._database.query(sql, (type_name,))]

    def content(self, type_name: str, full_name: str) -> bytes | None:
        """Return the bytes of a component as they were deployed; None if it does not exist."""
        sql = "SELECT content FROM component WHERE type = ? AND full_name = ?"
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
            ON CONFLICT (type, full_name) DO UPDATE
            SET full_name = excluded.full_name, content = excluded.content, modified_at = excluded.modified_at,
                modified_by = excluded.modified_by
        """
        changed = ((name, content) for name, content in contents.items() if changes[name].changed)
        rows = ((kind.name, name, changes[name].id, content, now, by) for name, content in changed)
        self._database.execute_many(sql, rows)
        return changes

    def delete(self, type_name: str, full_name: str) -> str | None:
        """Delete a component and return its id; None if it does not exist."""
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
