"""The scheduler: all runs of a process share each agent's concurrency, rate and back-off."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.engine.pacer import Pacer
from evalmeta.errors import StoreError, StoreLocked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable

    from evalmeta.engine.interfaces import SharedPace, SharedPlaces
    from evalmeta.model.run_options import RunOptions


class Scheduler:
    """The pools of all agents, by what identifies an agent."""

    def __init__(self) -> None:
        self._pools: dict[Hashable, Pool] = {}

    def pool(
        self, agent: Hashable, options: RunOptions, *, shared: SharedPace | None = None, watches: bool = False
    ) -> Pool:
        """Return an agent's pool; it has the highest concurrency and the lowest rate of the agent's runs.

        `shared` is the agent's pace if other processes call the agent too; `watches` is as in `Pacer`.
        """
        pool = self._pools.get(agent)
        if pool is None:
            pool = self._pools[agent] = Pool(options, shared=shared, watches=watches)
        pool.include(options)
        return pool


class Pool:
    """The places for cases that ask one agent at the same time, and the pacer of their requests.

    Runs open one by one, each when no open run wants another place. So cases are asked in the order of their runs, and
    only the runs that are needed are in memory.
    """

    def __init__(self, options: RunOptions, *, shared: SharedPace | None = None, watches: bool = False) -> None:
        self._size = max(1, options.concurrency)
        self._taken = 0
        self._wanting: deque[Places] = deque()
        self._unopened: deque[asyncio.Future[None]] = deque()
        self._is_opening = self._is_polling = False
        self.pacer = Pacer(rate=options.rate_limit, concurrency=self._size, shared=shared, watches=watches)

    def include(self, options: RunOptions) -> None:
        """Adapt the pool to the options of another run."""
        self._size = max(self._size, options.concurrency)
        self.pacer.include(rate=options.rate_limit, concurrency=self._size)

    @asynccontextmanager
    async def open_run(self) -> AsyncIterator[Places]:
        """Wait until a run may open, and return its places."""
        turn = asyncio.get_running_loop().create_future()
        self._unopened.append(turn)
        self.admit()
        try:
            await turn
        except asyncio.CancelledError:
            # It may have been admitted at the same time.
            self.admit(is_opened=not turn.cancelled())
            raise
        places = Places(self)
        try:
            yield places
        finally:
            places.withdraw()

    def want(self, places: Places) -> None:
        """Give a run the places that it wants, after the runs that opened before."""
        self._wanting.append(places)

    def leave(self) -> None:
        """Take back a place."""
        self._taken -= 1
        self.admit()

    def admit(self, *, is_opened: bool = False) -> None:
        """Give free places to the runs that want them, in their order; then open the next run, one at a time."""
        self._is_opening &= not is_opened
        while self._wanting and self._taken < self._size:
            first = self._wanting[0]
            if not first.wanted:
                self._wanting.popleft()
                continue
            granted = first.take(self._size - self._taken, size=self._size)
            if not granted:
                self._admit_later()
                break
            self._taken += granted
            first.start(granted)
        while self._unopened and not self._is_opening and not any(places.wanted for places in self._wanting):
            turn = self._unopened.popleft()
            if not turn.cancelled():
                self._is_opening = True
                turn.set_result(None)

    def _admit_later(self) -> None:
        if not self._is_polling:
            self._is_polling = True
            asyncio.get_running_loop().call_later(limits.PLACES_POLL_SECONDS, self._admit_again)

    def _admit_again(self) -> None:
        self._is_polling = False
        self.admit()


class Places:
    """The places of one run in a pool; `wanted` is how many more it can use.

    `shared` are those in the pool of several processes, if there is one.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._left = 0
        self.shared: SharedPlaces | None = None
        self._start: Callable[[], None] = lambda: None
        self._fail: Callable[[Exception], None] = lambda _: None
        self._is_opening = True
        self.wanted = 0

    @property
    def pacer(self) -> Pacer:
        """Return the pacer of the agent's requests."""
        return self._pool.pacer

    def request(self, count: int, start: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Call `start` up to `count` times, for each place that becomes free; `leave` must follow each call.

        `fail` is called instead with the error if there can be no more places.
        """
        self._start, self._fail, self.wanted = start, fail, count
        self._pool.want(self)
        self._end_opening()

    def take(self, free: int, *, size: int) -> int:
        """Return how many of the `free` places of its process a run gets, of `size` for all runs."""
        count = min(free, self.wanted)
        if self.shared is None:
            return count
        try:
            return self.shared.take(count, size=size)
        except StoreLocked:
            # This is not an error of the run; the next attempt follows soon.
            return 0
        except StoreError as error:
            self.wanted = 0
            self._fail(error)
            return 0

    def start(self, count: int) -> None:
        """Use places."""
        self.wanted -= count
        for _ in range(count):
            self._start()

    def withdraw(self) -> None:
        """Want no more places."""
        self.wanted = 0
        self._end_opening()

    def leave(self) -> None:
        """Give a place back."""
        self._pool.leave()
        if self.shared is not None:
            self._left += 1
            if self._left == 1:
                # The workers of a run end together, and each change of the shared places is a commit.
                asyncio.get_running_loop().call_soon(self._leave_shared)

    def _leave_shared(self) -> None:
        count, self._left = self._left, 0
        if self.shared is not None:
            try:
                self.shared.leave(count)
            except StoreError:
                # Other runs would wait for these places as long as this run lasts.
                self._left += count
                asyncio.get_running_loop().call_later(limits.PLACES_POLL_SECONDS, self._leave_shared)

    def _end_opening(self) -> None:
        is_opening, self._is_opening = self._is_opening, False
        self._pool.admit(is_opened=is_opening)
