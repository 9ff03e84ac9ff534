"""HTTP to orgs: where requests may go, how long they may take, and how much an answer may have.

Asking about a job until it is done: how often, through trouble that passes, and until when.

Trouble that passes: which errors are worth another attempt, after how long a pause, and how often.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import httpx

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, OrgBusy, OrgUnreachable, UsageError, WaitRanOut
from evalmeta.protocol.http_logging import discreetly, reason_of
from evalmeta.protocol.json_fields import host_of, is_loopback, org_url
from evalmeta.protocol.transient_errors import failure_of_error, failure_of_status, is_too_long, retry_pause

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; its body, which may hold a session, is not in the repr."""

    status: int
    body: bytes = field(repr=False)


def bearer(token: str) -> str:
    """Gives the Authorization header for an access token.

    Raises:
        UsageError: no header can carry it; a library would say so and show it.
    """
    if not _TOKEN.fullmatch(token):
        raise UsageError("the access token is empty, or has blanks or characters that no token has")
    return f"Bearer {token}"


def open_http(url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Opens a client for one org. It follows no redirect, and no proxy stands before this machine's own orgs.

    Raises:
        UsageError: the address is none, or http elsewhere than on this machine; not checked
            with a transport of one's own.
    """
    if transport is None:
        org_url(url)
    try:
        return httpx.AsyncClient(
            base_url=url,
            transport=transport,
            timeout=limits.HTTP_TIMEOUT_SECONDS,
            trust_env=not is_loopback(host_of(url)),
        )
    except httpx.InvalidURL as error:
        raise UsageError(f"{url!r} is no address of an org: {error}") from None


async def request(
    http: httpx.AsyncClient,
    method: str,
    path: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Sends one request about a login and gives the answer.

    Raises:
        OrgUnreachable: there is none.
        MessageUnreadable: it leads elsewhere, or is larger than `limits.MAX_LOGIN_BYTES`.
    """
    url = str(http.base_url).rstrip("/")
    try:
        with discreetly():
            async with http.stream(method, path, data=form, headers=headers) as response:
                if place := where_it_leads(response):
                    raise MessageUnreadable(
                        f"{url} leads to {place}; nothing was sent there",
                        actions=[f"If that is your org: --instance-url {place}"],
                    )
                return Reply(response.status_code, await read_limited(response, limits.MAX_LOGIN_BYTES))
    except httpx.HTTPError as error:
        raise OrgUnreachable(f"{url} does not answer: {reason_of(error)}", actions=ways_to(url, error)) from None


def ways_to(url: str, error: httpx.HTTPError | TimeoutError) -> tuple[str, ...]:
    """Says what can be done about an org that does not answer."""
    host, ways = host_of(url), ["Check the address, and that the org is up and reachable."]
    if is_loopback(host):
        if "WRONG_VERSION_NUMBER" in str(error):
            ways.insert(0, f"Did you mean http://{url.partition('://')[2]}?")
        ways.append("An org of a project of yours is served by: evalmeta org start")
    return tuple(ways)


async def read_limited(response: httpx.Response, max_bytes: int) -> bytes:
    """Reads an answer's body.

    Raises:
        MessageUnreadable: it has more than `max_bytes`.
    """
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > max_bytes:
            raise MessageUnreadable(f"the org's answer has more than {max_bytes:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def where_it_leads(response: httpx.Response) -> str:
    """Gives scheme and host of a redirect, empty when the answer is none; the rest of it may hold secrets."""
    if response.next_request is None:
        return ""
    place = response.next_request.url
    return f"{place.scheme}://{place.netloc.decode('ascii', 'replace')}"


_T = TypeVar("_T")
_GROWTH: Final = 1.1
_LONGEST_POLL_PAUSE: Final = 10


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
        pause = min(pause * _GROWTH, every * _LONGEST_POLL_PAUSE)


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


_LONGEST_RETRY_PAUSE: Final = 30


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
        jittered = retry_pause(self._errors, first=self._first, longest=self._first * _LONGEST_RETRY_PAUSE)
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
    """Return the error for a request without an answer."""
    failure = failure_of_error(error)
    return OrgUnreachable(
        f"{url} does not answer: {reason_of(error)}",
        actions=ways_to(url, error),
        may_pass=failure.is_transient,
        is_undone=failure.is_unprocessed,
    )


def busy(url: str, status: int, words: str, *, after: float | None) -> OrgBusy:
    """Return the error for an answer with a transient status."""
    is_refused = failure_of_status(status).is_unprocessed
    reason = words or ("it asks for fewer requests" if is_refused else "what stands before it has no answer")
    when = "" if after is None else f" It asks to be left alone for {after:g} seconds."
    return OrgBusy(
        f"{url} answered with status {status}: {reason}",
        after=after,
        is_undone=is_refused,
        actions=[f"Try again later.{when}"],
    )


def _may_pass(error: OrgBusy | OrgUnreachable) -> bool:
    return not is_too_long(error.after) if isinstance(error, OrgBusy) else error.may_pass
