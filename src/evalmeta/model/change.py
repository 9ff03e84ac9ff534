"""Changes between two versions of a definition, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalmeta.model.problem import Problem

__all__ = ["Change", "ChangeKind", "Difference"]


class ChangeKind(StrEnum):
    """What became of something."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        case: the number of the test case it is in; a case without one has that of its
            place in the file. None for the definition's own fields.
        what: the way to it, such as `("expectation coherence", "expectedValue")`, fields
            named as in files; empty when it is the whole test case.
        before: the old text, None where there was none.
        after: the new text; of something added, the text that tells most.
    """

    kind: ChangeKind
    case: int | None
    what: tuple[str, ...]
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """How two versions of a definition differ that have not the same bytes.

    Attributes:
        name: the component's full name; empty for two files.
        before: where the old version is, None when there is none.
        after: where the new version is, None when there is none.
        changes: what changed; none of two versions that differ in their form alone.
        problems: why the versions cannot be compared.
    """

    name: str
    before: str | None
    after: str | None
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_form_only(self) -> bool:
        """Says whether both versions are there and mean the same."""
        return self.before is not None and self.after is not None and not (self.changes or self.problems)
