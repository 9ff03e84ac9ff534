"""Text of unknown origin made plain: nothing in it can act on a terminal or break a line's frame."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Final

__all__ = ["LINE_CHARS", "clean", "escape_unsafe", "one_line", "quote", "shorten", "wrap"]

LINE_CHARS: Final = 100
# What is shown of one text where people read; the json report has all of it.
_SHOWN_CHARS: Final = 4_000

# Control characters (but line feed and tab), every Bidi_Control character of Unicode, the
# deprecated format characters beside them, line and paragraph separators, lone surrogates.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")
_LINE_ENDS: Final = re.compile("\r\n?")
_BLANKS: Final = re.compile(r"\s+")


def clean(text: str) -> str:
    r"""Shows what could act on a terminal as an escape such as `\x1b`; line breaks become line feeds."""
    return _UNSAFE.sub(_python_escape, _LINE_ENDS.sub("\n", text))


def one_line(text: str, *, chars: int = LINE_CHARS) -> str:
    """Gives clean text on one line of at most `chars` characters, with an ellipsis when it was longer."""
    # A character may become six, and a run of blanks one: enough is taken to fill the line.
    line = _BLANKS.sub(" ", clean(text[:_SHOWN_CHARS])).strip()
    if len(line) <= chars and len(text) <= _SHOWN_CHARS:
        return line
    return line[: chars - 1].rstrip() + "…"


def shorten(text: str) -> str:
    """Gives clean text, cut after 4,000 characters with the number of those left out."""
    if len(text) <= _SHOWN_CHARS:
        return clean(text)
    return f"{clean(text[:_SHOWN_CHARS])}… ({len(text) - _SHOWN_CHARS:,} more characters)"


def wrap(text: str, *, first: str, indent: str) -> str:
    """Gives clean, shortened text in lines of `LINE_CHARS`: `first` before the first line, `indent` before others."""
    lines = [
        piece
        for line in shorten(text).expandtabs(4).split("\n")
        for piece in textwrap.wrap(line, LINE_CHARS - len(indent), break_on_hyphens=False) or [""]
    ]
    starts = [first] + [indent] * (len(lines) - 1)
    return "\n".join((start + line).rstrip() for start, line in zip(starts, lines, strict=True))


def quote(text: str) -> str:
    """Gives the text as a JSON string, which is a YAML string too, without any unsafe character."""
    return escape_unsafe(json.dumps(text, ensure_ascii=False))


def escape_unsafe(document: str) -> str:
    r"""Writes unsafe characters of a JSON document as `\u009b`: the same document to whoever reads it."""
    return _UNSAFE.sub(_json_escape, document)


def _python_escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _json_escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
