"""The file `.forceignore` of a project, whose patterns are those of `.gitignore`."""

from __future__ import annotations

import os
import re
import warnings
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


FORCEIGNORE_FILE: Final = ".forceignore"
# As in the sf CLI, they follow the lines of the file, so that no `!` can include such files again.
_DEFAULTS: Final = ("**/*.dup", "**/.*", "**/package2-descriptor.json", "**/package2-manifest.json")
# Backslashes between folders, but not the escapes of .gitignore: leading `\#` and `\!`, blanks, brackets, stars.
_SEPARATOR: Final = re.compile(r"\\(?=[\w.-])|(?<=.)\\(?=\*)|(?<=[^\\])\\$")
_GROUP_NAME: Final = re.compile(r"\(\?P<\w+>")
_END_BLANKS: Final = re.compile(r"(?<!\\) +$")


class IgnoreLine(NamedTuple):
    """A line of the file; the number is 0 for defaults."""

    number: int
    text: str

    def __str__(self) -> str:
        """Return the line and where it is, for messages."""
        place = f"{FORCEIGNORE_FILE}:{self.number}" if self.number else f"a default of {FORCEIGNORE_FILE}"
        return f"{self.text.strip()!r} ({place})"


class _Rule(NamedTuple):
    line: IgnoreLine
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool


class ForceIgnore:
    """The lines of a project's `.forceignore`; without the file nothing is ignored.

    As in git, the last line that matches a path decides, and everything in an ignored folder is ignored.

    Attributes:
        problems: warnings about lines that git reads differently.
    """

    __slots__ = ("_folders", "_may_match", "_root", "_rules", "problems")

    def __init__(self, root: Path, rules: Iterable[_Rule] = (), *, problems: Iterable[Problem] = ()) -> None:
        self._root = str(root).rstrip(os.sep) + os.sep
        self._rules = tuple(rules)[::-1]
        # One match excludes nearly every path that no rule matches.
        patterns = (f"(?:{_GROUP_NAME.sub('(?:', rule.regex.pattern)})" for rule in self._rules)
        self._may_match = re.compile("|".join(patterns)).match
        self._folders: dict[str, IgnoreLine | None] = {"": None}
        self.problems = tuple(problems)

    def ignores(self, path: Path | str, *, is_folder: bool = False) -> bool:
        """Return whether a file or folder inside the root is ignored, by itself or with a folder above it."""
        return bool(self._rules) and self.find_line(path, is_folder=is_folder) is not None

    def find_line(self, path: Path | str, *, is_folder: bool = False) -> IgnoreLine | None:
        """Return the line that ignores an absolute path inside the root; None if it is not ignored."""
        relative = str(path)[len(self._root) :].replace(os.sep, "/")
        if is_folder:
            return self._folder_line(relative)
        return self._folder_line(relative.rpartition("/")[0]) or self._line(relative, is_folder=False)

    def _folder_line(self, folder: str) -> IgnoreLine | None:
        if folder not in self._folders:
            above = self._folder_line(folder.rpartition("/")[0])
            self._folders[folder] = above or self._line(folder, is_folder=True)
        return self._folders[folder]

    def _line(self, path: str, *, is_folder: bool) -> IgnoreLine | None:
        if not self._may_match(path):
            return None
        for rule in self._rules:
            if rule.folders_only and not is_folder:
                continue
            match = rule.regex.match(path)
            # A group matched a folder above, which is checked separately.
            if match and match.lastindex is None:
                return rule.line if rule.ignores else None
        return None


def read_forceignore(root: Path) -> ForceIgnore:
    """Read the `.forceignore` in a project's root; raise ProjectError if a line is not a valid pattern."""
    file = root / FORCEIGNORE_FILE
    if not file.is_file():
        return ForceIgnore(root)
    texts = (text.removesuffix("\r") for text in read_text(file, raises=ProjectError).split("\n"))
    lines = [IgnoreLine(number, text) for number, text in enumerate(texts, 1)]
    rules = (_rule(file, line) for line in (*lines, *(IgnoreLine(0, default) for default in _DEFAULTS)))
    problems = (_backslash(file, line) for line in lines if _has_separator(line.text))
    return ForceIgnore(root, [rule for rule in rules if rule], problems=problems)


def _rule(file: Path, line: IgnoreLine) -> _Rule | None:
    from pathspec import GitIgnoreSpec

    spelt = _SEPARATOR.sub("/", line.text) if _has_separator(line.text) else line.text
    pattern = _END_BLANKS.sub("", spelt)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parsed = GitIgnoreSpec.from_lines([pattern.rstrip("/")]).patterns
    except (ValueError, re.error, Warning) as error:
        reason = str(error).partition(" at position")[0]
        raise ProjectError(
            f"{file}:{line.number}: {line.text.strip()!r} is not a valid pattern: {reason}.",
            actions=("Correct the line; its syntax is that of .gitignore.",),
        ) from error
    if not parsed or parsed[0].include is None or parsed[0].regex is None:
        return None
    return _Rule(line, parsed[0].regex, parsed[0].include, pattern.endswith("/"))


def _has_separator(text: str) -> bool:
    return not text.startswith("#") and _SEPARATOR.search(text) is not None


def _backslash(file: Path, line: IgnoreLine) -> Problem:
    location = Location(str(file), line.number, line.text.index("\\") + 1)
    message = f"{line.text.strip()!r} has a backslash between folders, which is read as a slash"
    return Problem("forceignore-backslash", Severity.WARNING, location, message, "Write / between folders.")
