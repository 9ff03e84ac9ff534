"""JSON objects read by their keys: what does not fit becomes a problem with its place, and reading goes on."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.interop.findings import Findings
    from evalmeta.interop.jsonreader import JsonFile
    from evalmeta.model.jsonvalue import JsonObject, JsonValue

__all__ = ["JsonRecord", "json_kind", "unquoted"]

_LIKENESS: Final = 0.75
_KEY_CHARS: Final = 40
_NUMBER: Final = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?", re.ASCII)


class JsonRecord:
    """An object with keys that may be spelt in several ways: every getter takes all spellings of one key.

    Args:
        file: where it stands.
        path: the keys and indexes that lead to it.
        findings: takes the problems.
        called: what it is, for messages: `a turn`.
    """

    def __init__(self, file: JsonFile, path: Sequence[str | int], findings: Findings, *, called: str) -> None:
        self.file = file
        self.path = tuple(path)
        self.called = called
        self._findings = findings
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
        return JsonRecord(self.file, (*self.path, self.key(*names)), self._findings, called=called)

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
            yield JsonRecord(self.file, (*self.path, self.key(*names), place), self._findings, called=called)

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
        if near and not self._findings.is_full:
            hint = f"There is {others[near[0]]!r}; write {name!r}."
        self.refuse("json-missing", f"{self.called} needs {name!r}", hint=hint)

    def refuse(self, code: str, message: str, *names: str, hint: str = "") -> None:
        """Notes a problem at the object, or at the value of one of its keys."""
        self._add(code, message, (*self.path, self.key(*names)) if names else self.path, hint=hint)

    def note(self, code: str, message: str, *names: str, hint: str = "") -> None:
        """Notes a warning in the same way."""
        if self._findings.has_all_notes:
            return
        line, column = self.file.place((*self.path, self.key(*names)) if names else self.path)
        self._findings.note(code, message, line=line, column=column, hint=hint)

    def note_unknown(self, *known: str) -> None:
        """Warns of every key that is not known, and names the nearest one that is."""
        for key in self.values:
            if key not in known and not self._findings.has_all_notes:
                hint = self._findings.suggest(key, known)
                self.note("json-key", f"{self.called} has no key {key!r}; it is passed over", key, hint=hint)

    def line(self) -> int:
        """Gives the line that the object begins at."""
        return self.file.place(self.path)[0]

    def _mistyped(self, names: Sequence[str], value: JsonValue, expected: str, *, hint: str = "") -> None:
        name = self.key(*names)
        self.refuse("json-type", f"{name!r} of {self.called} is {json_kind(value)}, not {expected}", name, hint=hint)

    def _add(self, code: str, message: str, path: Sequence[str | int], *, hint: str = "") -> None:
        if self._findings.is_full:
            return
        line, column = self.file.place(path)
        self._findings.add(code, message, line=line, column=column, hint=hint)


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
