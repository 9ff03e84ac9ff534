"""A time limit that costs next to nothing for work that never waits."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from types import coroutine
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Iterator

__all__ = ["Deadline"]

_T = TypeVar("_T")


class Deadline:
    """Gives work a number of seconds from the moment it first waits; pauses that are not its own do not count."""

    __slots__ = ("_left", "_timeout", "paused")

    def __init__(self, seconds: float) -> None:
        self._left: float | None = seconds
        self._timeout: asyncio.Timeout | None = None
        self.paused = 0.0

    @property
    def has_expired(self) -> bool:
        """Tells whether the time ran out while the work waited."""
        return self._timeout is not None and self._timeout.expired()

    async def keep(self, work: Coroutine[object, object, _T]) -> _T:
        """Gives what the work gives.

        Raises:
            TimeoutError: it took too long; it was cancelled.
        """
        # A timer is armed and taken back for every case otherwise, which costs as much as scoring one.
        try:
            first = work.send(None)
        except StopIteration as done:
            result: _T = done.value
            return result
        async with asyncio.timeout(self._left) as self._timeout:
            return await _rest(work, first)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stops the clock."""
        left, begun = self._seconds_left(), time.monotonic()
        self._set(None)
        try:
            yield
        finally:
            self.paused += time.monotonic() - begun
            self._set(left)

    def _seconds_left(self) -> float | None:
        when = None if self._timeout is None else self._timeout.when()
        return self._left if when is None else when - asyncio.get_running_loop().time()

    def _set(self, left: float | None) -> None:
        self._left = left
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(None if left is None else asyncio.get_running_loop().time() + left)


@coroutine
def _rest(work: Coroutine[object, object, _T], waits_for: object) -> Generator[object, object, _T]:
    """Goes on with work whose first step was taken."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - the work decides what to do about it
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as done:
        result: _T = done.value
        return result
