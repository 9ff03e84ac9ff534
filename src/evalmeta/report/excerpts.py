"""The lines of files that problems are about, each with a caret below the place."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unicodedata import east_asian_width

from evalmeta.model.redaction import redacted
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalmeta.model.problem import Location, Problem


# Not evalmeta.toml, whose values may be secrets.
_NAMES: Final = (*(".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".xml"), *("Definition", "-meta.xml"))
_MOST_LINE: Final = 100_000
_LINE_BYTES: Final = 1_000_000
_BEFORE: Final = 60
_CHARS: Final = 100
_WORD: Final = re.compile(r"</?[\w:.-]+>?|[\"']?[\w$.-]+[\"']?|\S|$")


def excerpts(problems: Sequence[Problem]) -> Mapping[Location, list[str]]:
    """Return the excerpt of each place with an error: the line of its file, and below it a caret if it has a column.

    Places in files that do not exist any more, or are not those of tests, have none.
    """
    places = dict.fromkeys(each.location for each in problems if each.is_error and each.location.line)
    lines = {path: _lines_of(path, places) for path in dict.fromkeys(place.path for place in places)}
    return {
        place: _excerpt(place, lines[place.path][place.line]) for place in places if place.line in lines[place.path]
    }


def excerpts_text(problems: Sequence[Problem], *, most: int) -> str:
    """Return the first excerpts, each with its place; empty if there are none."""
    found = islice(excerpts(problems).items(), most)
    return "\n".join("\n".join([f"{place}", *(f"  {line}" for line in lines)]) for place, lines in found)


def _lines_of(path: str, places: Iterable[Location]) -> dict[int, str]:
    """Return those lines of a file that places are on."""
    numbers = {place.line for place in places if place.path == path and place.line <= _MOST_LINE}
    if not (path.endswith(_NAMES) and numbers and Path(path).is_file()):
        return {}
    try:
        with Path(path).open("rb") as file:
            lines = enumerate(iter(lambda: file.readline(_LINE_BYTES), b""), 1)
            return {number: _decoded(line) for number, line in islice(lines, max(numbers)) if number in numbers}
    except OSError:
        return {}


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n").replace("\t", " ")


def _excerpt(place: Location, line: str) -> list[str]:
    at = max(place.column - 1, 0)
    begin = max(0, at - _BEFORE) if len(line) > _CHARS else 0
    shown, before = line[begin : begin + _CHARS], clean(line[begin:at])
    number = f"{place.line} | "
    text = f"{number}{'…' if begin else ''}{redacted(clean(shown))}{'…' if begin + _CHARS < len(line) else ''}"
    if not (place.column and line.strip()):
        return [text.rstrip()]
    found = _WORD.match(line, at)
    carets = "^" * max(1, _width(clean(found[0])) if found else 1)
    return [text, f"{' ' * (len(number) - 2)}| {' ' * (_width(before) + bool(begin))}{carets}"]


def _width(text: str) -> int:
    """Return the columns of a text on a terminal."""
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in text)
