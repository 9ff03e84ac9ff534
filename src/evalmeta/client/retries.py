"""Trouble that passes: which errors are worth another attempt, after how long a pause, and how often."""

from __future__ import annotations

import asyncio
import random
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

import httpx

from evalmeta import limits
from evalmeta.client.http import ways_to
from evalmeta.errors import OrgBusy, OrgUnreachable
from evalmeta.wire.discretion import reason_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Backoff", "busy", "is_busy", "no_answer", "persist"]

_T = TypeVar("_T")

# What Salesforce's own clients try again after (ECONNREFUSED, ECONNRESET, ENOTFOUND, EAI_AGAIN, ETIMEDOUT, socket hang
# up, ERROR_HTTP_420, 502, 503), and half an answer, 429 and 504.
_PASSING: Final = (
    httpx.DecodingError,
    httpx.NetworkError,
    httpx.ProxyError,
    httpx.RemoteProtocolError,
    httpx.TimeoutException,
)
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
# Salesforce's own status for too many requests at one time.
_ENHANCE_YOUR_CALM: Final = 420
_REFUSED: Final = frozenset({_ENHANCE_YOUR_CALM, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_BUSY: Final = _REFUSED | {HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
_LONGEST: Final = 30


class Backoff:
    """Counts errors in a row and says how long to pause after each: twice as long every time, less a random part.

    Args:
        first: seconds after the first error, at most; later pauses go up to 30 times that.
        most: which error in a row is the last one.
    """

    def __init__(self, *, first: float, most: int) -> None:
        self._first = first
        self._most = most
        self._errors = 0

    def reset(self) -> None:
        """Begins to count anew, after a success."""
        self._errors = 0

    def pause(self, error: OrgBusy | OrgUnreachable) -> float:
        """Counts an error and gives the seconds to wait before the next attempt.

        Raises:
            OrgBusy, OrgUnreachable: the error itself, when it does not pass or was one too many.
        """
        self._errors += 1
        if self._errors >= self._most or not _may_pass(error):
            raise error
        longest = self._first * min(2 ** (self._errors - 1), _LONGEST)
        jittered = random.uniform(longest / 2, longest)  # noqa: S311 - clients that failed together come back apart
        return max(jittered, error.after or 0) if isinstance(error, OrgBusy) else jittered


async def persist(ask: Callable[[], Awaitable[_T]], *, every: float, changes: bool = False) -> _T:
    """Makes a request, again when it fails in passing.

    Args:
        ask: makes it once.
        every: twice the seconds to wait after the first error; `Connection.poll_seconds`.
        changes: whether the request changes something in the org: then it is made again
            only where it surely was not carried out, because it did not reach the org or the
            org refused it for now.

    Raises:
        OrgBusy, OrgUnreachable: it failed `limits.MAX_ATTEMPTS` times, did not reach the org
            twice, or may have been carried out.
        EvalmetaError: whatever else it raises, at once.
    """
    backoff, unreached = Backoff(first=every / 2, most=limits.MAX_ATTEMPTS), 0
    while True:
        try:
            return await ask()
        except (OrgBusy, OrgUnreachable) as error:
            unreached += isinstance(error, OrgUnreachable) and error.is_undone
            # Where nobody listens, nobody will a few seconds later: whoever waits for an answer is told soon.
            if changes and not error.is_undone:
                error.actions = (*error.actions, "The org may have done it all the same: look before you repeat it.")
                raise
            if unreached > 1:
                raise
            await asyncio.sleep(backoff.pause(error))


def no_answer(url: str, error: httpx.HTTPError | TimeoutError) -> OrgUnreachable:
    """Puts into words that no answer came."""
    return OrgUnreachable(
        f"{url} does not answer: {reason_of(error)}",
        actions=ways_to(url, error),
        may_pass=isinstance(error, (*_PASSING, TimeoutError)),
        is_undone=isinstance(error, _UNSENT),
    )


def is_busy(status: int) -> bool:
    """Tells whether an answer's status says to come later."""
    return status in _BUSY


def busy(url: str, status: int, words: str, *, after: float | None) -> OrgBusy:
    """Puts into words that an answer says to come later."""
    reason = words or ("it asks for fewer requests" if status in _REFUSED else "what stands before it has no answer")
    when = "" if after is None else f" It asks to be left alone for {after:g} seconds."
    return OrgBusy(
        f"{url} answered with status {status}: {reason}",
        after=after,
        is_undone=status in _REFUSED,
        actions=[f"Try again later.{when}"],
    )


def _may_pass(error: OrgBusy | OrgUnreachable) -> bool:
    if isinstance(error, OrgBusy):
        return (error.after or 0) <= limits.MAX_RETRY_AFTER_SECONDS
    return error.may_pass
