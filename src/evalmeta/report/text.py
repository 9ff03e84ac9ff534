"""Text for reports: numbers in words, untrusted text made safe for terminals, and safe JSON, also in pieces."""

from __future__ import annotations

import json
import math
import os
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonValue

    Dump = Callable[[JsonValue], str]


LINE_CHARS: Final = 100
# People see at most this much of a text; the json report has all of it.
SHOWN_CHARS: Final = 4_000
_COLUMN_CHARS: Final = 27
_KILO: Final = 1_000
_MINUTE: Final = 60
_BLOCK_CHARS: Final = 65_536
_SHOW_MILLISECONDS: Final = 10
_SMALLEST: Final = 0.001
_DIGITS: Final = 4
_MOST_DIGITS: Final = 9
# Control characters (but line feed and tab), every Bidi_Control character of Unicode, the
# deprecated format characters beside them, line and paragraph separators, lone surrogates.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")
# Logs of CI systems: GitHub's runner takes a line that begins with blanks and `::` as a command, and `##[` anywhere
# (actions/runner, ActionCommand.cs); it is written in .NET, where a carriage return ends a line as well. Azure's agent
# takes `##vso[` anywhere, and TeamCity `##teamcity[`. GitLab's sections need a carriage return and an escape character.
_COMMAND: Final = re.compile(r"(?:^|(?<=\r))([^\S\n]*):(?=:)|(?<=#)#(?=\w*\[)", re.MULTILINE)
_COMMAND_INSIDE: Final = re.compile(r"(?<=#)#(?=\w*\[)")
_LINE_ENDS: Final = re.compile("\r\n?")
_BLANKS: Final = re.compile(r"\s+")


def count(number: int, noun: str) -> str:
    """Return `1 case`, `2 cases`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def and_more(items: Sequence[str], shown: int) -> str:
    """Return the first `shown` items separated by commas, and the number of the others: `1, 2 and 3 more`."""
    left = len(items) - shown
    return ", ".join(items[:shown]) + (f" and {left:,} more" if left > 0 else "")


def number_ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers with their neighbours joined: `1-3, 7`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in ranges)


def decimal(number: float) -> str:
    """Return `0.667` or `1,234.5`: at most three decimal places, or two digits of smaller numbers."""
    if not math.isfinite(number) or 0 < abs(number) < _SMALLEST:
        return f"{number:.2g}"
    return f"{number:,.3f}".rstrip("0").rstrip(".")


def distinct_decimals(first: float, second: float) -> tuple[str, str]:
    """Return two numbers as `decimal` does, with more digits if different numbers would look the same.

    Numbers that differ only by rounding errors, which verdicts ignore too, look the same.
    """
    short = decimal(first), decimal(second)
    longer = ((f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(_DIGITS, _MOST_DIGITS + 1))
    return next((pair for pair in (short, *longer) if pair[0] != pair[1]), short)


def percent(share: float) -> str:
    """Return a share of 0 to 1 in percent, rounded down, so that only 1 is shown as 100 %."""
    return f"{math.floor(share * 10_000 + 1e-6) / 100:g} %"


def seconds(duration: float) -> str:
    """Return `0.412 s`, `12.5 s` or `2 min 5 s`."""
    if duration < _SHOW_MILLISECONDS:
        return f"{round(duration, 3):g} s"
    if duration < _MINUTE:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), _MINUTE)
    return f"{minutes:,} min {rest} s"


def file_size(size: float) -> str:
    """Return a number of bytes as `512 bytes`, `64.2 kB` or `5.1 GB`."""
    if size < _KILO:
        return f"{size:,.0f} bytes"
    for unit in ("kB", "MB"):
        size /= _KILO
        if size < _KILO:
            return f"{size:.1f} {unit}"
    return f"{size / _KILO:,.1f} GB"


def clean(text: str) -> str:
    r"""Return text with unsafe characters written as escapes such as `\x1b`; line breaks become line feeds.

    Commands to CI systems are escaped as in `escape_commands`.
    """
    safe = _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), _LINE_ENDS.sub("\n", text))
    return escape_commands(safe)


def escape_commands(text: str) -> str:
    r"""Return text in which no line is a command to a CI system: `::error::` becomes `\x3a:error::`."""
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda match: r"\x23" if match[1] is None else rf"{match[1]}\x3a", text)


def one_line(text: str, *, chars: int = LINE_CHARS) -> str:
    """Return clean text on one line of at most `chars` characters, with an ellipsis if it was longer."""
    # Cut first, so that a huge text stays cheap; cleaning makes one character up to six, and several blanks one.
    line = _BLANKS.sub(" ", clean(text[:SHOWN_CHARS])).strip()
    if len(line) <= chars and len(text) <= SHOWN_CHARS:
        return line
    return line[: chars - 1].rstrip() + "…"


def shorten(text: str) -> str:
    """Return clean text, cut after 4,000 characters with the number of the others."""
    if len(text) <= SHOWN_CHARS:
        return clean(text)
    return f"{clean(text[:SHOWN_CHARS])}… ({len(text) - SHOWN_CHARS:,} more characters)"


def wrap(text: str, *, first: str, indent: str) -> str:
    """Return clean, shortened text in lines of `LINE_CHARS`: `first` begins the first, `indent` the others."""
    lines = [
        piece
        for line in shorten(text).expandtabs(4).split("\n")
        for piece in textwrap.wrap(line, LINE_CHARS - len(indent), break_on_hyphens=False) or [""]
    ]
    starts = [first] + [indent] * (len(lines) - 1)
    # A long text can be broken where a command begins.
    return escape_commands("\n".join((start + line).rstrip() for start, line in zip(starts, lines, strict=True)))


def side_by_side(left: str, right: str, *, titles: tuple[str, str]) -> str:
    """Return the lines of two texts beside each other in columns, which fit into a terminal of 80 characters."""
    rows = zip((titles[0], *left.splitlines()), (titles[1], *right.splitlines()), strict=True)
    lines = []
    for row in rows:
        cells = [textwrap.wrap(cell, _COLUMN_CHARS, subsequent_indent="  ", break_on_hyphens=False) for cell in row]
        lines += [f"{one:{_COLUMN_CHARS}}  {other}".rstrip() for one, other in zip_longest(*cells, fillvalue="")]
    return "\n".join(lines)


def quote(text: str) -> str:
    """Return the text as a JSON string, which is also a YAML string, without unsafe characters."""
    return escape_unsafe(json.dumps(text, ensure_ascii=False))


def escape_unsafe(document: str) -> str:
    r"""Return a JSON document with unsafe characters written as `\u009b`, which JSON readers read as the same.

    Inside a document no line can begin with `::`, so only the `#` of `##[` is escaped for CI systems.
    """
    # JSON writes control characters as escapes already, so that of ASCII only DEL is left; the search costs more.
    is_safe = document.isascii() and "\x7f" not in document
    safe = document if is_safe else _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", document)
    # One character is found thirty times as fast as two.
    return _COMMAND_INSIDE.sub(r"\\u0023", safe) if "#" in safe and "##" in safe else safe


def json_text(value: JsonValue, *, indent: int | None = None) -> str:
    """Return a value as JSON without unsafe characters; NaN and infinity become null."""
    encoder = _encoder(indent)
    try:
        document = encoder.encode(value)
    except ValueError:
        document = encoder.encode(_finite(value))
    return escape_unsafe(document)


@cache
def _encoder(indent: int | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, indent=indent)


def json_line(value: JsonValue) -> str:
    """Return a value as JSON on one line, without blanks between its parts; otherwise as `json_text` does."""
    try:
        document = orjson.dumps(value).decode()
    except TypeError:
        # Integers of more than 64 bits, lone surrogates, and values that are nested very deeply.
        document = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return escape_unsafe(document)


def attributes_json(source: object, *names: str) -> dict[str, JsonValue]:
    """Return attributes whose values are JSON values; the keys are their names in camel case."""
    return {_camel_case(name): getattr(source, name) for name in names}


@cache
def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def blocks(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the pieces of a text joined to blocks of at least 64 KiB, because every write costs time."""
    block, chars = [], 0
    for piece in pieces:
        block.append(piece)
        chars += len(piece)
        if chars >= _BLOCK_CHARS:
            yield "".join(block)
            block, chars = [], 0
    yield "".join(block)


