"""A time limit that costs next to nothing for work that never waits."""

from __future__ import annotations

import asyncio
from types import coroutine
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

__all__ = ["Deadline"]

_T = TypeVar("_T")


class Deadline:
    """Gives work a number of seconds from the moment it first waits; later ones can be granted on the way."""

    __slots__ = ("_seconds", "_timeout")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout: asyncio.Timeout | None = None

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
        async with asyncio.timeout(self._seconds) as self._timeout:
            return await _rest(work, first)

    def postpone(self, seconds: float) -> None:
        """Grants more time, for a pause that is not the work's own."""
        when = None if self._timeout is None else self._timeout.when()
        if self._timeout is not None and when is not None and not self._timeout.expired():
            self._timeout.reschedule(when + seconds)


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
