"""Errors and warnings about a file, the records that report them, and the losses of a conversion."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

from evalmeta import limits
from evalmeta.errors import FormatError, did_you_mean
from evalmeta.model.problem import Location, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evalmeta.model.definition import Definition, Expectation, TestCase
    from evalmeta.model.json_value import JsonObject, JsonValue

    Path: TypeAlias = tuple[str | int, ...]


_MESSAGE_CHARS: Final = 500
_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Diagnostics:
    """The problems of one file, in the order in which they were found; at most `limits.MAX_PROBLEMS` are kept."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._problems: list[Problem] = []
        self._notes: list[Problem] = []
        self._keys: set[tuple[str, str]] = set()

    @property
    def notes(self) -> tuple[Problem, ...]:
        """Return the warnings, by their places."""
        return tuple(sorted(self._notes, key=lambda problem: problem.location))

    @property
    def has_errors(self) -> bool:
        """Return whether there are errors."""
        return bool(self._problems)

    @property
    def has_all_errors(self) -> bool:
        """Return whether no more errors are kept; then their places are not needed."""
        return len(self._problems) >= limits.MAX_PROBLEMS

    @property
    def has_all_warnings(self) -> bool:
        """Return whether no more warnings are kept."""
        return len(self._notes) >= limits.MAX_PROBLEMS

    def error(self, code: str, message: str, *, line: int = 0, column: int = 0, hint: str = "") -> None:
        """Add an error at a place of the file."""
        if len(self._problems) < limits.MAX_PROBLEMS:
            place = Location(self.label, line, column)
            self._problems.append(Problem(code, Severity.ERROR, place, message[:_MESSAGE_CHARS], hint))

    def warn(self, code: str, message: str, *, line: int = 0, column: int = 0, hint: str = "") -> None:
        """Add a warning; it does not stop the reading."""
        if len(self._notes) < limits.MAX_PROBLEMS:
            place = Location(self.label, line, column)
            self._notes.append(Problem(code, Severity.WARNING, place, message[:_MESSAGE_CHARS], hint))

    def is_first(self, called: str, key: str) -> bool:
        """Return whether this kind of object has an unknown key for the first time: each is reported once."""
        before = len(self._keys)
        if not self.has_all_warnings:
            self._keys.add((called, key))
        return len(self._keys) > before

    def suggest(self, word: str, known: Iterable[str]) -> str:
        """Return the hint of `did_you_mean`; an empty one when no more errors are kept, because it is slow."""
        return did_you_mean(word, known) if len(self._problems) < limits.MAX_PROBLEMS else ""

    def check(self) -> None:
        """Raise FormatError with every error, if there are any."""
        if not self._problems:
            return
        problems = sorted(self._problems, key=lambda problem: problem.location)
        more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        raise FormatError(f"{problems[0].location}: {problems[0].message}{more}", problems=problems)


def foreign_character(text: str) -> str | None:
    """Return the first character of a text that a definition cannot hold, as `U+0001`; None when there is none."""
    match = _NOT_XML.search(text)
    return f"U+{ord(match[0]):04X}" if match else None


def without_foreign(text: str) -> str:
    """Return a text without the characters that a definition cannot hold."""
    return _NOT_XML.sub("", text)


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that was not written."""

    where: str  # the part of the definition, such as `test case 3`
    what: str  # the missing or different part of the written file, one sentence

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Written:
    """A definition in another format, and everything that the format could not hold of it."""

    content: bytes
    losses: tuple[Loss, ...] = ()
    config: bytes | None = None  # the content of ADK's test_config.json beside it; None where ADK's defaults apply


def case_name(case: TestCase, place: int) -> str:
    """Return a test case by its number, or by its place in the file, from 1."""
    return f"test case {place if case.number is None else case.number}"


def subject_losses(definition: Definition) -> Iterator[Loss]:
    """Yield the losses of a format that names neither the version nor the type of the subject."""
    if definition.subject_version is not None:
        yield Loss("definition", f"the subject's version {definition.subject_version!r}")
    if definition.subject_type != "AGENT":
        yield Loss("definition", f"the subject's type {definition.subject_type}")


def number_losses(case: TestCase, place: int) -> Iterator[Loss]:
    """Yield the loss of a number that is not the test case's place, for formats that count cases."""
    if case.number not in {None, place}:
        what = f"the number {case.number}; the test case gets the number {place} from its position"
        yield Loss(case_name(case, place), what)


