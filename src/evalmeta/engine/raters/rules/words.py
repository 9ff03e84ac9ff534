"""Words and letters: how similar two texts are on the surface, and numbers in words converted to digits."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.rules.vocabulary import FUNCTION_WORDS, LANGUAGES, NUMBER_WORDS, ORDINALS, SYNONYMS

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
    return [common_word(word) for word in raw_words(text) if is_content(word)] or words(text)


def is_content(word: str) -> bool:
    """Say whether a word in lower case carries a fact."""
    return word not in FUNCTION_WORDS


@lru_cache(_CACHED_TEXTS)
def raw_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case and in order."""
    return tuple(find_words(text))


def find_words(text: str) -> list[str]:
    """Return what `raw_words` returns without remembering it, for parts of texts."""
    return _WORD.findall(text.lower())


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
    """Return the cosine of both texts' TF-IDF vectors of 2- to 5-grams, 0 to 1; idf = ln(3 / (1 + df)) + 1."""
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
def common_word(word: str) -> str:
    """Return the stem of a word, or of the first of its synonyms."""
    plain = stem(word)
    return SYNONYMS.get(plain) or SYNONYMS.get(word.removesuffix("'s")) or plain


def share_roots(some: Iterable[str], others: Iterable[str]) -> bool:
    """Say whether two words start with the same four letters."""
    return not {word[:_ROOT_LENGTH] for word in some}.isdisjoint({word[:_ROOT_LENGTH] for word in others})


_ENGLISH: Final = {**NUMBER_WORDS["en"], "one": 1}
_TEN: Final = 10
_HUNDRED: Final = 100
_SMALL: Final = "|".join(_ENGLISH)
_SPELLED: Final = re.compile(
    rf"\b(?:{_SMALL})(?:(?:[ -]|(?<=hundred) and |(?<=thousand) and )(?:{_SMALL}|hundred|thousand)\b)*\b", re.IGNORECASE
)
_ORDINAL: Final = re.compile(
    rf"\b(?P<before>the|our|your|my|his|her|its|their)\s(?P<word>{'|'.join(ORDINALS)})\b", re.IGNORECASE
)
_OTHERS: Final = {
    name: re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS[name])})\b", re.IGNORECASE) for name in ("de", "es", "fr")
}
_MEASURED: Final = re.compile(
    r"\s(?:business\s|working\s)?(?:day|week|month|year|hour|minute|percent)\b", re.IGNORECASE
)
_NAMES: Final = frozenset({"one", "half", "once", "twice", "noon", "midnight", "minus", *ORDINALS}).union(
    *NUMBER_WORDS.values()
)
_JOINED: Final = re.compile(
    r"\b(?:(?P<hours>\d{1,4})\s?(?:h|hrs?|hours?)(?:,| and)? (?P<minutes>\d{1,2})\s?(?:min|mins|minutes?)"
    r"|(?P<years>\d{1,3}) years?(?:,| and)? (?P<months>\d{1,2}) months?)\b",
    re.IGNORECASE,
)
_PHRASES: Final = (
    (re.compile(r"\b(?:an|one|1) hour and a half\b|\b(?:one|1) and a half hours\b", re.IGNORECASE), "90 minutes"),
    (re.compile(r"\bhalf of (?=the|all|your|our|my)", re.IGNORECASE), "50 % of "),
    (re.compile(r"\bonce(?= (?:a|an|per|every|each|daily|weekly|monthly)\b)", re.IGNORECASE), "1 times"),
    (re.compile(r"\btwice(?= (?:a|an|per|every|each|daily|weekly|monthly)\b)", re.IGNORECASE), "2 times"),
    (re.compile(r"\bhalf an hour\b", re.IGNORECASE), "30 minutes"),
    (re.compile(r"\b(?:12 )?noon\b", re.IGNORECASE), "12:00 pm"),
    (re.compile(r"\b(?:12 )?midnight\b", re.IGNORECASE), "12:00 am"),
    (re.compile(r"\bminus (?=\d)", re.IGNORECASE), "-"),
)


@lru_cache(maxsize=32)
def with_digits(text: str) -> str:
    """Return a text with its numbers in digits: cardinals, ordinals after an article, noon, midnight and durations.

    In German, Spanish and French only cardinals are converted; `one` only before a unit, as it can be an article.
    """
    if not _NAMES.isdisjoint(raw_words(text.replace("-", " "))):
        text = _in_digits(text)
    return _JOINED.sub(_joined, text)


def _in_digits(text: str) -> str:
    for phrase, digits in _PHRASES:
        text = phrase.sub(digits, text)
    name = language(text)
    if name in _OTHERS:
        return _OTHERS[name].sub(lambda found: str(NUMBER_WORDS[name][found[0].lower()]), text)
    text = _ORDINAL.sub(lambda found: f"{found['before']} {ORDINALS[found['word'].lower()]}", text)
    return _SPELLED.sub(_spelled, text)


def _joined(found: re.Match[str]) -> str:
    if found["hours"]:
        return f"{int(found['hours']) * 60 + int(found['minutes'])} minutes"
    return f"{int(found['years']) * 12 + int(found['months'])} months"


def _spelled(found: re.Match[str]) -> str:
    names = re.split(r"[ -]", found[0].lower())
    if names == ["one"] and not _MEASURED.match(found.string, found.end()):
        return found[0]
    return " ".join(map(str, _values([name for name in names if name != "and"])))


def _values(names: list[str]) -> list[int]:
    """Return the numbers that the words make: eight hundred fifty is one number, two three are two."""
    values: list[int] = []
    for name in names:
        last = values[-1] if values else 0
        if name in {"hundred", "thousand"}:
            factor = _HUNDRED if name == "hundred" else _HUNDRED * _TEN
            values[-1] += values[-1] % (_HUNDRED * _TEN) * (factor - 1)
        elif values and _joins(last, _ENGLISH[name]):
            values[-1] = last + _ENGLISH[name]
        else:
            values.append(_ENGLISH[name])
    return values


def _joins(last: int, value: int) -> bool:
    if last % _HUNDRED == 0:
        return last > 0
    return last % _TEN == 0 and last % _HUNDRED > _TEN and 0 < value < _TEN
