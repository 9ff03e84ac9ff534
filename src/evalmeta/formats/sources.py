"""Files of JSON and CSV: their values and cells, and the line and column of each of them."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import suppress
from json.decoder import scanstring  # type: ignore[attr-defined] # not in the type stubs; documented by its use in json
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import orjson

from evalmeta import limits
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.model.json_value import JsonValue, is_too_deep
from evalmeta.model.json_value import read_json as read_integers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_SAVE_AS_UTF8: Final = "Save it as UTF-8."
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(strict=False)
_TOKEN: Final = re.compile(r'[{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+"(?P<is_key>[ \t\r\n]*+:)?')


class JsonFile:
    """A JSON file, read: its path for messages, its content, and the line at which it begins, from 1."""

    def __init__(self, label: str, value: JsonValue, source: bytes, *, first_line: int = 1) -> None:
        self.label = label
        self.value = value
        self.first_line = first_line
        self._source = source
        self._text: str | None = None
        # A file may have a problem in every value: offsets that were found are kept, so that time stays linear.
        self._members: dict[int, dict[str, int]] = {}
        self._items: dict[int, list[int]] = {}
        self._seen = 0, first_line

    def at(self, path: Sequence[str | int]) -> JsonValue:
        """Return the value at keys and indexes; None when there is none."""
        value = self.value
        for step in path:
            if isinstance(step, str) and isinstance(value, dict):
                value = value.get(step)
            elif isinstance(step, int) and isinstance(value, list):
                value = value[step]
            else:
                return None
        return value

    def place(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return line and column, from 1, of the value at keys and indexes, or of the innermost one that exists."""
        text = self._decoded()
        at = self._found(text, path)
        return self._line(text, at), at - text.rfind("\n", 0, at)

    def lines_of(self, path: Sequence[str | int]) -> list[int]:
        """Return the line of each item of a list, in one pass; an empty list when there is none."""
        text = self._decoded()
        at, lines = self._found(text, path), []
        if text[at : at + 1] != "[":
            return []
        line, seen, at = self.first_line, 0, _skip(text, at + 1)
        while text[at : at + 1] not in {"", "]"}:
            line, seen = line + text.count("\n", seen, at), at
            lines.append(line)
            at = _next(text, at)
        return lines

    def _decoded(self) -> str:
        if self._text is None:
            self._text = self._source.decode("utf-8", "replace")
        return self._text

    def _line(self, text: str, at: int) -> int:
        """Count from the last place, which is usually near."""
        seen, line = self._seen
        line += text.count("\n", seen, at) if at >= seen else -text.count("\n", at, seen)
        self._seen = at, line
        return line

    def _found(self, text: str, path: Sequence[str | int]) -> int:
        """Return the offset of the value at a path, or of the innermost one that exists."""
        at = _skip(text, 0)
        for step in path:
            inner = self._member(text, at, step) if isinstance(step, str) else self._item(text, at, step)
            if inner is None:
                return at
            at = inner
        return at

    def _member(self, text: str, at: int, key: str) -> int | None:
        if text[at : at + 1] != "{":
            return None
        if at not in self._members:
            self._members[at] = _members(text, at)
        return self._members[at].get(key)

    def _item(self, text: str, at: int, index: int) -> int | None:
        if text[at : at + 1] != "[":
            return None
        starts = self._items.setdefault(at, [_skip(text, at + 1)])
        while len(starts) <= index and text[starts[-1] : starts[-1] + 1] not in {"", "]"}:
            starts.append(_next(text, starts[-1]))
        return None if index >= len(starts) or text[starts[index] : starts[index] + 1] in {"", "]"} else starts[index]


def read_json(data: bytes, *, label: str, first_line: int = 1) -> JsonFile:
    """Read a file with one JSON value; `label` is the path that messages show.

    Raise FormatError with line and column if it is not UTF-8 or not JSON, exceeds `limits`, or repeats a key in an
    object: most readers would ignore the first value.
    """
    source = data.removeprefix(_UTF8_MARK)
    if len(source) > limits.MAX_JSON_BYTES:
        _refuse(label, "json-limit", f"the file is larger than {limits.MAX_JSON_BYTES:,} bytes", first_line, 1)
    try:
        value = read_integers(source)
    except orjson.JSONDecodeError as error:
        _refuse_encoding(label, source, first_line)
        message = f"this is not valid JSON: {error.msg}"
        _refuse(label, "json-syntax", message, first_line - 1 + error.lineno, error.colno)
    if is_too_deep(value):
        message = f"it is nested more than {limits.MAX_JSON_DEPTH} levels deep"
        _refuse(label, "json-limit", message, first_line, 1)
    _refuse_doubles(label, source, first_line)
    return JsonFile(label, value, source, first_line=first_line)


