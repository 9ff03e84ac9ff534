"""Findings of rules, before the project's settings decide about their severity."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.xmlio.reader import Step


class Finding(NamedTuple):
    """One finding of a rule.

    Attributes:
        steps: the path from the rule's scope to the faulty element, as pairs of local name and index. The path of
            a missing element is valid too: its parent is shown.
    """

    steps: tuple[Step, ...]
    message: str
    hint: str


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a sentence with the known word that was probably meant, or with all known words."""
    options = list(known)
    close = get_close_matches(word[:80].lower(), options, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else f"Known: {', '.join(options)}."
