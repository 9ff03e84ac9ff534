"""Texts that change when runs start, end or get results: what pages that follow runs know."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.model.login import User
    from evalmeta.store.database import Database
    from evalmeta.store.sql import Row


_STATE_CHARS: Final = 16
_UNFINISHED: Final = """
    SELECT user_id, id, status, (SELECT count(*) FROM case_result WHERE run_id = run.id)
    FROM run WHERE status IN ('NEW', 'IN_PROGRESS') ORDER BY id
"""
# The index alone answers it; the rows have the contents of definitions.
ALL_RUNS: Final = "SELECT user_id, max(ended_at), count(*) FROM run GROUP BY user_id ORDER BY user_id"
ALL_REMOTE: Final = "SELECT count(*), max(started_at), max(ended_at) FROM remote_run"


class RunStates(NamedTuple):
    """Texts that change when a run that a user may see starts, ends or gets results."""

    of_all: str
    of_users: Mapping[str, str]

    def of(self, user: User) -> str:
        """Return the text of a user."""
        return self.of_all if user.is_admin else self.of_users.get(user.id, "")


def read_states(database: Database) -> RunStates:
    """Return the states of all users' runs."""
    rows = [*database.query(_UNFINISHED), *database.query(ALL_RUNS)]
    by_user: dict[str, list[Row]] = {}
    for row in rows:
        by_user.setdefault(row[0], []).append(row)
    return RunStates(_digest(rows), {user_id: _digest(own) for user_id, own in by_user.items()})


def _digest(rows: Iterable[Row]) -> str:
    return hashlib.sha256(repr([*rows]).encode()).hexdigest()[:_STATE_CHARS]
