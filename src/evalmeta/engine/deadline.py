"""Time limits, which cost nearly nothing for work that never waits."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from types import coroutine
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Iterator

_T = TypeVar("_T")


class TimeLimit:
    """The seconds that each of many works may take; the time of the first is over first, so one timer serves them."""

    __slots__ = ("_ends", "_timer", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends: dict[Deadline, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, deadline: Deadline) -> None:
        """Let the time of a work begin."""
        loop = asyncio.get_running_loop()
        self._ends[deadline] = end = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_at(end, self._expire, loop)

    def remove(self, deadline: Deadline) -> float | None:
        """Forget a work, and return when its time would be over; None if it is not known."""
        end = self._ends.pop(deadline, None)
        if self._timer is not None and not self._ends:
            self._timer.cancel()
            self._timer = None
        return end

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for deadline, end in tuple(self._ends.items()):
            if end > loop.time():
                self._timer = loop.call_at(end, self._expire, loop)
                return
            del self._ends[deadline]
            deadline.expire()


class Deadline:
    """The end of a time limit, which costs nearly nothing for work that never waits; seconds of pauses do not count."""

    __slots__ = ("_left", "_limit", "_task", "_timer", "has_expired", "paused")

    def __init__(self, limit: TimeLimit) -> None:
        self._limit = limit
        # None while it is paused.
        self._left: float | None = limit.seconds
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.has_expired = False
        self.paused = 0.0

    @property
    def has_started(self) -> bool:
        """Whether the work has waited."""
        return self._task is not None

    async def run(self, work: Coroutine[object, object, _T]) -> _T:
        """Return what the work returns; cancel it and raise TimeoutError if it takes too long."""
        # A timer, and what follows a cancellation, are only needed when the work waits for the first time.
        try:
            first = work.send(None)
        except StopIteration as done:
            result: _T = done.value
            return result
        self._task = task = cast("asyncio.Task[object]", asyncio.current_task())
        cancellations = task.cancelling()
        if self._left is not None:
            self._limit.add(self)
        try:
            return await _resume(work, first)
        except asyncio.CancelledError as error:
            if self.has_expired and task.cancelling() <= cancellations + 1:
                raise TimeoutError from error
            raise
        finally:
            self._stop()
            if self.has_expired:
                task.uncancel()

    def expire(self) -> None:
        """Cancel the work."""
        if self._task is not None:
            self.has_expired = True
            self._task.cancel()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the clock."""
        begun, now = time.monotonic(), asyncio.get_running_loop().time
        end = self._stop()
        left = self._left if end is None else end - now()
        self._left = None
        try:
            yield
        finally:
            self.paused += time.monotonic() - begun
            self._left = left
            if left is not None and self._task is not None and not self.has_expired:
                self._timer = asyncio.get_running_loop().call_later(left, self.expire)

    def _stop(self) -> float | None:
        """Stop the timer, and return when it would have ended."""
        if self._timer is None:
            return self._limit.remove(self)
        self._timer.cancel()
        end, self._timer = self._timer.when(), None
        return end


@coroutine
def _resume(work: Coroutine[object, object, _T], waits_for: object) -> Generator[object, object, _T]:
    """Run the rest of a coroutine that already waits for something."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - the coroutine handles it
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as done:
        result: _T = done.value
        return result
