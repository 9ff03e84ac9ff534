"""What a project and an org had in common last: the base that changes and conflicts are told by."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.store.database import Database

__all__ = ["Synced", "Tracking", "open_tracking"]


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
    database = open_database(state_dir)
    try:
        yield Tracking(database, project=os.path.relpath(root, state_dir), org_url=org_url)
    finally:
        database.close()
