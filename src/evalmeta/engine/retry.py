"""How fast an agent is asked: so many questions a second at most, and fewer at a time once it says that it is busy."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.protocol.transient_errors import retry_pause

if TYPE_CHECKING:
    from evalmeta.errors import SubjectBusy


class Pacer:
    """Lets questions through to one agent.

    Questions are spread evenly over every second. When the agent is busy, all wait as
    long as it asks for, half as many are asked at a time, and every answer after that
    allows a little more again (additive increase, multiplicative decrease, as in TCP:
    RFC 5681, 3.1).
    """

    def __init__(self, *, rate: float | None = None, concurrency: int = limits.CONCURRENCY) -> None:
        self._interval = 1 / rate if rate else 0.0
        self._most = max(1, concurrency)
        self._window = float(self._most)
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._not_before = 0.0
        self._next_slot = 0.0
        self.is_free = not rate

    async def enter(self, *, is_question: bool = True) -> None:
        """Waits until the agent may be asked; `leave` must follow. What is no question has no part in the rate."""
        if self._inside < int(self._window):
            self._inside += 1
        else:
            await self._wait_for_room()
        try:
            await self._wait_for_slot(self._interval if is_question else 0.0)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Makes room for the next question."""
        self._inside -= 1
        self._let_in()

    def accepted(self) -> None:
        """Notes an answer: when a whole window was answered, one question more fits at a time."""
        self._window = min(float(self._most), self._window + 1 / self._window)
        self._let_in()
        self.is_free = not self._interval and self._window >= self._most

    def refused(self, busy: SubjectBusy, *, attempt: int) -> None:
        """Notes that the agent is busy: nobody asks it for as long as it wants, or for a pause that grows."""
        now = time.monotonic()
        if now >= self._not_before:
            # Refusals of questions that were asked at the same time count once.
            self._window = max(1.0, self._window / 2)
        pause = retry_pause(attempt) if busy.after is None else busy.after
        self._not_before = max(self._not_before, now + pause)
        self.is_free = False

    async def _wait_for_room(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except BaseException:
            if not place.cancelled():
                # Let in and cancelled at the same time.
                self.leave()
            raise

    def _let_in(self) -> None:
        """Gives room to those who wait, in their order: who comes later does not overtake them."""
        while self._waiting and self._inside < int(self._window):
            place = self._waiting.popleft()
            if not place.done():
                self._inside += 1
                place.set_result(None)

    async def _wait_for_slot(self, interval: float) -> None:
        while True:
            now = time.monotonic()
            ready = max(now, self._not_before)
            if interval:
                ready = max(ready, self._next_slot)
                self._next_slot = ready + interval
            if ready > now:
                await asyncio.sleep(ready - now)
            if self._not_before <= time.monotonic():
                return
