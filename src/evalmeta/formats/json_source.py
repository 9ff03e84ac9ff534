"""JSON to plain values, and the line and column of any value in it.

JSON objects read by their keys: what does not fit becomes a problem with its place, and reading goes on.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from difflib import get_close_matches
from json.decoder import scanstring  # type: ignore[attr-defined] # not in the type stubs; documented by its use in json
from typing import TYPE_CHECKING, Final, NoReturn

import orjson

from evalmeta import limits
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.model.json_value import is_too_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue


_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_SAVE_AS_UTF8: Final = "Save it as UTF-8."
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(strict=False)
_TOKEN: Final = re.compile(r'[{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+"(?P<is_key>[ \t\r\n]*+:)?')


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
        # Files may have as many problems as values: what has been gone through is not gone through again.
        self._members: dict[int, dict[str, int]] = {}
        self._items: dict[int, list[int]] = {}
        self._seen = 0, first_line

    def place(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Gives line and column, from 1, of the value at keys and indexes; of the innermost that is there."""
        text = self._decoded()
        at = self._found(text, path)
        return self._line(text, at), at - text.rfind("\n", 0, at)

    def lines_of(self, path: Sequence[str | int]) -> list[int]:
        """Gives the lines that the items of a list begin at, in one pass; none when there is no list."""
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
        """Counts from the last place that was asked for, which is near."""
        seen, line = self._seen
        line += text.count("\n", seen, at) if at >= seen else -text.count("\n", at, seen)
        self._seen = at, line
        return line

    def _found(self, text: str, path: Sequence[str | int]) -> int:
        """Gives where the value at a path begins, going as far as the path leads."""
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
        members = self._members.get(at)
        if members is None:
            members = self._members[at] = _members(text, at)
        return members.get(key)

    def _item(self, text: str, at: int, index: int) -> int | None:
        if text[at : at + 1] != "[":
            return None
        found = self._items.setdefault(at, [_skip(text, at + 1)])
        while len(found) <= index and text[found[-1] : found[-1] + 1] not in {"", "]"}:
            found.append(_next(text, found[-1]))
        return None if index >= len(found) or text[found[index] : found[index] + 1] in {"", "]"} else found[index]


def read_json(data: bytes, *, label: str, first_line: int = 1) -> JsonFile:
    """Reads a file with one JSON value.

    A key that stands twice in one object is a problem: most readers take the last one and
    pass over what the first one says.

    Args:
        data: the bytes, with or without a mark of UTF-8.
        label: the file's path, for messages.
        first_line: the line that the bytes begin at.

    Raises:
        FormatError: it is no UTF-8 or no JSON, has a key twice, or goes beyond `limits`: with line and column.
    """
    source = data.removeprefix(_UTF8_MARK)
    if len(source) > limits.MAX_JSON_BYTES:
        _refuse(label, "json-limit", f"the file is larger than {limits.MAX_JSON_BYTES:,} bytes", first_line, 1)
    try:
        value: JsonValue = orjson.loads(source)
    except orjson.JSONDecodeError as error:
        _refuse_encoding(label, source, first_line)
        message = f"this is no JSON: {error.msg}"
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
    message = f"the key {key!r:.100} stands here a second time in one object; only one of them would be read"
    line, column = first_line + text.count("\n", 0, at), at - text.rfind("\n", 0, at)
    _refuse(label, "json-double", message, line, column, hint="Keep one of them.")


