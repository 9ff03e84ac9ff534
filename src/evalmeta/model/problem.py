"""Problems: what is wrong with a file, where, and what to do about it. They are values and never raised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_QUOTED_CHARS: Final = 80


class Severity(StrEnum):
    """The severity of a problem: an error stops a deployment, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A location in a file: line and column from 1, the column in characters; 0 means unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Return `file:line:column`, without unknown parts."""
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        code: the rule, such as `history-order`; stable, for use in settings.
        message: what is wrong, in one sentence without the location.
        hint: what to do, in one sentence; may be empty.
        component: `Type:FullName` if the problem is about a component.
    """

    code: str
    severity: Severity
    location: Location
    message: str
    hint: str = ""
    component: str = ""

    @property
    def is_error(self) -> bool:
        """Return whether the problem stops a deployment."""
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        """Return the problem on one line, without the hint."""
        return f"{self.location}: {self.severity}: {self.message} [{self.code}]"


def quote(text: str) -> str:
    """Return text of a file in quotes, on one line, shortened if it is long."""
    return repr(text if len(text) <= _QUOTED_CHARS else f"{text[: _QUOTED_CHARS - 1]}…")
