"""HTTP requests to orgs with limits for time and size, retries after transient errors, and polling of jobs."""

from __future__ import annotations

import asyncio
import math
import os
import re
import ssl
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import httpx

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, OrgBusy, OrgUnreachable, UsageError, WaitRanOut
from evalmeta.protocol.http import (
    error_reason,
    failure_of_error,
    failure_of_status,
    is_too_long,
    redacted_logs,
    retry_pause,
)
from evalmeta.protocol.json_fields import host_of, is_loopback, org_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


_TOKEN: Final = re.compile(r"[!-~]+")
_T = TypeVar("_T")
_GROWTH: Final = 1.1
_LONGEST_POLL_PAUSE: Final = 10
_LONGEST_RETRY_PAUSE: Final = 30


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply; its body may contain a session, so it is not in the repr."""

    status: int
    body: bytes = field(repr=False)


def bearer(token: str) -> str:
    """Return the Authorization header for a token; raise UsageError, without quoting it, if it is not valid."""
    if not _TOKEN.fullmatch(token):
        raise UsageError("the access token is empty or has characters that are not allowed in a token")
    return f"Bearer {token}"


def open_http(url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Open a client for one org. It follows no redirects, and uses no proxy for orgs on this machine.

    Without a `transport`, raise UsageError if the address is not valid, or http on another machine.
    """
    if transport is None:
        org_url(url)
    try:
        return httpx.AsyncClient(
            base_url=url,
            transport=transport,
            timeout=limits.HTTP_TIMEOUT_SECONDS,
            trust_env=not is_loopback(host_of(url)),
            verify=transport is not None or trusted_certificates(),
        )
    except httpx.InvalidURL as error:
        raise UsageError(f"{url!r} is not a valid address of an org: {error}") from None


def trusted_certificates() -> ssl.SSLContext:
    """Return the certificates to trust, also on this machine; raise UsageError if SSL_CERT_FILE cannot be used."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        reason = "it contains no certificate in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(f"SSL_CERT_FILE={os.environ.get('SSL_CERT_FILE')} cannot be used: {reason}") from None


async def request(
    http: httpx.AsyncClient,
    method: str,
    path: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Send one request of a login and return the reply.

    Raise OrgUnreachable without a reply, MessageUnreadable for a redirect or more than `limits.MAX_LOGIN_BYTES`.
    """
    url = str(http.base_url).rstrip("/")
    try:
        with redacted_logs():
            async with http.stream(method, path, data=form, headers=headers) as response:
                if target := redirect_target(response):
                    raise MessageUnreadable(
                        f"{url} redirects to {target}; nothing was sent there",
                        actions=[f"If that is your org, use --instance-url {target}"],
                    )
                return Reply(response.status_code, await read_limited(response, limits.MAX_LOGIN_BYTES))
    except httpx.HTTPError as error:
        raise OrgUnreachable(
            f"{url} does not answer: {error_reason(error)}", actions=_connection_advice(url, error)
        ) from None


def _connection_advice(url: str, error: httpx.HTTPError | TimeoutError) -> tuple[str, ...]:
    advice = ["Check the address, and that the org is up and reachable."]
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        advice = ["If the org has its own certificate, trust it: export SSL_CERT_FILE=FILE (PEM format)."]
    if is_loopback(host_of(url)):
        scheme, _, place = url.partition("://")
        if "WRONG_VERSION_NUMBER" in str(error):
            advice.insert(0, f"Did you mean http://{place}?")
        elif scheme == "http" and isinstance(error, httpx.RemoteProtocolError):
            advice.insert(0, f"Did you mean https://{place}?")
        advice.append("To serve the org of a project on this machine: evalmeta org start")
    return tuple(advice)


