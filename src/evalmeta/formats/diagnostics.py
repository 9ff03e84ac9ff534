"""Errors and warnings about a file, and the losses of a conversion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import FormatError, did_you_mean
from evalmeta.model.problem import Location, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalmeta.model.definition import Definition, Expectation, TestCase


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
    """One thing that was not written.

    Attributes:
        where: the part of the definition, such as `test case 3`.
        what: the missing or different part of the written file, one sentence.
    """

    where: str
    what: str

    def __str__(self) -> str:
        """Return the loss on one line."""
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Written:
    """A definition in another format, and everything that the format could not hold of it.

    Attributes:
        config: the content of ADK's test_config.json beside it; None where ADK's defaults apply.
    """

    content: bytes
    losses: tuple[Loss, ...] = ()
    config: bytes | None = None


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
        yield Loss(
            case_name(case, place), f"the number {case.number}; the test case gets the number {place} from its position"
        )


def detail_losses(expectation: Expectation) -> Iterator[str]:
    """Yield the losses of a format that holds only the name and the value of an expectation."""
    if expectation.label is not None:
        yield f"the label {expectation.label!r} of {expectation.name!r}"
    if expectation.parameters:
        yield f"the parameters of {expectation.name!r}"
    if expectation.is_custom:
        yield f"the type of the custom scorer {expectation.name!r}"
