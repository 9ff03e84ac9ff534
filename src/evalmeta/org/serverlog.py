"""The log of a served org: to a file of bounded size and, in the foreground, to stderr; never with a secret."""

from __future__ import annotations

import logging
import re
import sys
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.secrecy import redacted
from evalmeta.wire.timestamps import to_timestamp

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["open_log"]

_LOGGERS: Final = ("evalmeta.org", "uvicorn.error", "asyncio")
# Nobody misses a word of a log: whatever stands in an Authorization header, or is named as a secret.
_SECRETS: Final = re.compile(
    r"""
    (?:Bearer|Basic|OAuth)\s+\S+
    | <sessionId>[^<]+
    | \w*(?:token|assertion|secret|password|code|sid)=[^&\s'"]+
    """,
    re.VERBOSE | re.IGNORECASE,
)


class _Formatter(logging.Formatter):
    """Writes one line for an event, tracebacks below it, and hides what looks like a secret."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - its name
        """Gives the time in UTC, to the millisecond."""
        return to_timestamp(record.created)

    def format(self, record: logging.LogRecord) -> str:
        return _SECRETS.sub("[secret]", redacted(super().format(record)))


def open_log(path: Path, *, to_stderr: bool) -> None:
    """Opens the log for this process; two older files of the same size are kept beside it.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(exist_ok=True)
    handlers: list[logging.Handler] = [
        RotatingFileHandler(path, maxBytes=limits.MAX_LOG_BYTES, backupCount=2, encoding="utf-8")
    ]
    if to_stderr:
        handlers.append(logging.StreamHandler(sys.stderr))
    formatter = _Formatter("%(asctime)s %(message)s")
    for handler in handlers:
        handler.setFormatter(formatter)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = handlers
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "evalmeta.org" else logging.WARNING)
