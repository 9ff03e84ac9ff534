"""A problem: one finding about a file, with its place and the way out. A value, never raised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_QUOTED_CHARS: Final = 80


class Severity(StrEnum):
    """How much a problem weighs: an error stops a deployment, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file: line and column count from 1, the column in characters; 0 means unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Gives `file:line:column`, without what is unknown."""
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    Attributes:
        code: the rule's name, such as `history-order`; stable, usable in settings.
        message: what is wrong, one sentence without the place.
        hint: what to do, one sentence; empty when the message says it all.
        component: `Type:FullName` when the finding is about a component.
    """

    code: str
    severity: Severity
    location: Location
    message: str
    hint: str = ""
    component: str = ""

    @property
    def is_error(self) -> bool:
        """Says whether the problem stops a deployment."""
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        """Gives the finding on one line, without the hint."""
        return f"{self.location}: {self.severity}: {self.message} [{self.code}]"


def quote(text: str) -> str:
    """Return text of a file in quotes, on one line, shortened if it is long."""
    return repr(text if len(text) <= _QUOTED_CHARS else f"{text[: _QUOTED_CHARS - 1]}…")
