"""What a rule says before it is placed: the steps to the element, what is wrong, what to do."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Finding", "nearest"]


class Finding(NamedTuple):
    """One finding of a rule.

    Attributes:
        steps: the way from the rule's scope to the element at fault, as pairs of local
            name and index; an element that is missing may be named, its parent is shown.
    """

    steps: tuple[tuple[str, int], ...]
    message: str
    hint: str


def nearest(word: str, known: Iterable[str]) -> str:
    """Says which known word was probably meant, or lists them all."""
    options = list(known)
    close = get_close_matches(word.lower(), options, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else f"Known: {', '.join(options)}."
