"""Limit the rate and the concurrency of the requests to one agent, and reduce them while the agent is busy."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.errors import StoreError, SubjectBusy
from evalmeta.protocol.http import retry_pause

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import SharedPace


class Pacer:
    """Admit requests to one agent.

    Requests are spread evenly over every second. When the agent is busy, all requests wait as long as it asks for, and
    the concurrency is halved. Every answer after that increases it a little (additive increase, multiplicative
    decrease, as in TCP: RFC 5681, 3.1). With a rate, processes that have the same `shared` paces send no more than one;
    each reserves only slots that requests wait for, at most those of a slice of time. With `watches`, they also share
    their back-off without a rate.
    """

    def __init__(
        self,
        *,
        rate: float | None = None,
        concurrency: int = limits.CONCURRENCY,
        shared: SharedPace | None = None,
        watches: bool = False,
    ) -> None:
        self._shared = shared
        self._watches = watches and shared is not None
        self._look_at = 0.0
        self._turn = asyncio.Lock()
        self._slots: deque[float] = deque()
        self._slots_interval = 0.0
        self._wanted = 0
        self._interval = 1 / rate if rate else 0.0
        self._max_window = max(1, concurrency)
        self._window = float(self._max_window)
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._not_before = 0.0
        self._next_slot = 0.0
        # While nothing is limited, callers need not call `enter`.
        self.is_free = not (rate or self._watches)

    def include(self, *, rate: float | None, concurrency: int) -> None:
        """Adapt to another run of the agent: the lowest rate and the highest concurrency apply."""
        if rate:
            self._interval = max(self._interval, 1 / rate)
            self.is_free = False
        if concurrency > self._max_window:
            self._window += concurrency - self._max_window
            self._max_window = concurrency

    async def enter(self, *, is_utterance: bool = True) -> None:
        """Wait until a request may be sent; `leave` must follow. The rate only limits utterances."""
        if self._active < int(self._window):
            self._active += 1
        else:
            await self._wait_for_window()
        try:
            await self._wait_for_slot(self._interval if is_utterance else 0.0)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """End a request."""
        self._active -= 1
        self._admit()

    def speed_up(self) -> None:
        """Note an answer: a whole window of answers increases the concurrency by one."""
        self._window = min(float(self._max_window), self._window + 1 / self._window)
        self._admit()
        self.is_free = not (self._interval or self._watches) and self._window >= self._max_window

    def back_off(self, busy: SubjectBusy, *, attempt: int) -> None:
        """Note that the agent is busy: no request is sent for as long as it asks, or for a growing pause."""
        now = asyncio.get_running_loop().time()
        if now >= self._not_before:
            # Requests that were sent at the same time and fail together count once.
            self._window = max(1.0, self._window / 2)
        pause = retry_pause(attempt) if busy.after is None else busy.after
        self._not_before = max(self._not_before, now + pause)
        if self._shared and (self._interval or self._watches):
            with suppress(StoreError):
                self._shared.pause(pause)
        self.is_free = False

    async def _wait_for_window(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except BaseException:
            if not place.cancelled():
                # It was admitted and cancelled at the same time.
                self.leave()
            raise

    def _admit(self) -> None:
        """Admit requests that wait, in their order."""
        while self._waiting and self._active < int(self._window):
            place = self._waiting.popleft()
            if not place.done():
                self._active += 1
                place.set_result(None)

    async def _wait_for_slot(self, interval: float) -> None:
        if interval and self._shared:
            self._wanted += 1
            try:
                async with self._turn:
                    await self._wait_for_shared_slot(self._shared, interval)
            finally:
                self._wanted -= 1
            return
        while True:
            if self._watches and self._shared:
                self._look(self._shared)
            now = asyncio.get_running_loop().time()
            ready = max(now, self._not_before)
            if interval:
                ready = max(ready, self._next_slot)
                self._next_slot = ready + interval
            if ready > now:
                await asyncio.sleep(ready - now)
            if self._not_before <= asyncio.get_running_loop().time():
                return

    async def _wait_for_shared_slot(self, shared: SharedPace, interval: float) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            self._drop_old_slots(now, interval)
            with suppress(StoreError):
                self._reserve(shared, interval, now)
            if not self._slots:
                # A locked database must not become an error of the agent; this process keeps to the rate by itself.
                await asyncio.sleep(max(interval, self._not_before - now))
                return
            await asyncio.sleep(max(self._slots.popleft(), self._not_before) - now)
            # Another process may have found the agent busy in the meantime.
            self._look(shared)
            if self._not_before <= asyncio.get_running_loop().time():
                return

    def _reserve(self, shared: SharedPace, interval: float, now: float) -> None:
        """Reserve slots for a slice of time before the last one is over, so that there is no gap.

        They are at most as many as requests wait for, so that a run that is stopped leaves few slots behind.
        """
        wanted = self._wanted - len(self._slots)
        if wanted > 0 and len(self._slots) <= 1:
            count = max(1, min(int(limits.PACE_SLICE_SECONDS / interval), wanted))
            first = now + shared.reserve(interval=interval, amount=count)
            self._slots.extend(first + interval * place for place in range(count))

    def _drop_old_slots(self, now: float, interval: float) -> None:
        """Forget reserved slots that are over, or before the end of a back-off, or at another rate."""
        if self._slots and (
            self._slots[0] < max(now - limits.PACE_SLICE_SECONDS, self._not_before) or interval != self._slots_interval
        ):
            self._slots.clear()
        self._slots_interval = interval

    def _look(self, shared: SharedPace) -> None:
        """Look once in a slice of time whether another process has found the agent busy."""
        now = asyncio.get_running_loop().time()
        if now >= self._look_at:
            self._look_at = now + limits.PACE_SLICE_SECONDS
            with suppress(StoreError):
                if left := shared.pause_left():
                    self._not_before = max(self._not_before, now + left)
