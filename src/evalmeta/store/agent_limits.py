"""The rate limit, the back-off and the concurrency of an agent or rater, which all processes share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.store.database import Database, open_database
from evalmeta.store.runs import Lease
from evalmeta.store.sql import upsert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.model.store import Store


@dataclass(frozen=True, slots=True)
class Pace:
    """The next slot for a request to one agent or rater, and the end of its back-off, in seconds since the epoch."""

    _database: Database
    _agent: str
    clock: Callable[[], float] = field(default=time.time, kw_only=True)

    def reserve(self, *, interval: float, slots: int = 1) -> float:
        """Reserve the next slots, each `interval` seconds after the one before; return the seconds until the first."""
        now = self.clock()
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction():
            next_slot, not_before = self._read(now)
            slot = max(now, not_before, next_slot)
            self._save(slot + interval * slots, not_before, now)
        return slot - now

    def pause(self, seconds: float) -> None:
        """Let no process send requests for some seconds."""
        now = self.clock()
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction():
            next_slot, not_before = self._read(now)
            self._save(next_slot, max(not_before, now + seconds), now)

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again; 0 without a pause."""
        now = self.clock()
        return max(0.0, self._read(now)[1] - now)

    def _read(self, now: float) -> tuple[float, float]:
        sql = "SELECT next_slot, not_before, written_at FROM pace WHERE agent = ?"
        rows = self._database.query(sql, (self._agent,))
        next_slot, not_before, written = rows[0] if rows else (0.0, 0.0, 0.0)
        # If the clock was set back since, both moments are as far ahead as they were.
        back = max(0.0, written - now)
        return next_slot - back, not_before - back

    def _save(self, next_slot: float, not_before: float, now: float) -> None:
        sql = upsert("pace", "agent", "agent, next_slot, not_before, written_at")
        self._database.execute(sql, (self._agent, next_slot, not_before, now))


class FolderPace:
    """The pace of an agent in a state folder, whose database is opened when a request is first sent."""

    def __init__(self, place: Store | Path, agent: str) -> None:
        self._place = place
        self._agent = agent
        self._database: Database | None = None

    def reserve(self, *, interval: float, slots: int = 1) -> float:
        """Reserve the next slots, as `Pace` does."""
        return self._pace().reserve(interval=interval, slots=slots)

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
        self._database = self._database or open_database(self._place)
        return Pace(self._database, self._agent)


# An earlier run that gave no sign of life for this time does not keep free places from later ones.
_RECENT_SECONDS: Final = 5.0
_RENEW_SECONDS: Final = 2.0
_SELECT_PLACES: Final = """
    SELECT id, max(created_at, coalesce(started_at, 0)), run.worker, lease_until, size, taken, wanted, seen
    FROM run LEFT JOIN place ON place.run_id = run.id AND place.worker = run.worker
    WHERE status IN ('NEW', 'IN_PROGRESS') AND subject_name = ? AND answers_of IS NULL
    ORDER BY created_at, id
"""


class _Row(NamedTuple):
    run_id: str
    begun: float
    worker: str | None
    until: float | None
    size: int | None
    taken: int | None
    wanted: int | None
    seen: float | None


@dataclass(frozen=True, slots=True)
class RunPlaces:
    """The places of one run, which its worker owns; runs get places in the order in which they were created.

    A place belongs to a run as long as its worker lives, so those of a worker that was killed become free.
    """

    _database: Database
    _run: Run
    _worker: str
    is_free: Callable[[Lease], bool] = field(kw_only=True)
    clock: Callable[[], float] = field(default=time.time, kw_only=True)

    def take(self, wanted: int, *, size: int) -> int:
        """Take up to `wanted` of the agent's `size` places, and return how many; raise StoreError without a lease."""
        now = self.clock()
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction():
            rows = [_Row(*row) for row in self._database.query(_SELECT_PLACES, (self._run.subject_name,))]
            mine = next((row for row in rows if row.run_id == self._run.id), None)
            if mine is None or mine.worker != self._worker:
                raise StoreError(f"run {self._run.id} is over, or was taken over by another worker")
            taken = mine.taken or 0
            granted = self._granted(rows, wanted, size, now)
            if granted or mine.seen is None or abs(now - mine.seen) > _RENEW_SECONDS:
                self._save(size, taken + granted, wanted - granted, now)
        return granted

    def leave(self, count: int) -> None:
        """Give places back, and want no more."""
        sql = "UPDATE place SET taken = taken - ?, wanted = 0 WHERE run_id = ? AND worker = ?"
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS):
            self._database.execute(sql, (count, self._run.id, self._worker))

    def _granted(self, rows: list[_Row], wanted: int, size: int, now: float) -> int:
        taken, is_earlier = 0, True
        for row in rows:
            has_places = row.size is not None and not self.is_free(Lease(row.worker, row.until))
            if has_places:
                taken += row.taken or 0
                size = max(size, row.size or 0)
            if row.run_id == self._run.id:
                is_earlier = False
            elif is_earlier and self._waits(row, now, has_places=has_places):
                return 0
        return max(0, min(wanted, size - taken))

    @staticmethod
    def _waits(row: _Row, now: float, *, has_places: bool) -> bool:
        """Return whether a run wants places, or will as soon as its worker has started."""
        if has_places:
            return bool(row.wanted) and abs(now - (row.seen or 0)) < _RECENT_SECONDS
        # A time in the future is from before the clock was set back.
        return abs(now - row.begun) < _RECENT_SECONDS

    def _save(self, size: int, taken: int, wanted: int, now: float) -> None:
        sql = upsert("place", "run_id", "run_id, worker, size, taken, wanted, seen")
        self._database.execute(sql, (self._run.id, self._worker, size, taken, wanted, now))
