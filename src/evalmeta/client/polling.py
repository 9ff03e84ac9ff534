"""Asking about a job until it is done, with a deadline."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from evalmeta.errors import WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["poll"]

_T = TypeVar("_T")


async def poll(
    check: Callable[[], Awaitable[_T]], is_done: Callable[[_T], bool], *, job_id: str, wait: float | None, every: float
) -> _T:
    """Asks at once, and then every so often, until the answer says that the job is done.

    Args:
        check: asks once.
        is_done: tells whether an answer is the last one.
        job_id: names the job when the wait runs out.
        wait: seconds to wait at the most; None waits without end.
        every: seconds between two questions.

    Raises:
        WaitRanOut: the job goes on.
    """
    deadline = None if wait is None else time.monotonic() + wait
    while not is_done(answer := await check()):
        if deadline is not None and time.monotonic() + every > deadline:
            raise WaitRanOut(f"job {job_id} is not done after {wait:g} seconds; it goes on in the org", job_id=job_id)
        await asyncio.sleep(every)
    return answer
