"""Asking about a job until it is done: how often, through trouble that passes, and until when."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar

from evalmeta import limits
from evalmeta.client.retries import Backoff
from evalmeta.errors import OrgBusy, OrgUnreachable, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["poll"]

_T = TypeVar("_T")
_GROWTH: Final = 1.1
_LONGEST: Final = 10


async def poll(
    check: Callable[[], Awaitable[_T]], is_done: Callable[[_T], bool], *, job_id: str, wait: float | None, every: float
) -> _T:
    """Asks at once, and then after pauses, until the answer says that the job is done.

    Questions are harmless, so that one which fails in passing (`retries`) is asked again, up
    to `limits.MAX_POLL_ERRORS` times in a row.

    Args:
        check: asks once.
        is_done: tells whether an answer is the last one.
        job_id: names the job when the wait runs out.
        wait: seconds to wait at the most; None waits without end. A question that is
            being answered then has a minute more.
        every: seconds between the first two questions; a tenth more each time, up to ten times as much.

    Raises:
        WaitRanOut: the job goes on.
        OrgBusy, OrgUnreachable: one error too many, or no answer at all within the wait; the job goes on.
    """
    is_answered = False
    waiting, backoff, pause = _Wait(job_id, wait), Backoff(first=every, most=limits.MAX_POLL_ERRORS), every
    while True:
        try:
            answer = await waiting.within(check)
        except (OrgBusy, OrgUnreachable) as error:
            await waiting.sleep(backoff.pause(error), otherwise=None if is_answered else error)
            continue
        if is_done(answer):
            return answer
        is_answered = True
        backoff.reset()
        await waiting.sleep(pause)
        pause = min(pause * _GROWTH, every * _LONGEST)


class _Wait:
    def __init__(self, job_id: str, seconds: float | None) -> None:
        self._over = WaitRanOut(
            f"job {job_id} is not done after {seconds or 0:g} seconds; it goes on in the org", job_id=job_id
        )
        self._deadline = None if seconds is None else time.monotonic() + seconds

    async def within(self, check: Callable[[], Awaitable[_T]]) -> _T:
        """Asks once, and gives up a minute after the end of the wait."""
        left = None
        if self._deadline is not None:
            left = max(0.0, self._deadline - time.monotonic()) + limits.HTTP_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(left):
                return await check()
        except TimeoutError:
            raise self._over from None

    async def sleep(self, seconds: float, *, otherwise: Exception | None = None) -> None:
        """Sleeps, unless the wait would be over then."""
        if self._deadline is not None and time.monotonic() + seconds > self._deadline:
            raise otherwise or self._over
        await asyncio.sleep(seconds)
