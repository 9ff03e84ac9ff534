"""What all processes share: the rate limit, back-off and concurrency of an agent or rater, and costs of a command."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.store.database import Database, open_database
from evalmeta.store.runs import Lease
from evalmeta.store.sql import upsert

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.model.store import Store


# A process that waited for the lock read its clock before the last one that wrote; only a larger difference is that of
# a clock that was set back since. Both moments are then as far ahead as they were.
_SET_BACK: Final = "CASE WHEN pace.written_at > ?2 + 2 THEN pace.written_at - ?2 ELSE 0 END"
_CHANGE: Final = """
    INSERT INTO pace (agent, next_slot, not_before, written_at) VALUES (?1, ?2 + ?3, ?4, ?2)
    ON CONFLICT (agent) DO UPDATE SET
      next_slot = max(?2, max(pace.next_slot, pace.not_before) - {set_back}) + ?3,
      not_before = max(pace.not_before - {set_back}, ?4),
      written_at = ?2
    RETURNING next_slot
"""
_READ: Final = "SELECT not_before - {set_back} FROM pace WHERE agent = ?1"


@dataclass(frozen=True, slots=True)
class Pace:
    """The next slot for a request to one agent or rater, and the end of its back-off, in seconds since the epoch.

    Each limit is a row with a name, and each change of it one statement. The clock is that of the database.
    """

    _database: Database
    _name: str
    clock: Callable[[], float] | None = field(default=None, kw_only=True)

    def reserve(self, *, interval: float, amount: float = 1.0) -> float:
        """Reserve the next `amount` of what is limited, `interval` seconds for 1; return the seconds until then."""
        now, width = self._now(), interval * amount
        return max(0.0, self._changed(now, width=width) - width - now)

    def pause(self, seconds: float) -> None:
        """Let no process send requests for some seconds."""
        now = self._now()
        self._changed(now, until=now + seconds)

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again; 0 without a pause."""
        now = self._now()
        rows = self._database.query(_READ.format(set_back=_SET_BACK), (self._name, now))
        return max(0.0, float(rows[0][0]) - now) if rows else 0.0

    def _now(self) -> float:
        return (self.clock or self._database.now)()

    def _changed(self, now: float, *, width: float = 0.0, until: float = 0.0) -> float:
        """Return the end of what is reserved."""
        sql, values = _CHANGE.format(set_back=_SET_BACK), (self._name, now, width, until)
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction(is_alone=False):
            [(next_slot,)] = self._database.query(sql, values)
        return float(next_slot)


class FolderPace:
    """The pace of an agent in a state folder, whose database is opened when a request is first sent."""

    def __init__(self, place: Store | Path, name: str) -> None:
        self._place = place
        self._name = name
        self._database: Database | None = None

    def reserve(self, *, interval: float, amount: float = 1.0) -> float:
        """Reserve the next slots, as `Pace` does."""
        return self._pace().reserve(interval=interval, amount=amount)

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
        return Pace(self._database, self._name)


class RunSpending:
    """What the runs of a command have spent, in picodollars: each run saves its own sum, so that nothing counts twice.

    `here` has the runs of this process, whose sums are known. While the store is locked or out of reach, the run goes
    on with what it last knew of the others.
    """

    def __init__(self, database: Database, run: Run, here: Collection[Hashable]) -> None:
        self._database = database
        self._run = run
        self._here = here
        self._others: dict[str, int] = {}

    def exchange(self, spent: int) -> int:
        """Save what the run has spent, and return the sum of the runs of its command in other processes."""
        suite, database = self._run.options.origin.suite, self._database
        with suppress(StoreError), database.waiting(0):
            database.execute("UPDATE run SET spent = ? WHERE id = ? AND spent <> ?", (spent, self._run.id, spent))
            if suite:
                rows = database.query("SELECT id, spent FROM run WHERE suite = ? AND spent > 0", (suite,))
                self._others = {str(run_id): int(amount) for run_id, amount in rows}
        return sum(amount for run_id, amount in self._others.items() if run_id not in self._here)


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
    clock: Callable[[], float] | None = field(default=None, kw_only=True)

    def take(self, wanted: int, *, size: int) -> int:
        """Take up to `wanted` of the agent's `size` places, and return how many; raise StoreError without a lease."""
        now = (self.clock or self._database.now)()
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
