"""JSON to plain values, and the line and column of any value in it."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined] # not in the type stubs; documented by its use in json
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import orjson

from evalmeta import limits
from evalmeta.interop.findings import Findings
from evalmeta.model.jsonvalue import is_too_deep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["JsonFile", "read_json"]

_UTF8_MARK: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(strict=False)


class _Seen(NamedTuple):
    """Where values begin that were gone through: the items of the list, and the keys of the object, at an offset."""

    items: dict[int, list[int]]
    members: dict[tuple[int, str], int | None]


class JsonFile:
    """A JSON file, read.

    Attributes:
        label: the file's path, for messages.
        value: what the file holds.
        first_line: the line that it begins at, from 1; for one line of JSON Lines its own.
    """

    def __init__(self, label: str, value: JsonValue, source: bytes, *, first_line: int = 1) -> None:
        self.label = label
        self.value = value
        self.first_line = first_line
        self._source = source
        self._text: str | None = None
        self._seen = _Seen({}, {})
        self._counted = (0, first_line)

    def place(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Gives line and column, from 1, of the value at keys and indexes; of the innermost that is there."""
        if self._text is None:
            self._text = self._source.decode("utf-8", "replace")
        at = _found(self._text, path, self._seen)
        # Problems come in the order of their places: lines are counted from the last one on.
        seen, line = self._counted if self._counted[0] <= at else (0, self.first_line)
        self._counted = (at, line + self._text.count("\n", seen, at))
        return self._counted[1], at - self._text.rfind("\n", 0, at)

    def lines_of(self, path: Sequence[str | int]) -> list[int]:
        """Gives the lines that the items of a list begin at, in one pass; none when there is no list."""
        if self._text is None:
            self._text = self._source.decode("utf-8", "replace")
        text, at, lines = self._text, _found(self._text, path, self._seen), []
        if text[at : at + 1] != "[":
            return []
        line, seen, at = self.first_line, 0, _skip(text, at + 1)
        while text[at : at + 1] not in {"", "]"}:
            line, seen = line + text.count("\n", seen, at), at
            lines.append(line)
            at = _next(text, at)
        return lines


def read_json(data: bytes, *, label: str, first_line: int = 1) -> JsonFile:
    """Reads a file with one JSON value.

    Args:
        data: the bytes, with or without a mark of UTF-8.
        label: the file's path, for messages.
        first_line: the line that the bytes begin at.

    Raises:
        FormatError: it is no UTF-8 or no JSON, or goes beyond `limits`: with line and column.
    """
    source = data.removeprefix(_UTF8_MARK)
    if len(source) > limits.MAX_JSON_BYTES:
        _refuse(label, "json-limit", f"the file is larger than {limits.MAX_JSON_BYTES:,} bytes", first_line, 1)
    try:
        value: JsonValue = orjson.loads(source)
    except orjson.JSONDecodeError as error:
        message = f"this is no JSON: {error.msg}"
        _refuse(label, "json-syntax", message, first_line - 1 + error.lineno, error.colno)
    if is_too_deep(value):
        message = f"it is nested more than {limits.MAX_JSON_DEPTH} levels deep"
        _refuse(label, "json-limit", message, first_line, 1)
    return JsonFile(label, value, source, first_line=first_line)


def _refuse(label: str, code: str, message: str, line: int, column: int) -> NoReturn:
    findings = Findings(label)
    findings.add(code, message, line=line, column=column)
    findings.check()
    raise AssertionError(message)  # pragma: no cover - `check` has raised


def _found(text: str, path: Sequence[str | int], seen: _Seen) -> int:
    """Gives where the value at a path begins, going as far as the path leads."""
    at = _skip(text, 0)
    for step in path:
        inner = _member(text, at, step, seen) if isinstance(step, str) else _item(text, at, step, seen)
        if inner is None:
            return at
        at = inner
    return at


def _member(text: str, begin: int, key: str, seen: _Seen) -> int | None:
    """Gives where the value of a key begins; of the last one when a key comes twice, as readers take it."""
    if text[begin : begin + 1] != "{":
        return None
    if (begin, key) in seen.members:
        return seen.members[begin, key]
    found, at = None, _skip(text, begin + 1)
    while text[at : at + 1] == '"':
        name, at = scanstring(text, at + 1, False)
        value = _skip(text, _skip(text, at) + 1)
        if name == key:
            found = value
        at = _next(text, value)
    seen.members[begin, key] = found
    return found


def _item(text: str, at: int, index: int, seen: _Seen) -> int | None:
    if text[at : at + 1] != "[":
        return None
    # Problems come in the order of the items, and what stands before has been gone through for the last one.
    found = seen.items.setdefault(at, [_skip(text, at + 1)])
    while len(found) <= index and text[found[-1] : found[-1] + 1] not in {"", "]"}:
        found.append(_next(text, found[-1]))
    return None if index >= len(found) or text[found[index] : found[index] + 1] in {"", "]"} else found[index]


def _next(text: str, at: int) -> int:
    """Gives where the value after one begins, beyond its comma."""
    _, end = _DECODER.raw_decode(text, at)
    end = _skip(text, end)
    return _skip(text, end + 1) if text[end : end + 1] == "," else end


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