def detail_losses(expectation: Expectation) -> Iterator[str]:
    """Yield the losses of a format that holds only the name and the value of an expectation."""
    if expectation.label is not None:
        yield f"the label {expectation.label!r} of {expectation.name!r}"
    if expectation.parameters:
        yield f"the parameters of {expectation.name!r}"
    if expectation.is_custom:
        yield f"the type of the custom scorer {expectation.name!r}"


_T = TypeVar("_T")

_LIKENESS: Final = 0.75
_KEY_CHARS: Final = 40
_NUMBER: Final = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?", re.ASCII)


class Source(Protocol):
    """A parsed file that knows where its values are."""

    def place(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return the line and column, from 1, of the value at keys and indexes."""


class Record:
    """An object of a file. Null counts as missing, and every method takes all spellings of a key.

    `path` are the keys and indexes that lead to it. A value that is not an object is a problem with the hint, and reads
    as an object without keys. Messages call it `called`, such as `a turn`.
    """

    code: ClassVar[str] = "json"
    object_kind: ClassVar[str] = "an object"
    object_hint: ClassVar[str] = ""
    list_hint: ClassVar[str] = ""

    def __init__(
        self, source: Source, path: Path, value: JsonValue, diagnostics: Diagnostics, *, called: str, hint: str = ""
    ) -> None:
        self.source = source
        self.path = path
        self.called = called
        self.diagnostics = diagnostics
        self.values: JsonObject = {}
        self.is_object = True
        if isinstance(value, dict):
            self.values = value
        else:
            message = f"{called} is {self._kind(value)}, not {self.object_kind}"
            self.error(f"{self.code}-type", message, hint=hint or self.object_hint)
            self.is_object = False

    def spellings(self, names: tuple[str, ...]) -> Sequence[str]:
        """Return all spellings of a key."""
        return names

    def key(self, *names: str) -> str:
        """Return the spelling of a key that the object has; the first one when it has none."""
        for name in self.spellings(names):
            if self.values.get(name) is not None:
                return name
        return names[0]

    def raw(self, *names: str) -> JsonValue:
        """Return the value of a key; None when it is missing."""
        return self.values.get(self.key(*names))

    def has(self, *names: str) -> bool:
        """Return whether the object has a key."""
        return self.raw(*names) is not None

    def text(self, *names: str) -> str | None:
        """Return a text; None when the key is missing."""
        key = self.key(*names)
        return None if (value := self.values.get(key)) is None else self.to_text(value, key)

    def required_text(self, *names: str) -> str:
        """Return a text; an empty one, and a problem, when the key is missing."""
        self.require(*names)
        return self.text(*names) or ""

    def number(self, *names: str) -> float | None:
        """Return a finite number; None when the key is missing."""
        return self._typed(names, _number, "a number", hint=unquoted(self.raw(*names)))

    def boolean(self, *names: str) -> bool | None:
        """Return true or false; None when the key is missing."""
        return self._typed(names, lambda value: value if isinstance(value, bool) else None, "true or false")

    def object(self, *names: str) -> JsonObject:
        """Return an object as it is; an empty one when the key is missing."""
        return self._typed(names, lambda value: value if isinstance(value, dict) else None, self.object_kind) or {}

    def items(self, *names: str) -> Sequence[JsonValue]:
        """Return a list as it is; an empty one when the key is missing."""
        hint = self.list_hint
        return self._typed(names, lambda value: value if isinstance(value, list) else None, "a list", hint=hint) or ()

    def texts(self, *names: str) -> Iterator[tuple[int, str]]:
        """Yield the texts of a list with their indexes."""
        for place, item in enumerate(self.items(*names)):
            if (text := self.to_text(item, self.key(*names), place)) is not None:
                yield place, text

    def record(self, *names: str, called: str) -> Self | None:
        """Return an object to be read by its keys; None when the key is missing."""
        return self.at(self.raw(*names), self.key(*names), called=called) if self.has(*names) else None

    def records(self, *names: str, called: str, hint: str = "") -> Iterator[Self]:
        """Yield the objects of a list, to be read by their keys."""
        for place, item in enumerate(self.items(*names)):
            yield self.at(item, self.key(*names), place, called=called, hint=hint)

    def at(self, value: JsonValue, *steps: str | int, called: str, hint: str = "") -> Self:
        """Return an object further inside, to be read by its keys."""
        return type(self)(self.source, (*self.path, *steps), value, self.diagnostics, called=called, hint=hint)

    def require(self, *names: str, hint: str = "") -> bool:
        """Report a key that is missing, with the key that looks like it; return whether the object has it."""
        if self.has(*names):
            return True
        if self.is_object and not self.diagnostics.has_all_errors:
            others = {key.lower(): key for key in self.values if len(key) <= _KEY_CHARS and key != names[0]}
            if near := get_close_matches(names[0].lower(), others, n=1, cutoff=_LIKENESS):
                hint = f"There is {others[near[0]]!r}; write {names[0]!r}."
            self.error(f"{self.code}-missing", f"{self.called} needs {names[0]!r}", hint=hint)
        return False

    def error(self, code: str, message: str, *steps: str | int, hint: str = "") -> None:
        """Add an error about the object, or about what keys and indexes lead to; nothing when it is not an object."""
        if self.is_object and not self.diagnostics.has_all_errors:
            line, column = self._place(steps)
            self.diagnostics.error(code, message, line=line, column=column, hint=hint)

    def warn(self, code: str, message: str, *steps: str | int, hint: str = "") -> None:
        """Add a warning in the same way."""
        if self.is_object and not self.diagnostics.has_all_warnings:
            line, column = self._place(steps)
            self.diagnostics.warn(code, message, line=line, column=column, hint=hint)

    def check_keys(self, *names: str) -> None:
        """Warn of every other key, with the nearest of these names."""
        for key in self.values:
            if key not in names and not self.diagnostics.has_all_warnings:
                hint = self.diagnostics.suggest(key, names)
                self.warn(f"{self.code}-key", f"{self.called} has no key {key!r}; it is ignored", key, hint=hint)

    def to_text(self, value: JsonValue, *steps: str | int) -> str | None:
        """Return a value that must be a text; None, and a problem, when it is not."""
        if isinstance(value, str):
            return value
        self.mistyped(value, "a text", *steps)
        return None

    def mistyped(self, value: JsonValue, expected: str, *steps: str | int, hint: str = "") -> None:
        """Report the value of a key, or an item of its list."""
        verb = "holds" if len(steps) > 1 else "is"
        message = f"{steps[0]!r} of {self.called} {verb} {self._kind(value)}, not {expected}"
        self.error(f"{self.code}-type", message, *steps, hint=hint)

    def _typed(
        self, names: tuple[str, ...], convert: Callable[[JsonValue], _T | None], expected: str, *, hint: str = ""
    ) -> _T | None:
        value = self.raw(*names)
        if value is None:
            return None
        if (converted := convert(value)) is None:
            self.mistyped(value, expected, self.key(*names), hint=hint)
        return converted

    def _place(self, steps: Sequence[str | int]) -> tuple[int, int]:
        spelt = [self.key(step) if isinstance(step, str) else step for step in steps]
        return self.source.place((*self.path, *spelt))

    def _kind(self, value: JsonValue) -> str:
        return self.object_kind if isinstance(value, dict) else kind_of(value)


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def unquoted(value: JsonValue) -> str:
    """Return a hint for a number that is written as a text; an empty text for anything else."""
    text = value.strip() if isinstance(value, str) else ""
    return f"Write {text} without quotes." if _NUMBER.fullmatch(text) else ""


def kind_of(value: JsonValue) -> str:
    """Say in words what a value is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = {int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    # The text of a YAML scalar is its type.
    return next((words for kind, words in kinds.items() if isinstance(value, kind)), "") or str(value)
