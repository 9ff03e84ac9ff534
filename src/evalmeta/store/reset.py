"""Emptying an org."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.store.database import Database

__all__ = ["empty"]

# Those that are referred to come last.
_CONTENTS: Final = ("case_result", "run", "job", "component")


def empty(database: Database, *, is_ours: Callable[[str], bool]) -> None:
    """Deletes components, jobs, runs and results, all or none; users, tokens and the numbers of ids stay.

    Args:
        database: the org's.
        is_ours: tells whether an address is one of this org's, so that what projects and
            the org had in common is forgotten too.
    """
    with database.transaction():
        for table in _CONTENTS:
            database.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
        urls = database.query("SELECT DISTINCT org_url FROM synced")
        database.execute_many("DELETE FROM synced WHERE org_url = ?", [row for row in urls if is_ours(row[0])])
