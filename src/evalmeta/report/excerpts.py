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
_QUOTED: Final = re.compile(r"'([^']+)'")
_WORD: Final = re.compile(r"</?[\w:.-]+>?|[\"']?[\w$.-]+[\"']?|\S|$")


def excerpts(problems: Sequence[Problem]) -> list[list[str]]:
    """Return the excerpt of each problem: the line, and a caret below its column or below the word that it quotes.

    A warning, a problem of a place that an earlier one has, or of a file that does not exist any more or is not
    that of a test, has none: an empty list.
    """
    places = dict.fromkeys(problem.location for problem in problems if problem.is_error and problem.location.line)
    lines = {path: _lines_of(path, places) for path in dict.fromkeys(place.path for place in places)}
    shown: set[tuple[str, int, int]] = set()
    return [
        _excerpt(problem, lines.get(problem.location.path, {}), shown) if problem.is_error else []
        for problem in problems
    ]


def excerpts_text(problems: Sequence[Problem], *, most: int) -> str:
    """Return the first excerpts, each with its place; empty if there are none."""
    found = ((problem.location, lines) for problem, lines in zip(problems, excerpts(problems), strict=True) if lines)
    return "\n".join("\n".join([f"{place}", *(f"  {line}" for line in lines)]) for place, lines in islice(found, most))


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


def _excerpt(problem: Problem, lines: Mapping[int, str], shown: set[tuple[str, int, int]]) -> list[str]:
    place, line = problem.location, lines.get(problem.location.line)
    if line is None:
        return []
    column = place.column or _column_of_word(problem.message, line)
    if (key := (place.path, place.line, column)) in shown:
        return []
    shown.add(key)
    return _drawn(line, place.line, column)


def _column_of_word(message: str, line: str) -> int:
    """Return the column of the word that a message quotes, for tables and JSON Lines; 0 if the line lacks it."""
    quoted = _QUOTED.search(message)
    return line.find(quoted[1]) + 1 if quoted else 0


def _drawn(line: str, number: int, column: int) -> list[str]:
    at = max(column - 1, 0)
    begin = max(0, at - _BEFORE) if len(line) > _CHARS else 0
    part, before = line[begin : begin + _CHARS], clean(line[begin:at])
    margin = f"{number} | "
    text = f"{margin}{'…' if begin else ''}{redacted(clean(part))}{'…' if begin + _CHARS < len(line) else ''}"
    if not (column and line.strip()):
        return [text.rstrip()]
    found = _WORD.match(line, at)
    carets = "^" * max(1, _width(clean(found[0])) if found else 1)
    return [text, f"{' ' * (len(margin) - 2)}| {' ' * (_width(before) + bool(begin))}{carets}"]


def _width(text: str) -> int:
    """Return the columns of a text on a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