def _once(pairs: Sequence[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _Doubled


def _doubled_key(text: str) -> tuple[str, int]:
    """Gives the first key that an object has twice, and where it stands the second time."""
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
    raise AssertionError("no key stands twice")  # pragma: no cover - only texts with one come here


def _members(text: str, at: int) -> dict[str, int]:
    """Gives where the values of an object begin."""
    found, at = {}, _skip(text, at + 1)
    while text[at : at + 1] == '"':
        name, at = scanstring(text, at + 1, False)
        found[name] = _skip(text, _skip(text, at) + 1)
        at = _next(text, found[name])
    return found


def _next(text: str, at: int) -> int:
    """Gives where the value after one begins, beyond its comma."""
    _, end = _DECODER.raw_decode(text, at)
    end = _skip(text, end)
    return _skip(text, end + 1) if text[end : end + 1] == "," else end


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


_LIKENESS: Final = 0.75
_KEY_CHARS: Final = 40
_NUMBER: Final = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?", re.ASCII)


class JsonRecord:
    """An object with keys that may be spelt in several ways: every getter takes all spellings of one key.

    Args:
        file: where it stands.
        path: the keys and indexes that lead to it.
        diagnostics: takes the problems.
        called: what it is, for messages: `a turn`.
    """

    def __init__(self, file: JsonFile, path: Sequence[str | int], diagnostics: Diagnostics, *, called: str) -> None:
        self.file = file
        self.path = tuple(path)
        self.called = called
        self._diagnostics = diagnostics
        value = _value_at(file.value, self.path)
        self.values: JsonObject = value if isinstance(value, dict) else {}
        self.is_object = isinstance(value, dict)
        if not self.is_object:
            self.refuse("json-type", f"{called} is {json_kind(value)}, not an object")

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def has(self, *names: str) -> bool:
        """Says whether a key is there with a value that is not null."""
        return self.raw(*names) is not None

    def key(self, *names: str) -> str:
        """Gives the spelling of a key that is there, the first one when none is."""
        return next((name for name in names if self.values.get(name) is not None), names[0])

    def raw(self, *names: str) -> JsonValue:
        """Gives the value of a key, null when it is missing."""
        return self.values.get(self.key(*names))

    def text(self, *names: str) -> str | None:
        """Gives a text; None when the key is missing or null."""
        value = self.raw(*names)
        if value is None or isinstance(value, str):
            return value
        self._mistyped(names, value, "a text")
        return None

    def required_text(self, *names: str) -> str:
        """Gives a text that must be there; an empty one when it is not, and a problem."""
        if self.is_object and not self.has(*names):
            self.missing(names[0])
        return self.text(*names) or ""

    def number(self, *names: str) -> float | None:
        """Gives a finite number; None when the key is missing or null."""
        value = self.raw(*names)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        self._mistyped(names, value, "a number", hint=unquoted(value))
        return None

    def boolean(self, *names: str) -> bool | None:
        """Gives true or false; None when the key is missing or null."""
        value = self.raw(*names)
        if value is None or isinstance(value, bool):
            return value
        self._mistyped(names, value, "true or false")
        return None

    def object(self, *names: str) -> JsonObject | None:
        """Gives an object as it is; None when the key is missing or null."""
        value = self.raw(*names)
        if value is None or isinstance(value, dict):
            return value
        self._mistyped(names, value, "an object")
        return None

    def record(self, *names: str, called: str) -> JsonRecord | None:
        """Gives an object to be read by its keys; None when the key is missing or null."""
        if not self.has(*names):
            return None
        return JsonRecord(self.file, (*self.path, self.key(*names)), self._diagnostics, called=called)

    def items(self, *names: str) -> Sequence[JsonValue]:
        """Gives a list as it is; an empty one when the key is missing or null."""
        value = self.raw(*names)
        if value is None or isinstance(value, list):
            return value or []
        self._mistyped(names, value, "a list")
        return []

    def records(self, *names: str, called: str) -> Iterator[JsonRecord]:
        """Yields the objects of a list, to be read by their keys."""
        for place in range(len(self.items(*names))):
            yield JsonRecord(self.file, (*self.path, self.key(*names), place), self._diagnostics, called=called)

    def texts(self, *names: str) -> list[str]:
        """Gives a list of texts; what is none is a problem."""
        found: list[str] = []
        for place, value in enumerate(self.items(*names)):
            if isinstance(value, str):
                found.append(value)
            else:
                at = (*self.path, self.key(*names), place)
                self._add("json-type", f"{names[0]!r} of {self.called} holds {json_kind(value)}, not a text", at)
        return found

    def missing(self, name: str, *, hint: str = "") -> None:
        """Notes that a key is missing; where there is one that looks like it, says so."""
        others = {key.lower(): key for key in self.values if len(key) <= _KEY_CHARS}
        near = get_close_matches(name.lower(), others, n=1, cutoff=_LIKENESS)
        if near and not self._diagnostics.has_all_errors:
            hint = f"There is {others[near[0]]!r}; write {name!r}."
        self.refuse("json-missing", f"{self.called} needs {name!r}", hint=hint)

    def refuse(self, code: str, message: str, *names: str, hint: str = "") -> None:
        """Notes a problem at the object, or at the value of one of its keys."""
        self._add(code, message, (*self.path, self.key(*names)) if names else self.path, hint=hint)

    def note(self, code: str, message: str, *names: str, hint: str = "") -> None:
        """Notes a warning in the same way."""
        if self._diagnostics.has_all_warnings:
            return
        line, column = self.file.place((*self.path, self.key(*names)) if names else self.path)
        self._diagnostics.warn(code, message, line=line, column=column, hint=hint)

    def note_unknown(self, *known: str) -> None:
        """Warns of every key that is not known, and names the nearest one that is."""
        for key in self.values:
            if key not in known and not self._diagnostics.has_all_warnings:
                hint = self._diagnostics.suggest(key, known)
                self.note("json-key", f"{self.called} has no key {key!r}; it is passed over", key, hint=hint)

    def line(self) -> int:
        """Gives the line that the object begins at."""
        return self.file.place(self.path)[0]

    def _mistyped(self, names: Sequence[str], value: JsonValue, expected: str, *, hint: str = "") -> None:
        name = self.key(*names)
        self.refuse("json-type", f"{name!r} of {self.called} is {json_kind(value)}, not {expected}", name, hint=hint)

    def _add(self, code: str, message: str, path: Sequence[str | int], *, hint: str = "") -> None:
        if self._diagnostics.has_all_errors:
            return
        line, column = self.file.place(path)
        self._diagnostics.error(code, message, line=line, column=column, hint=hint)


def unquoted(value: JsonValue) -> str:
    """Gives a hint for a number that is written as a text; nothing for anything else."""
    text = value.strip() if isinstance(value, str) else ""
    return f"Write {text} without quotes." if _NUMBER.fullmatch(text) else ""


def json_kind(value: JsonValue) -> str:
    """Says in words what a value is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


def _value_at(value: JsonValue, path: Sequence[str | int]) -> JsonValue:
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list):
            value = value[step]
        else:
            return None
    return value