async def read_limited(response: httpx.Response, max_bytes: int) -> bytes:
    """Return the body of a reply; raise MessageUnreadable if it is larger than `max_bytes`."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            raise MessageUnreadable(f"the org's reply is larger than {max_bytes:,} bytes")
    return bytes(body)


def redirect_target(response: httpx.Response) -> str:
    """Return scheme and host of a redirect, or an empty text; the rest of the address may contain secrets."""
    if response.next_request is None:
        return ""
    target = response.next_request.url
    return f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}"


async def poll(
    check: Callable[[], Awaitable[_T]], is_done: Callable[[_T], bool], *, job_id: str, wait: float | None, every: float
) -> _T:
    """Check a job immediately and then after pauses, until it is done; return the last status.

    A check changes nothing, so it is repeated after transient errors, at most `limits.MAX_POLL_ERRORS` times in a row;
    then the last OrgBusy or OrgUnreachable is raised, while the job is still in progress. After `wait` seconds
    WaitRanOut is raised; a check that has begun then has one more minute. The first pause has `every` seconds, and each
    pause is 10 % longer, up to ten times as long.
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
        if seconds is not None and math.isnan(seconds):
            raise UsageError("wait is nan; it must be a number of seconds, or None")
        self._over = WaitRanOut(
            f"job {job_id} is not done after {seconds or 0:g} seconds; it continues in the org", job_id=job_id
        )
        self._deadline = None if seconds is None else time.monotonic() + seconds

    async def within(self, check: Callable[[], Awaitable[_T]]) -> _T:
        left = None
        if self._deadline is not None:
            left = max(0.0, self._deadline - time.monotonic()) + limits.HTTP_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(left):
                return await check()
        except TimeoutError:
            raise self._over from None

    async def sleep(self, seconds: float, *, otherwise: Exception | None = None) -> None:
        if self._deadline is not None and time.monotonic() + seconds > self._deadline:
            raise otherwise or self._over
        await asyncio.sleep(seconds)


class Backoff:
    """Exponential back-off with jitter: count errors in a row and return the pause after each.

    `first` is the maximum pause in seconds after the first error; later ones are up to 30 times as long. `most` is the
    number of errors in a row after which to give up.
    """

    def __init__(self, *, first: float, most: int) -> None:
        self._first = first
        self._most = most
        self._errors = 0

    def reset(self) -> None:
        """Reset the count, after a success."""
        self._errors = 0

    def pause(self, error: OrgBusy | OrgUnreachable) -> float:
        """Count an error and return the seconds to wait; raise it if it is not transient or the last one."""
        self._errors += 1
        may_pass = not is_too_long(error.after) if isinstance(error, OrgBusy) else error.may_pass
        if self._errors >= self._most or not may_pass:
            raise error
        jittered = retry_pause(self._errors, first=self._first, longest=self._first * _LONGEST_RETRY_PAUSE)
        return max(jittered, error.after or 0) if isinstance(error, OrgBusy) else jittered


async def send_with_retries(send: Callable[[], Awaitable[_T]], *, every: float, changes: bool = False) -> _T:
    """Send a request, and again after transient errors.

    With `changes`, the request changes the org: it is repeated only if the org certainly did not process it, because
    it did not reach the org or the org was busy. `every` is twice the seconds to wait after the first error. Raise the
    last OrgBusy or OrgUnreachable after `limits.MAX_ATTEMPTS`, or when two requests did not reach the org.
    """
    backoff, unreached = Backoff(first=every / 2, most=limits.MAX_ATTEMPTS), 0
    while True:
        try:
            return await send()
        except (OrgBusy, OrgUnreachable) as error:
            unreached += isinstance(error, OrgUnreachable) and error.is_undone
            # An org that refuses connections will rarely accept them seconds later, so fail soon.
            if changes and not error.is_undone:
                error.actions = (*error.actions, "The org may have processed the request: check before you repeat it.")
                raise
            if unreached > 1:
                raise
            await asyncio.sleep(backoff.pause(error))


def unreachable_error(url: str, error: httpx.HTTPError | TimeoutError) -> OrgUnreachable:
    """Return the error for a request without an answer."""
    failure = failure_of_error(error)
    return OrgUnreachable(
        f"{url} does not answer: {error_reason(error)}",
        actions=_connection_advice(url, error),
        may_pass=failure.is_transient,
        is_undone=failure.is_unprocessed,
    )


def busy_error(url: str, status: int, text: str, *, after: float | None) -> OrgBusy:
    """Return the error for an answer with a transient status."""
    is_refused = failure_of_status(status).is_unprocessed
    reason = text or ("too many requests" if is_refused else "the proxy in front of it got no reply")
    when = "" if after is None else f" The org asks to wait {after:g} seconds."
    return OrgBusy(
        f"{url} answered with status {status}: {reason}",
        after=after,
        is_undone=is_refused,
        actions=[f"Try again later.{when}"],
    )
