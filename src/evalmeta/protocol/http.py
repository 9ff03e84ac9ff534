"""HTTP policies: which errors are transient and how long to wait, and what debug logs may contain."""

from __future__ import annotations

import logging
import math
import random
import re
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.model.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx


class Failure(NamedTuple):
    """Whether the next attempt may succeed, and whether the server has certainly not processed the failed request."""

    is_transient: bool
    is_unprocessed: bool


_UNPROCESSED: Final = Failure(is_transient=True, is_unprocessed=True)
_UNKNOWN: Final = Failure(is_transient=True, is_unprocessed=False)
_FINAL: Final = Failure(is_transient=False, is_unprocessed=False)


# The statuses that Salesforce's own clients retry (420, 502, 503), and their siblings.
_STATUSES: Final[Mapping[int, Failure]] = {
    408: _UNKNOWN,  # Request Timeout
    420: _UNPROCESSED,  # Salesforce: too many requests at a time
    429: _UNPROCESSED,  # Too Many Requests
    502: _UNKNOWN,  # Bad Gateway
    503: _UNPROCESSED,  # Service Unavailable
    504: _UNKNOWN,  # Gateway Timeout
    529: _UNPROCESSED,  # Anthropic: too many requests of all users together
}
# The exceptions of httpx, by name because callers that never send a request do not load httpx.
_ERRORS: Final[Mapping[str, Failure]] = {
    "ConnectError": _UNPROCESSED,  # connection refused, host not found
    "ConnectTimeout": _UNPROCESSED,
    "PoolTimeout": _UNPROCESSED,
    "ProxyError": _UNPROCESSED,
    "NetworkError": _UNKNOWN,  # reset while it was read or written
    "TimeoutException": _UNKNOWN,
    "TimeoutError": _UNKNOWN,
    "RemoteProtocolError": _UNKNOWN,  # an incomplete answer, or a closed connection
    "DecodingError": _UNKNOWN,  # an incomplete compressed answer
}
# Their texts may quote a reply.
_QUOTING_ERRORS: Final = frozenset({"ProtocolError", "ProxyError"})
# OpenSSL's words for connections that will never succeed.
_TLS_ERRORS: Final = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)


def failure_of_status(status: int) -> Failure:
    """Return what an answer's status means for the next attempt; a status that is not transient is final."""
    return _STATUSES.get(status, _FINAL)


def failure_of_error(error: Exception) -> Failure:
    """Return what an exception of httpx, or a TimeoutError, means for the next attempt."""
    failure = next((_ERRORS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _ERRORS), _FINAL)
    if any(words in str(error) for words in _TLS_ERRORS):
        return failure._replace(is_transient=False)
    return failure


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks clients to wait, None if it does not.

    Retry-After holds seconds or a date (RFC 9110, 10.2.3), by the server's clock, which Date tells. Some servers send
    fractions of seconds. OpenAI and Azure also send retry-after-ms, which is more exact. Header names must ignore case
    or be in lower case.
    """
    header, milliseconds = headers.get("retry-after", ""), headers.get("retry-after-ms", "")
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    if _NUMBER.fullmatch(header):
        return float(header)
    moment = _moment(header)
    if moment is None:
        return None
    sent = _moment(headers.get("date", ""))
    return max(0.0, math.ceil(moment - (time.time() if sent is None else sent)))


def _moment(date: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def is_too_long(after: float | None) -> bool:
    """Return whether a server asks for a longer pause than evalmeta honours."""
    return (after or 0) > limits.MAX_RETRY_AFTER_SECONDS


def retry_pause(attempt: int, *, first: float | None = None, longest: float | None = None) -> float:
    """Return the seconds to wait after a failed attempt, counted from 1: they double, less a random part.

    `first` is the longest pause after the first attempt, `longest` the longest of all; `limits` has the defaults.
    """
    first = limits.RETRY_PAUSE_SECONDS if first is None else first
    longest = limits.MAX_RETRY_PAUSE_SECONDS if longest is None else longest
    pause = min(first * 2 ** (attempt - 1), longest)
    # Clients that failed together must not come back together.
    return random.uniform(pause / 2, pause)


_LOGGERS: Final = ("httpx", *(f"httpcore.{name}" for name in ("connection", "http11", "http2", "proxy", "socks")))
_IS_REDACTED: Final = ContextVar("_IS_REDACTED", default=False)
# httpcore logs the headers of replies, and errors that quote them.
_REPLY: Final = re.compile(r" (?:return_value|exception)=.*", re.DOTALL)
# h11 and httpx quote replies in error texts, such as: illegal status line: bytearray(b'...').
_QUOTED: Final = re.compile(r"(?:: | b?['\"]).*", re.DOTALL)


class _RedactingFilter(logging.Filter):
    """Shorten records inside `redacted_logs`; other requests of the program are logged unchanged."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _IS_REDACTED.get():
            record.msg, record.args = redacted(_REPLY.sub("", record.getMessage())), ()
        return True


_FILTER: Final = _RedactingFilter()


@contextmanager
def redacted_logs() -> Iterator[None]:
    """Keep replies of orgs out of the logs during a request."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)
    before = _IS_REDACTED.set(True)
    try:
        yield
    finally:
        # A coroutine that is closed after an interruption is closed in another context, which has its own value.
        with suppress(ValueError):
            _IS_REDACTED.reset(before)


def error_reason(error: httpx.HTTPError | TimeoutError) -> str:
    """Return the reason of a failed request, without quotes of the reply, which may contain secrets."""
    reason = str(error)
    if not _QUOTING_ERRORS.isdisjoint(kind.__name__ for kind in type(error).__mro__):
        reason = redacted(_QUOTED.sub("", reason))
    return reason or type(error).__name__
