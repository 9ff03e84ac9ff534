"""Overlap: how many words of the expected answer are in the agent's, and the other way round (ROUGE-1).

Source: C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004. What
counts as a word differs among the tools that use this score.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.scorers.results import averaged, broken, undecided
from evalmeta.engine.scorers.stemming import stem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult

__all__ = ["Overlap", "overlap", "score_response_match"]

_NO_REFERENCE: Final = "the case gives no reference to compare the answer with"
_NO_REFERENCE_IS_0: Final = "the case gives no reference, which counts as 0"
_STEMMED_FROM: Final = 4
_SHOWN_WORDS: Final = 10
_SHOWN_CHARS: Final = 40
_ASCII_WORD: Final = re.compile("[a-z0-9]+")
_SCRIPT_WORD: Final = re.compile("[a-z0-9_]+")
# Long runs of combining marks take the square of their length to normalise, so a text is normalised in pieces that end
# before a base character where there is one. The excluded ones would have joined what stands before them.
_PIECE: Final = re.compile(r"(?s:.{1,1000}(?=[^\W\u1160-\u11ff\uff9e\uff9f\uffa0-\uffdc]|\s|\Z)|.{1,1000})")
# Chinese, Japanese and Korean characters are words; in Thai, Lao, Myanmar and Khmer a letter with its marks is one.
_CHARACTER_WORDS: Final = (("\u3040", "\u30ff"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7af"))
_LETTER_WORDS: Final = (("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"))


class Overlap(NamedTuple):
    """Shares of words, 0 to 1.

    Attributes:
        precision: of the answer's words, how many are expected.
        recall: of the expected words, how many are in the answer.
        score: the F1 of both.
    """

    precision: float
    recall: float
    score: float


class _Words(NamedTuple):
    """One way of telling words.

    Attributes:
        split: gives the words of a text, in lower case.
        are_stemmed: whether longer words in ASCII count by their stems.
        are_unique: whether a word counts once, however often it stands there.
    """

    split: Callable[[str], Sequence[str]]
    are_stemmed: bool = True
    are_unique: bool = False


def score_response_match(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Gives the overlap of the answer with the expectedValue, 0 to 1; the mean of a case must reach the threshold.

    The terms choose what words are (`tokens`): `unicode` (words of all scripts), `ascii`
    (others are left out) or `typescript` (each word once, and not stemmed). Without an
    expectedValue it is UNDECIDED, or 0 where the terms say `"missing": "zero"`. Other
    `tokens` give ERROR.
    """
    actual, tokens = exchange.generated.outcome, expectation.terms.get("tokens", "unicode")
    words = _WORDS.get(tokens) if isinstance(tokens, str) else None
    if words is None:
        return broken(expectation, f"tokens is {tokens!r:.50}; it can be {', '.join(_WORDS)}", actual=actual)
    reference = expectation.expected_value
    if reference is None and expectation.terms.get("missing") != "zero":
        return undecided(expectation, _NO_REFERENCE, actual=actual)
    found, missing = _compare(reference or "", actual, words)
    return averaged(
        expectation,
        score=found.score,
        expected=reference or "",
        actual=actual,
        explanation=_NO_REFERENCE_IS_0 if reference is None else _explanation(found, missing),
    )


def overlap(reference: str, answer: str, *, tokens: str = "unicode") -> Overlap:
    """Gives the ROUGE-1 overlap of two texts; a word counts at most as often as it stands in both."""
    return _compare(reference, answer, _WORDS[tokens])[0]


def _compare(reference: str, answer: str, words: _Words) -> tuple[Overlap, list[str]]:
    """Gives the overlap, and the words of the reference that are not in the answer."""
    named, given = words.split(reference), words.split(answer)
    if words.are_unique:
        named, given = list(dict.fromkeys(named)), list(dict.fromkeys(given))
    expected, said = (map(_token, named), map(_token, given)) if words.are_stemmed else (named, given)
    open_counts = Counter(said)
    missing = []
    for word, token in zip(named, expected, strict=True):
        count = open_counts.get(token)
        if count:
            open_counts[token] = count - 1
        else:
            missing.append(word)
    common = len(named) - len(missing)
    precision, recall = common / max(len(given), 1), common / max(len(named), 1)
    score = 2 * precision * recall / (precision + recall) if common else 0.0
    return Overlap(precision, recall, score), missing


def _token(word: str) -> str:
    return stem(word) if len(word) >= _STEMMED_FROM and word.isascii() else word


def _explanation(found: Overlap, missing: Sequence[str]) -> str:
    shares = f"ROUGE-1 is {found.score:.3f}: precision {found.precision:.3f}, recall {found.recall:.3f}"
    if not missing:
        return shares
    distinct = dict.fromkeys(missing)
    shown = ", ".join(word[:_SHOWN_CHARS] for word in islice(distinct, _SHOWN_WORDS))
    more = f" and {len(distinct) - _SHOWN_WORDS} more" if len(distinct) > _SHOWN_WORDS else ""
    return f"{shares}; missing: {shown}{more}"


def _ascii_words(text: str) -> Sequence[str]:
    return _ASCII_WORD.findall(text.lower())


def _script_words(text: str) -> Sequence[str]:
    return _SCRIPT_WORD.findall(text.lower())


def _unicode_words(text: str) -> Sequence[str]:
    """Gives the words of a text in any script, in its compatibility form (NFKC)."""
    if text.isascii():
        return _ascii_words(text)
    normal = "".join([unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(text)])
    return "".join(map(_spaced, normal.lower())).split()


@lru_cache(maxsize=8_192)
def _spaced(character: str) -> str:
    """Gives a character of a word, with blanks where a word of its own begins or ends; a blank for all others."""
    is_mark = unicodedata.category(character).startswith("M")
    if any(first <= character <= last for first, last in _CHARACTER_WORDS):
        return f" {character} "
    if any(first <= character <= last for first, last in _LETTER_WORDS):
        return character if is_mark else f" {character}"
    return character if is_mark or character.isalnum() else " "


_WORDS: Final[Mapping[str, _Words]] = {
    "unicode": _Words(_unicode_words),
    "ascii": _Words(_ascii_words),
    "typescript": _Words(_script_words, are_stemmed=False, are_unique=True),
}
