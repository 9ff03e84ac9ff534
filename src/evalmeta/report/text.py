"""Numbers in words: counts, shares and seconds as people read them.

Text of unknown origin made plain: nothing in it can act on a terminal or break a line's frame.

JSON of any values as text that every reader takes and no terminal acts on.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


_MINUTE: Final = 60
_SHOW_MILLISECONDS: Final = 10
_SMALLEST: Final = 0.001


def count(number: int, noun: str) -> str:
    """Gives `1 case`, `2 cases`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def decimal(number: float) -> str:
    """Gives `0.667`, `1,234.5`: at most three places, or two digits of what is smaller."""
    if not math.isfinite(number) or 0 < abs(number) < _SMALLEST:
        return f"{number:.2g}"
    return f"{number:,.3f}".rstrip("0").rstrip(".")


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Gives two numbers as `decimal` does, or in full where they would look the same and are not."""
    short = decimal(first), decimal(second)
    return short if short[0] != short[1] or first == second else (f"{first!r}", f"{second!r}")


def percent(share: float) -> str:
    """Gives a share of 0 to 1 in percent, rounded down: only a whole share is 100 %."""
    return f"{math.floor(share * 10_000 + 1e-6) / 100:g} %"


def seconds(duration: float) -> str:
    """Gives `0.412 s`, `12.5 s` or `2 min 5 s`."""
    if duration < _SHOW_MILLISECONDS:
        return f"{round(duration, 3):g} s"
    if duration < _MINUTE:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), _MINUTE)
    return f"{minutes:,} min {rest} s"


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


def json_text(value: JsonValue, *, indent: int | None = None) -> str:
    """Writes a value as JSON; numbers that JSON does not know (NaN, infinity) become null, never 0.

    Lone surrogates, control characters and what turns the direction of writing stand as
    `\\u009b`, so that every reader gets them back.
    """
    return escape_unsafe(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent))


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