# GitHub Actions, "Workflow commands": data must escape these, and properties also the colon and comma.
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def _in_repository(path: str) -> str:
    """Return the path from the top of the checkout, where GitHub looks for annotated files."""
    checkout = os.environ.get("GITHUB_WORKSPACE")
    if not checkout:
        return path
    relative = os.path.relpath(path, os.path.realpath(checkout)).replace(os.sep, "/")
    return path if relative.startswith("../") else relative


def workflow_command(level: str, text: str, properties: Iterable[tuple[str, str]]) -> str:
    """Return one command on one line, escaped so that its texts cannot add other commands.

    The level is `error`, `warning` or `notice`; the properties are pairs such as `("file", path)`. In a job, the path
    becomes that in the repository.
    """
    shown = ((name, _in_repository(value) if name == "file" else value) for name, value in properties)
    pairs = ",".join(f"{name}={value.translate(_PROPERTY)}" for name, value in shown)
    command = f"::{level} {pairs}::{text.translate(_DATA)}\n"
    return _COMMAND_INSIDE.sub(r"\\x23", command)


@dataclass(frozen=True, slots=True)
class JsonList:
    """A list whose items are written one by one; they are values, or objects that contain such lists themselves."""

    items: Iterable[JsonValue | JsonDocument]


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """An object of which some values are a `JsonList` or a `JsonDocument`."""

    fields: Mapping[str, JsonValue | JsonList | JsonDocument]


def indented(value: JsonValue) -> str:
    """Return a value as JSON, indented by two blanks per level."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def stream_json(
    value: JsonValue | JsonList | JsonDocument, dump: Dump = indented, *, indent: str = ""
) -> Iterator[str]:
    """Yield a value as indented JSON in pieces; `dump` writes the values that have no lists to be streamed."""
    items: Iterable[tuple[str, JsonValue | JsonList | JsonDocument]]
    if isinstance(value, JsonDocument):
        items, brackets = ((f"{dump(key)}: ", field) for key, field in value.fields.items()), "{}"
    elif isinstance(value, JsonList):
        items, brackets = (("", item) for item in value.items), "[]"
    else:
        # Line breaks inside texts are escaped, so all others are between values.
        yield dump(value).replace("\n", f"\n{indent}")
        return
    separator, inner = brackets[0], f"{indent}  "
    for start, item in items:
        yield f"{separator}\n{inner}{start}"
        separator = ","
        yield from stream_json(item, dump, indent=inner)
    yield f"\n{indent}{brackets[1]}" if separator == "," else brackets
