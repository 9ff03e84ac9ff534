"""The paces of agents with a rate limit, shared by all processes that use the database."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.store.database import Database


# A slot further ahead was reserved before the clock was set back.
_MAX_SLOTS_AHEAD: Final = 10_000


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
            next_slot, not_before = self._read()
            if next_slot > now + _MAX_SLOTS_AHEAD * interval:
                next_slot = now
            slot = max(now, next_slot, not_before)
            self._save(slot + interval, not_before)
        return slot - now

    def pause(self, seconds: float) -> None:
        """Let no process send requests for some seconds."""
        until = self._clock() + seconds
        with self._database.transaction():
            next_slot, not_before = self._read()
            self._save(next_slot, max(not_before, until))

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again; 0 without a pause."""
        return max(0.0, self._read()[1] - self._clock())

    def _read(self) -> tuple[float, float]:
        rows = self._database.query("SELECT next_slot, not_before FROM pace WHERE agent = ?", (self._agent,))
        return rows[0] if rows else (0.0, 0.0)

    def _save(self, next_slot: float, not_before: float) -> None:
        sql = "INSERT OR REPLACE INTO pace (agent, next_slot, not_before) VALUES (?, ?, ?)"
        self._database.execute(sql, (self._agent, next_slot, not_before))
