"""Why something failed, in the form in which pytest shows, writes and sends failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from evalmeta.report.plain import clean, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.errors import EvalmetaError

__all__ = ["error_text", "explanation"]


def explanation(path: Path | str, line: int, *, message: str, text: str) -> ReprExceptionInfo:
    """Gives a failure at a place: `text` is shown in full, `message` stands in summaries.

    Workers of pytest-xdist send these classes whole, and of others only their text.
    """
    lines = [f"{each}\n" for each in clean(text).rstrip().split("\n")]
    traceback = ReprTraceback([ReprEntryNative(lines)], None, style="native")
    return ReprExceptionInfo(traceback, ReprFileLocation(str(path), line, one_line(message)))


def error_text(error: EvalmetaError) -> str:
    """Gives an error's message with what to do next, as commands print it."""
    if not error.actions:
        return str(error)
    return "\n".join([str(error), "", "Try this:", *(f"  {each}" for each in "\n".join(error.actions).split("\n"))])
