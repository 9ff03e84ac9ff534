"""Words and letters: how similar two texts are on the surface, which does not mean that they agree."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.rules.vocabulary import FUNCTION_WORDS, LANGUAGES, SYNONYMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet


_WORD: Final = re.compile(r"\w+(?:['.,:@+-]\w+)*")
_NEGATION: Final = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|neither|nor|without|cannot|\w+n't"
    r"|nicht|nichts|kein\w*|nie|niemals|ohne|pas|jamais|aucune?|sans|nunca|ningun\w*|ningún|sin)\b",
    re.IGNORECASE,
)
_GRAMS: Final = (2, 3, 4, 5)
_CACHED_TEXTS: Final = 32  # a rating asks several times for the same three texts
_CACHED_WORDS: Final = 4096  # most texts of a run share their words
_ROOT_LENGTH: Final = 4
_MAX_UNSTEMMED: Final = 3


def words(text: str) -> list[str]:
    """Return the stems of a text's words in order: lower case, without a plural s or a possessive."""
    return [stem(word) for word in raw_words(text)]


def content_words(text: str) -> list[str]:
    """Return the words that carry a fact, in order, with synonyms unified; all words if there are no such words."""
    return [_common(word) for word in raw_words(text) if is_content(word)] or words(text)


def is_content(word: str) -> bool:
    """Say whether a word in lower case carries a fact."""
    return word not in FUNCTION_WORDS


@lru_cache(_CACHED_TEXTS)
def raw_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case and in order."""
    return tuple(_WORD.findall(text.lower()))


@lru_cache(_CACHED_TEXTS)
def language(text: str) -> str:
    """Guess a language by its function words: `en`, `de`, `es`, `fr`, or an empty text if there are none."""
    found = raw_words(text)
    counts = {name: sum(map(known.__contains__, found)) for name, known in LANGUAGES.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


def is_english(text: str) -> bool:
    """Say whether rules for English apply: no other language has more function words in the text."""
    return language(text) == "en"


def negations(text: str) -> int:
    """Return the number of negations."""
    return len(_NEGATION.findall(text))


def recall(expected: Sequence[str], actual: Sequence[str]) -> float:
    """Return the share of expected words that are among the actual ones, 0 to 1 (ROUGE-1 recall, Lin 2004)."""
    counts = Counter(expected)
    return (counts & Counter(actual)).total() / max(1, counts.total())


def missing_words(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """Return the expected words that are not among the actual ones in the same order."""
    missing, start = [], 0
    for word in expected:
        try:
            start = actual.index(word, start) + 1
        except ValueError:
            missing.append(word)
    return missing


def cosine(expected: str, actual: str) -> float:
    """Return the cosine of the TF-IDF vectors of both texts' character n-grams (2 to 5), 0 to 1.

    The document frequencies are those of the two texts, smoothed: idf = ln(3 / (1 + df)) + 1.
    """
    left, right = _grams(expected), _grams(actual)
    common = left.keys() & right.keys()
    shared = sum(left[gram] * right[gram] for gram in common)
    norm = _norm(left, common) * _norm(right, common)
    return shared / norm if norm else 0.0


def _norm(grams: Counter[str], common: AbstractSet[str]) -> float:
    rare_weight = (math.log(1.5) + 1) ** 2
    squares = sum(map(mul, grams.values(), grams.values()))
    shared = sum(grams[gram] ** 2 for gram in common)
    return math.sqrt(shared + (squares - shared) * rare_weight)


def _grams(text: str) -> Counter[str]:
    padded = f" {' '.join(words(text))} "
    return Counter(padded[start : start + size] for size in _GRAMS for start in range(len(padded) - size + 1))


@lru_cache(_CACHED_WORDS)
def stem(word: str) -> str:
    """Return a word in lower case without a possessive and a plural s."""
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > _MAX_UNSTEMMED and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(_CACHED_WORDS)
def _common(word: str) -> str:
    plain = stem(word)
    return SYNONYMS.get(plain) or SYNONYMS.get(word.removesuffix("'s")) or plain


def share_roots(some: Iterable[str], others: Iterable[str]) -> bool:
    """Say whether two words start with the same four letters."""
    return not {word[:_ROOT_LENGTH] for word in some}.isdisjoint({word[:_ROOT_LENGTH] for word in others})