def _refuse(label: str, code: str, message: str, line: int, column: int, *, hint: str = "") -> NoReturn:
    diagnostics = Diagnostics(label)
    diagnostics.error(code, message, line=line, column=column, hint=hint)
    diagnostics.check()
    raise AssertionError(message)  # pragma: no cover - `check` has raised


def _refuse_encoding(label: str, source: bytes, first_line: int) -> None:
    if source.startswith(_UTF16_MARKS):
        _refuse(label, "json-encoding", "the file is UTF-16, not UTF-8", first_line, 1, hint=_SAVE_AS_UTF8)
    try:
        source.decode()
    except UnicodeDecodeError as error:
        before = source[: error.start].decode()
        line, column = first_line + before.count("\n"), len(before) - before.rfind("\n")
        _refuse(label, "json-encoding", "the file is not UTF-8 from here on", line, column, hint=_SAVE_AS_UTF8)


class _Doubled(Exception):
    """An object has a key twice."""


def _refuse_doubles(label: str, source: bytes, first_line: int) -> None:
    text = source.decode()
    with suppress(_Doubled):
        json.loads(text, object_pairs_hook=_once)
        return
    key, at = _doubled_key(text)
    message = f"the key {key!r:.100} is repeated in one object; only one of them would be read"
    line, column = first_line + text.count("\n", 0, at), at - text.rfind("\n", 0, at)
    _refuse(label, "json-double", message, line, column, hint="Keep one of them.")


def _once(pairs: Sequence[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _Doubled


def _doubled_key(text: str) -> tuple[str, int]:
    around: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            around.append(set())
        elif token[0] == "}":
            around.pop()
        elif token["is_key"]:
            key, _ = scanstring(text, token.start() + 1, False)
            if key in around[-1]:
                return key, token.start()
            around[-1].add(key)
    raise AssertionError("no key is repeated")  # pragma: no cover - only texts with one come here


def _members(text: str, at: int) -> dict[str, int]:
    places, at = {}, _skip(text, at + 1)
    while text[at : at + 1] == '"':
        name, at = scanstring(text, at + 1, False)
        places[name] = _skip(text, _skip(text, at) + 1)
        at = _next(text, places[name])
    return places


def _next(text: str, at: int) -> int:
    """Return the offset of the next value, after the comma."""
    _, end = _DECODER.raw_decode(text, at)
    end = _skip(text, end)
    return _skip(text, end + 1) if text[end : end + 1] == "," else end


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


_DELIMITERS: Final = ",;\t"
_HEAD_CHARS: Final = 1_000_000
_CELL_CHARS: Final = 131_072


class CsvRow(NamedTuple):
    """The cells of a row, and the line on which it begins."""

    line: int
    cells: list[str]


def titles_of(head: str) -> list[list[str]]:
    """Return the cells of a text's first line, with each delimiter."""
    first = next(iter(head.lstrip("\ufeff").splitlines()), "")
    return [_cells(first, delimiter) for delimiter in _DELIMITERS]


def read_csv(
    data: bytes, diagnostics: Diagnostics, *, max_bytes: int, max_cells: int | None = None, max_chars: int = _CELL_CHARS
) -> Iterator[CsvRow]:
    """Yield the rows that have something in them, the titles first; problems are added to the diagnostics.

    `data` is UTF-8 with commas, semicolons or tabs between the cells.
    """
    if len(data) > max_bytes:
        diagnostics.error("csv-limit", f"the file is larger than {max_bytes:,} bytes")
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        diagnostics.error("csv-encoding", "the file is not UTF-8", line=line, hint="Save it as CSV UTF-8.")
        return
    titles = titles_of(text[:_HEAD_CHARS])
    delimiter = _DELIMITERS[titles.index(max(titles, key=len))]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins, count = 1, 0
    # The limit is one of the process: it is restored for other readers.
    limit = csv.field_size_limit(max_chars)
    try:
        for cells in reader:
            count += len(cells)
            if max_cells is not None and count > max_cells:
                diagnostics.error("csv-limit", f"more than {max_cells:,} cells", line=begins)
                return
            if any(cells):
                yield CsvRow(begins, cells)
            begins = reader.line_num + 1
    except csv.Error as error:
        diagnostics.error("csv-syntax", f"this is not valid CSV: {error}", line=begins)
    finally:
        csv.field_size_limit(limit)


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
