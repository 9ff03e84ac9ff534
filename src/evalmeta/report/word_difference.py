"""The difference of two texts word by word, as parts to highlight."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
# Comparing takes quadratic time; longer texts are shown without highlights.
_MAX_WORDS: Final = 2_000


class Part(NamedTuple):
    """A part of a text, and whether the other text lacks it."""

    text: str
    is_different: bool


class WordDifference(NamedTuple):
    """Two texts as parts."""

    before: tuple[Part, ...]
    after: tuple[Part, ...]

    @property
    def is_same(self) -> bool:
        """Return whether the texts are equal."""
        return not any(part.is_different for part in (*self.before, *self.after))


def word_difference(before: str, after: str) -> WordDifference:
    """Return two texts as parts, of which those are different that the other text lacks at this place."""
    if before == after:
        return WordDifference((Part(before, is_different=False),), (Part(after, is_different=False),))
    first, second = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(first), len(second)) > _MAX_WORDS:
        return WordDifference((Part(before, is_different=True),), (Part(after, is_different=True),))
    left, right = list[Part](), list[Part]()
    # Blanks only match beside words that match, because each of them could match all others.
    for kind, i1, i2, j1, j2 in SequenceMatcher(str.isspace, first, second, autojunk=False).get_opcodes():
        _add(left, first[i1:i2], is_different=kind != "equal")
        _add(right, second[j1:j2], is_different=kind != "equal")
    return WordDifference(tuple(left), tuple(right))


def _add(parts: list[Part], words: Sequence[str], *, is_different: bool) -> None:
    text = "".join(words)
    if not text:
        return
    # A blank between two different words is part of the difference.
    if parts and (text.isspace() or parts[-1].is_different == is_different) and parts[-1].is_different:
        parts[-1] = Part(parts[-1].text + text, is_different=True)
        return
    parts.append(Part(text, is_different))
