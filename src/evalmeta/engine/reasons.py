"""Errors of other people's code in words that can be stored and shown."""

from __future__ import annotations

from evalmeta import limits
from evalmeta.errors import EvalmetaError
from evalmeta.model.redaction import redacted


def reason(error: BaseException) -> str:
    """Says what went wrong, in at most `MAX_ERROR_CHARS` characters of valid Unicode."""
    text = _text(error)
    if not text or not isinstance(error, EvalmetaError):
        name = type(error).__name__
        text = f"{name}: {text}" if text else name
    text = redacted(text.encode(errors="replace").decode())
    return text if len(text) <= limits.MAX_ERROR_CHARS else text[: limits.MAX_ERROR_CHARS - 1] + "…"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that cannot even say what it is must not stop the run
        return "the error cannot be shown"
