"""The numbers of results and the verdicts in lists of runs, and how many statements they take."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from evalmeta.store.database import Database
from evalmeta.store.run_lists import find_listed

if TYPE_CHECKING:
    from collections.abc import Callable


def counts(database: Database, run_id: str) -> list[int]:
    listed = find_listed(database, run_id)
    assert listed is not None
    found = listed.summary
    return [found.passed, found.failed, found.errors, found.undecided]


def statements(database: Database, act: Callable[[Database], object]) -> int:
    """Return how many statements SQLite executes."""
    connection, seen = sqlite3.connect(database.path, isolation_level=None), list[str]()
    connection.set_trace_callback(seen.append)
    with Database(connection, database.path) as traced:
        act(traced)
    return len(seen)
