"""Replacements of texts in files that are deployed, as `sfdx-project.json` declares them and the sf CLI makes them.

A project's files keep their placeholders; an org receives the values, which are never shown.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.files import key_name, read_file, shown

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence

    # An invalid value: the keys that lead to it, and the reason.
    _Fault = tuple[tuple[str | int, ...], str]


_KEY: Final = "replacements"
# Shorter values are words of messages.
_MIN_HIDDEN_CHARS: Final = 4
# The sf CLI replaces in pieces of this many bytes, which end with a line.
_PIECE_BYTES: Final = 65_536
_ONE_OF: Final = (("filename", "glob"), ("stringToReplace", "regexToReplace"), ("replaceWithEnv", "replaceWithFile"))


class Replacement(NamedTuple):
    """A row of `replacements`."""

    number: int  # its position in the file
    filename: str = ""  # the end of the paths of files; empty with a glob
    glob: str = ""
    text: str = ""  # the text to replace; empty with a regular expression
    regex: str = ""
    variable: str = ""  # the environment variable with the value; empty with a file
    file: str = ""
    conditions: tuple[tuple[str, str], ...] = ()  # variables and their values, without which nothing is replaced
    may_be_unset: bool = False

    @property
    def is_in_force(self) -> bool:
        """Return whether the environment fulfils the conditions."""
        return all(os.environ.get(name) == value for name, value in self.conditions)

    @property
    def source(self) -> str:
        """Return what the value comes from: the name of a variable or a file."""
        return self.variable or self.file

    @property
    def pattern(self) -> str:
        """Return what is replaced, as the file has it."""
        return self.text or self.regex


class ReplacedContent(NamedTuple):
    """The content of a file with its replacements."""

    content: bytes
    messages: tuple[str, ...] = ()  # for each text that is not in the file, although a replacement names the file


@dataclass(frozen=True, slots=True)
class Replacements:
    """The replacements of a project; none by default.

    Attributes:
        file: the `sfdx-project.json` that declares them.
        rows: the replacements, in the order in which they are made.
    """

    file: Path = Path()
    rows: tuple[Replacement, ...] = ()

    def rows_for(self, path: Path) -> tuple[Replacement, ...]:
        """Return the replacements that are made in a file now; raise ProjectError if a glob cannot be read."""
        posix = path.as_posix()
        return tuple(row for row in self.rows if row.is_in_force and self._matches(row, posix))

    def content_to_send(self, path: Path) -> bytes:
        """Return what an org receives of a file.

        Raise ProjectError if the file or a value cannot be read, such as that of a variable that is not set.
        """
        return self.replace_in(path, read_file(path)).content

    def replace_in(self, path: Path, content: bytes) -> ReplacedContent:
        """Return the content of a file with its replacements; raise ProjectError if a value cannot be read."""
        rows = self.rows_for(path) if self.rows else ()
        if not rows:
            return ReplacedContent(content)
        from evalmeta.package.javascript_patterns import replace_matches

        replaced = [(row, self._regex(row), self._value(row, path)) for row in rows]
        found: set[Replacement] = set()
        pieces: list[str] = []
        for piece in _pieces(content, path):
            text = piece
            for row, regex, value in replaced:
                before, text = text, replace_matches(regex, value, text)
                if text != before:
                    found.add(row)
            pieces.append(text)
        unused = (row for row in rows if row.filename and row not in found)
        messages = (f"{shown(path)}: {row.pattern!r} of {self._place(row)} is not in the file" for row in unused)
        return ReplacedContent("".join(pieces).encode(), tuple(messages))

    def problem_of(self, path: Path) -> Problem | None:
        """Return why the replacements cannot be made in a file; None if they can."""
        line, column = 1, 1
        try:
            for row in self.rows_for(path):
                line, column = self._first_place(row, path)
                self._value(row, path)
        except ProjectError as error:
            where, hint = Location(shown(path), line, column), " ".join(map(str, error.actions))
            message = str(error).removeprefix(f"{where.path}: ").removesuffix(".")
            return Problem("replacement-missing", Severity.WARNING, where, message, hint)
        return None

    def placeholders_in(self, path: Path, content: bytes) -> list[str]:
        """Return what is replaced in the content of a file, each once."""
        rows = self.rows_for(path) if self.rows else ()
        return list(
            dict.fromkeys(row.pattern for row in rows if any(map(self._regex(row).search, _pieces(content, path))))
        )

    def hide_values(self, text: str) -> str:
        """Return a text in which the name of its variable or file, in brackets, stands for each value."""
        values = {value: row.source for row in self.rows if (value := _known_value(self.file, row))}
        for value in sorted(values, key=len, reverse=True):
            if len(value) >= _MIN_HIDDEN_CHARS:
                text = text.replace(value, f"[{values[value]}]")
        return text

    def _matches(self, row: Replacement, posix: str) -> bool:
        if row.filename:
            return posix.endswith(row.filename)
        try:
            return _glob(row.glob).match(posix) is not None
        except ValueError as error:
            raise self._refused(row, f"the glob {row.glob!r} cannot be used: {error}") from None

    def _regex(self, row: Replacement) -> re.Pattern[str]:
        try:
            return _regex(row.text, row.regex)
        except ValueError as error:
            raise self._refused(row, f"the regular expression {row.regex!r} cannot be used: {error}") from None

    def _first_place(self, row: Replacement, path: Path) -> tuple[int, int]:
        """Return line and column of the first text that is replaced; those of the beginning if there is none."""
        regex, lines = self._regex(row), 0
        for piece in _pieces(read_file(path), path):
            if match := regex.search(piece):
                before = piece[: match.start()]
                return lines + before.count("\n") + 1, len(before) - before.rfind("\n")
            lines += piece.count("\n")
        return 1, 1

    def _value(self, row: Replacement, path: Path) -> str:
        if row.file:
            return self._value_in_file(row)
        value = os.environ.get(row.variable)
        if value is None and not row.may_be_unset:
            raise ProjectError(
                f"{shown(path)}: the variable {row.variable} of {self._place(row)}, for {row.pattern!r}, is not set.",
                actions=(f"Set the environment variable {row.variable}.",),
            )
        return value or ""

    def _value_in_file(self, row: Replacement) -> str:
        path = self.file.parent / row.file
        try:
            value = read_file(path, max_bytes=limits.MAX_SETTINGS_BYTES).decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            raise self._refused(row, f"{row.file!r} is not UTF-8") from None
        except ProjectError as error:
            raise self._refused(row, str(error)) from None
        if not value:
            raise self._refused(row, f"{row.file!r} is empty")
        return value

    def _place(self, row: Replacement) -> str:
        return f"{shown(self.file)}: {key_name((_KEY, row.number))}"

    def _refused(self, row: Replacement, reason: str) -> ProjectError:
        return ProjectError(f"{self._place(row)}: {reason}.", actions=(f"Correct {shown(self.file)}.",))


NO_REPLACEMENTS: Final = Replacements()


def _known_value(file: Path, row: Replacement) -> str:
    if row.variable:
        return os.environ.get(row.variable, "")
    try:
        return read_file(file.parent / row.file, max_bytes=limits.MAX_SETTINGS_BYTES).decode("utf-8", "replace").strip()
    except ProjectError:
        return ""


@lru_cache(maxsize=64)
def _glob(glob: str) -> re.Pattern[str]:
    from evalmeta.package.javascript_patterns import compile_glob

    return compile_glob(glob)


@lru_cache(maxsize=64)
def _regex(text: str, regex: str) -> re.Pattern[str]:
    import re

    from evalmeta.package.javascript_patterns import compile_regex

    return re.compile(re.escape(text)) if text else compile_regex(regex)


def _pieces(content: bytes, path: Path) -> Iterator[str]:
    """Yield a file's text in the pieces in which the sf CLI replaces: no match reaches over the end of a piece."""
    try:
        start = 0
        for end in range(_PIECE_BYTES, len(content) + _PIECE_BYTES, _PIECE_BYTES):
            cut = content.rfind(b"\n", start, end) + 1
            if cut > start:
                yield content[start:cut].decode()
                start = cut
        if start < len(content):
            yield content[start:].decode()
    except UnicodeDecodeError:
        raise ProjectError(
            f"{shown(path)}: is not UTF-8, so no text in it can be replaced.", actions=("Save the file as UTF-8.",)
        ) from None


