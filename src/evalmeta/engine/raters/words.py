"""Words and letters: how alike two texts are on their surface. Alike is not the same as right."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["content_words", "cosine", "is_english", "missing_words", "negations", "recall", "word_list", "words"]


def word_list(text: str) -> tuple[str, ...]:
    """Gives words that stand in one string, which reads better than a column of quotes."""
    return tuple(text.split())


_WORD: Final = re.compile(r"\w+(?:['.,:-]\w+)*")
_NEGATION: Final = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|neither|nor|without|cannot|\w+n't)\b", re.IGNORECASE
)
_GRAMS: Final = (2, 3, 4, 5)
# Words that carry no fact. Little words that turn a meaning round (in, out, up, on, off, not) are left out on purpose.
_FUNCTION_WORDS: Final = frozenset(
    word_list(
        "a an the is are was were be been am to of and your you our my me we i it its it's this that these for with at "
        "by has have had will would can could do does did as there here so just please also"
    )
)
_ENGLISH: Final = frozenset(word_list("the is are was to of and your you for has have will i it this a"))


def words(text: str) -> list[str]:
    """Gives the words of a text in lower case and in order, a plural s and a possessive taken off."""
    return [_stem(word) for word in _raw_words(text)]


def content_words(text: str) -> list[str]:
    """Gives the words that carry a fact, in order; all words when there are no others."""
    return [_stem(word) for word in _raw_words(text) if word not in _FUNCTION_WORDS] or words(text)


def is_english(text: str) -> bool:
    """Says whether rules for English apply: at least one common English function word is there."""
    return not _ENGLISH.isdisjoint(_raw_words(text))


def negations(text: str) -> int:
    """Counts the words that say no."""
    return len(_NEGATION.findall(text))


def recall(expected: Sequence[str], actual: Sequence[str]) -> float:
    """Gives the share of expected words that occur in the actual ones, 0 to 1 (ROUGE-1 recall, Lin 2004)."""
    wanted = Counter(expected)
    return (wanted & Counter(actual)).total() / max(1, wanted.total())


def missing_words(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """Lists expected words that do not occur in the actual ones in the same order."""
    missing, start = [], 0
    for word in expected:
        try:
            start = actual.index(word, start) + 1
        except ValueError:
            missing.append(word)
    return missing


def cosine(expected: str, actual: str) -> float:
    """Gives the cosine of the TF-IDF vectors of both texts' character n-grams (2 to 5), 0 to 1.

    The document frequencies are those of the two texts, smoothed: idf = ln(3 / (1 + df)) + 1.
    """
    left, right = _grams(expected), _grams(actual)
    shared = sum(count * right[gram] for gram, count in left.items() if gram in right)
    norm = _norm(left, right) * _norm(right, left)
    return shared / norm if norm else 0.0


def _norm(grams: Counter[str], others: Counter[str]) -> float:
    alone = (math.log(1.5) + 1) ** 2
    return math.sqrt(sum(count * count * (1 if gram in others else alone) for gram, count in grams.items()))


def _grams(text: str) -> Counter[str]:
    padded = f" {' '.join(words(text))} "
    return Counter(padded[start : start + size] for size in _GRAMS for start in range(len(padded) - size + 1))


def _raw_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # noqa: PLR2004
