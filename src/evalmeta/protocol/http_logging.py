"""What the libraries below write about our requests to their debug logs: what happened, and nothing that was said."""

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
_OURS: Final = ContextVar("_OURS", default=False)
# httpcore shows the headers of answers, and errors that quote them.
_SAID: Final = re.compile(r" (?:return_value|exception)=.*", re.DOTALL)
# So do h11 and httpx in the texts of errors: illegal status line: bytearray(b'...').
_QUOTED: Final = re.compile(r"(?:: | b?['\"]).*", re.DOTALL)


class _Discretion(logging.Filter):
    """Shortens what is logged inside `discreetly`; a program's own requests are none of our business."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _OURS.get():
            record.msg, record.args = redacted(_SAID.sub("", record.getMessage())), ()
        return True


_DISCRETION: Final = _Discretion()


@contextmanager
def discreetly() -> Iterator[None]:
    """Keeps what orgs answer out of the logs while a request is made."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_DISCRETION)
    before = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(before)


def reason_of(error: httpx.HTTPError | TimeoutError) -> str:
    """Says why no answer came, without what the error quotes of an answer: that may repeat a secret."""
    said = str(error)
    if isinstance(error, httpx.ProtocolError | httpx.ProxyError):
        said = redacted(_QUOTED.sub("", said))
    return said or type(error).__name__