def read_replacements(file: Path, value: Sequence[Mapping[str, object]] | None) -> Replacements:
    """Return the replacements of a `sfdx-project.json`; `value` is that of its key, without faults."""
    return Replacements(file, tuple(_replacement(number, row) for number, row in enumerate(value or ())))


def _replacement(number: int, row: Mapping[str, object]) -> Replacement:
    texts = {key: str(row.get(key) or "") for key in chain.from_iterable(_ONE_OF)}
    conditions = row.get("replaceWhenEnv")
    declared = conditions if isinstance(conditions, list) else []
    return Replacement(
        number,
        filename=texts["filename"],
        glob=texts["glob"],
        text=texts["stringToReplace"],
        regex=texts["regexToReplace"],
        variable=texts["replaceWithEnv"],
        file=texts["replaceWithFile"],
        conditions=tuple((condition["env"], _as_text(condition["value"])) for condition in declared),
        may_be_unset=row.get("allowUnsetEnvVariable") is True,
    )


def _as_text(value: object) -> str:
    """Return the value of a condition as JavaScript writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def replacement_faults(value: object) -> Iterator[_Fault]:
    """Yield the faults of the value of the key `replacements`."""
    if value is None:
        return
    if not isinstance(value, list):
        yield (_KEY,), "must be a list of replacements"
        return
    for number, row in enumerate(value):
        yield from (((_KEY, number, *keys), reason) for keys, reason in _row_faults(row))


def _row_faults(row: object) -> Iterator[_Fault]:
    if not isinstance(row, dict):
        yield (), 'must be an object such as {"filename": "F", "stringToReplace": "S", "replaceWithEnv": "V"}'
        return
    for keys in _ONE_OF:
        given = [key for key in keys if row.get(key) is not None]
        if len(given) != 1:
            yield (), f"must have either {keys[0]} or {keys[1]}"
        elif not (isinstance(row[given[0]], str) and row[given[0]]):
            yield (given[0],), "must be a text in quotes that is not empty"
    if not isinstance(row.get("allowUnsetEnvVariable", False), bool):
        yield ("allowUnsetEnvVariable",), "must be true or false"
    yield from _condition_faults(row.get("replaceWhenEnv"))


def _condition_faults(value: object) -> Iterator[_Fault]:
    key = "replaceWhenEnv"
    if value is None:
        return
    if not isinstance(value, list):
        yield (key,), 'must be a list such as [{"env": "DEPLOY_TO", "value": "test"}]'
        return
    for number, row in enumerate(value):
        is_complete = isinstance(row, dict) and isinstance(row.get("env"), str) and row["env"]
        if not (is_complete and isinstance(row.get("value"), str | int | float)):
            yield (key, number), "must be an object with env, the name of a variable, and its value"
