"""Overlap: how many words the answer and the expected answer share (ROUGE-1; C.-Y. Lin, "ROUGE", 2004)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.scorers.porter_stemmer import stem
from evalmeta.engine.scorers.results import averaged, broken, first_few, undecided
from evalmeta.model.plain_text import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.engine.interfaces import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult


_MIN_STEMMED: Final = 4
_MAX_CHARS: Final = 40
_ASCII_WORD: Final = re.compile("[a-z0-9]+")
_SCRIPT_WORD: Final = re.compile("[a-z0-9_]+")
# Chinese, Japanese and Korean characters are words; in Thai, Lao, Myanmar and Khmer a letter with its marks is one.
_CHARACTER_WORDS: Final = (("\u3040", "\u30ff"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7af"))
_LETTER_WORDS: Final = (("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"))


class Overlap(NamedTuple):
    """Shares of words, 0 to 1: the answer's that are expected, the expected ones in the answer, and the F1 of both."""

    precision: float
    recall: float
    score: float


class _Tokenizer(NamedTuple):
    """A way to split a text into words in lower case; repeated words count once if `are_unique`."""

    split: Callable[[str], Sequence[str]]
    are_stemmed: bool = True
    are_unique: bool = False


def score_response_match(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Score the overlap of the answer with the expectedValue, 0 to 1; the mean of a case must reach the threshold.

    `tokens` in the terms chooses the words: `unicode` (words of all scripts), `ascii` (ASCII
    words only) or `typescript` (each word once, not stemmed); other values are an ERROR.
    Without an expectedValue the result is UNDECIDED, or 0 with `"missing": "zero"`.
    """
    actual, tokens = exchange.generated.outcome, expectation.terms.get("tokens", "unicode")
    tokenizer = _TOKENIZERS.get(tokens) if isinstance(tokens, str) else None
    if tokenizer is None:
        reason = f"{tokens!r:.50} is not a valid value of tokens; use one of {', '.join(_TOKENIZERS)}"
        return broken(expectation, reason, actual=actual)
    reference = expectation.expected_value
    if reference is None and expectation.terms.get("missing") != "zero":
        return undecided(expectation, "the turn does not say which answer is expected", actual=actual)
    found, missing = _compare(reference or "", actual, tokenizer)
    explanation = f"ROUGE-1 is {found.score:.3f}: precision {found.precision:.3f}, recall {found.recall:.3f}"
    if missing:
        explanation += f"; missing: {first_few([word[:_MAX_CHARS] for word in dict.fromkeys(missing)])}"
    return averaged(
        expectation,
        score=found.score,
        expected=reference or "",
        actual=actual,
        explanation="the turn has no expected answer, which counts as 0" if reference is None else explanation,
    )


def overlap(reference: str, answer: str, *, tokens: str = "unicode") -> Overlap:
    """Return the ROUGE-1 overlap of two texts; a word counts at most as often as it is in both."""
    return _compare(reference, answer, _TOKENIZERS[tokens])[0]


def _compare(reference: str, answer: str, tokenizer: _Tokenizer) -> tuple[Overlap, list[str]]:
    """Return the overlap, and the words of the reference that are not in the answer."""
    expected, actual = tokenizer.split(reference), tokenizer.split(answer)
    if tokenizer.are_unique:
        expected, actual = list(dict.fromkeys(expected)), list(dict.fromkeys(actual))
    expected_keys, actual_keys = expected, actual
    if tokenizer.are_stemmed:
        expected_keys, actual_keys = (
            [stem(word) if len(word) >= _MIN_STEMMED and word.isascii() else word for word in words]
            for words in (expected, actual)
        )
    unmatched = Counter(actual_keys)
    missing = []
    for word, key in zip(expected, expected_keys, strict=True):
        count = unmatched.get(key)
        if count:
            unmatched[key] = count - 1
        else:
            missing.append(word)
    common = len(expected) - len(missing)
    precision, recall = common / max(len(actual), 1), common / max(len(expected), 1)
    score = 2 * precision * recall / (precision + recall) if common else 0.0
    return Overlap(precision, recall, score), missing


def _ascii_words(text: str) -> Sequence[str]:
    return _ASCII_WORD.findall(text.lower())


def _unicode_words(text: str) -> Sequence[str]:
    """Return the words of a text in any script, in compatibility form (NFKC)."""
    if text.isascii():
        return _ascii_words(text)
    return "".join(map(_spaced, normalised(text, "NFKC").lower())).split()


@lru_cache(maxsize=8_192)
def _spaced(character: str) -> str:
    """Return a word character with blanks where a word begins or ends at it; return a blank for all others."""
    is_mark = unicodedata.category(character).startswith("M")
    if any(first <= character <= last for first, last in _CHARACTER_WORDS):
        return f" {character} "
    if any(first <= character <= last for first, last in _LETTER_WORDS):
        return character if is_mark else f" {character}"
    return character if is_mark or character.isalnum() else " "


_TOKENIZERS: Final[Mapping[str, _Tokenizer]] = {
    "unicode": _Tokenizer(_unicode_words),
    "ascii": _Tokenizer(_ascii_words),
    "typescript": _Tokenizer(lambda text: _SCRIPT_WORD.findall(text.lower()), are_stemmed=False, are_unique=True),
}
