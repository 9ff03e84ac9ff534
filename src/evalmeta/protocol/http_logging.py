"""Redaction of the debug logs that HTTP libraries write about evalmeta's requests."""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import httpx

from evalmeta.model.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        _IS_REDACTED.reset(before)


def error_reason(error: httpx.HTTPError | TimeoutError) -> str:
    """Return the reason of a failed request, without quotes of the reply, which may contain secrets."""
    reason = str(error)
    if isinstance(error, httpx.ProtocolError | httpx.ProxyError):
        reason = redacted(_QUOTED.sub("", reason))
    return reason or type(error).__name__
