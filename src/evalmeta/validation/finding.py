"""What the schema and the rules have to say, before it is weighed."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.problem import Location, Problem


_QUOTED_CHARS: Final = 80


class Complaint(NamedTuple):
    """One problem of structure.

    Attributes:
        unread: the place of the element that cannot be read whole because of it; what a
            rule misses there only follows from the problem.
    """

    problem: Problem
    unread: Location | None = None


class Finding(NamedTuple):
    """One finding of a rule.

    Attributes:
        steps: the way from the rule's scope to the element at fault, as pairs of local
            name and index; an element that is missing may be named, its parent is shown.
    """

    steps: tuple[tuple[str, int], ...]
    message: str
    hint: str


def quote(text: str) -> str:
    """Gives text of a file in quotes, on one line, shortened when it is long."""
    return repr(text if len(text) <= _QUOTED_CHARS else f"{text[: _QUOTED_CHARS - 1]}…")


def nearest(word: str, known: Iterable[str]) -> str:
    """Says which known word was probably meant, or lists them all."""
    options = list(known)
    close = get_close_matches(word[:_QUOTED_CHARS].lower(), options, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else f"Known: {', '.join(options)}."
