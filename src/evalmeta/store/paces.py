"""The paces of agents with a rate limit, shared by all processes that use the database."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.store.database import Database


class Pace:
    """The next slot for a request to one agent, and the end of its back-off; times are seconds since the epoch."""

    __slots__ = ("_agent", "_clock", "_database")

    def __init__(self, database: Database, agent: str, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._agent = agent
        self._clock = clock

    def reserve(self, *, interval: float) -> float:
        """Reserve the next slot, `interval` seconds after the one before; return the seconds until then."""
        now = self._clock()
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction():
            next_slot, not_before = self._read(now)
            slot = max(now, not_before, next_slot)
            self._save(slot + interval, not_before, now)
        return slot - now

    def pause(self, seconds: float) -> None:
        """Let no process send requests for some seconds."""
        now = self._clock()
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction():
            next_slot, not_before = self._read(now)
            self._save(next_slot, max(not_before, now + seconds), now)

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again; 0 without a pause."""
        now = self._clock()
        return max(0.0, self._read(now)[1] - now)

    def _read(self, now: float) -> tuple[float, float]:
        sql = "SELECT next_slot, not_before, written_at FROM pace WHERE agent = ?"
        rows = self._database.query(sql, (self._agent,))
        next_slot, not_before, written = rows[0] if rows else (0.0, 0.0, 0.0)
        # If the clock was set back since, both moments are as far ahead as they were.
        back = max(0.0, written - now)
        return next_slot - back, not_before - back

    def _save(self, next_slot: float, not_before: float, now: float) -> None:
        sql = "INSERT OR REPLACE INTO pace (agent, next_slot, not_before, written_at) VALUES (?, ?, ?, ?)"
        self._database.execute(sql, (self._agent, next_slot, not_before, now))


class FolderPace:
    """The pace of an agent in a state folder, whose database is opened when a request is first sent."""

    def __init__(self, folder: Path, agent: str) -> None:
        self._folder = folder
        self._agent = agent
        self._database: Database | None = None

    def reserve(self, *, interval: float) -> float:
        """Reserve the next slot, as `Pace` does."""
        return self._pace().reserve(interval=interval)

    def pause(self, seconds: float) -> None:
        """Let no process send requests for some seconds."""
        self._pace().pause(seconds)

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again; 0 without a pause."""
        return self._pace().pause_left()

    def close(self) -> None:
        """Close the database, if it was opened."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _pace(self) -> Pace:
        self._database = self._database or open_database(self._folder)
        return Pace(self._database, self._agent)
