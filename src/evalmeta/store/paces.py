"""The paces of agents with a rate limit, shared by all processes that use the database."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.store.database import Database


# A slot further ahead was reserved before the clock was set back: each process reserves one at a time.
_MAX_SLOTS_AHEAD: Final = 1_000


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
        with self._database.transaction():
            next_slot, not_before = self._read(now)
            earliest = max(now, not_before)
            slot = earliest if next_slot > earliest + _MAX_SLOTS_AHEAD * interval else max(earliest, next_slot)
            self._save(slot + interval, not_before)
        return slot - now

    def pause(self, seconds: float) -> None:
        """Let no process send requests for some seconds."""
        now = self._clock()
        with self._database.transaction():
            next_slot, not_before = self._read(now)
            self._save(next_slot, max(not_before, now + seconds))

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again; 0 without a pause."""
        now = self._clock()
        return max(0.0, self._read(now)[1] - now)

    def _read(self, now: float) -> tuple[float, float]:
        rows = self._database.query("SELECT next_slot, not_before FROM pace WHERE agent = ?", (self._agent,))
        next_slot, not_before = rows[0] if rows else (0.0, 0.0)
        # No pause is longer, so the clock was set back.
        return next_slot, 0.0 if not_before > now + limits.MAX_RETRY_AFTER_SECONDS else not_before

    def _save(self, next_slot: float, not_before: float) -> None:
        sql = "INSERT OR REPLACE INTO pace (agent, next_slot, not_before) VALUES (?, ?, ?)"
        self._database.execute(sql, (self._agent, next_slot, not_before))


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
