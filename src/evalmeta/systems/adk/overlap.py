"""Overlap: how many words the answer and the expected answer share (ROUGE-1; C.-Y. Lin, "ROUGE", 2004).

English words are compared by their stems. Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3),
1980, in the default variant of the natural language toolkit (NLTK), which Google's ROUGE uses too: words of one or two
letters are unchanged, some irregular words have their own stems, and docstrings say where a step differs. The
conditions m, *v*, *d and *o are the paper's.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.scorers.results import averaged, broken, first_few, undecided
from evalmeta.model.checks import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.engine.interfaces import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult


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

    `tokens` in the terms chooses the words: `unicode` (of all scripts), `ascii` or `typescript` (each once, not
    stemmed). Without an expectedValue the result is UNDECIDED, or 0 with `"missing": "zero"`.
    """
    actual, tokens = exchange.generated.outcome, expectation.terms.get("tokens", "unicode")
    tokenizer = _TOKENIZERS.get(tokens) if isinstance(tokens, str) else None
    if tokenizer is None:
        reason = f"{tokens!r:.50} is not a valid value of tokens; use one of {', '.join(_TOKENIZERS)}"
        return broken(expectation, reason, actual=actual)
    reference = expectation.expected_value
    if reference is None and expectation.terms.get("missing") != "zero":
        return undecided(expectation, "the turn does not say which answer is expected", actual=actual)
    shares, missing = _compare(reference or "", actual, tokenizer)
    explanation = f"ROUGE-1 is {shares.score:.3f}: precision {shares.precision:.3f}, recall {shares.recall:.3f}"
    if missing:
        explanation += f"; missing: {first_few([word[:_MAX_CHARS] for word in dict.fromkeys(missing)])}"
    return averaged(
        expectation,
        score=shares.score,
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


_VOWELS: Final = frozenset("aeiou")
_KINDS: Final = {ord(letter): "v" if letter in _VOWELS else "c" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"}
_MAX_UNCHANGED: Final = 2
_SHORT_IES: Final = len("dies")
# Longer texts are rarely words, and would make the cache large.
_MAX_CACHED_LENGTH: Final = 40


def _rules(**endings: str) -> dict[str, str]:
    """Return the new ending of each of these endings, which are grouped by the new one."""
    return {ending: new for new, old in endings.items() for ending in old.split()}


_IRREGULAR: Final = {
    **_rules(canning="canning cannings", inning="inning innings", outing="outing outings", sky="sky skies"),
    **_rules(die="dying", lie="lying", tie="tying"),
    **_rules(exceed="exceed", howe="howe", news="news", proceed="proceed", succeed="succeed"),
}
_STEP_2: Final = {
    **_rules(al="alism aliti alli", ance="anci", ate="ation ational ator", ble="biliti bli", e="eli", ence="enci"),
    **_rules(ent="entli", ful="fulli fulness", ive="iveness iviti", ize="ization izer", ous="ousli ousness"),
    **_rules(tion="tional"),
}
_STEP_3: Final = {**_rules(al="alize", ic="ical icate iciti"), **dict.fromkeys(("ative", "ful", "ness"), "")}
_STEP_4: Final = {
    **dict.fromkeys(("able", "al", "ance", "ant", "ate", "ement", "ence", "ent", "er", "ible", "ic", "ion"), ""),
    **dict.fromkeys(("ism", "iti", "ive", "ize", "ment", "ou", "ous"), ""),
}


_LENGTHS_2, _LENGTHS_3, _LENGTHS_4 = (
    sorted({len(suffix) for suffix in rules}, reverse=True) for rules in (_STEP_2, _STEP_3, _STEP_4)
)


def stem(word: str) -> str:
    """Return the stem of a word of lower-case ASCII letters and digits; digits count as consonants."""
    return _cached_stem(word) if len(word) <= _MAX_CACHED_LENGTH else _stem(word)


def _stem(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= _MAX_UNCHANGED:
        return word
    word = _without_participle(_without_plural(word))
    # Step 1c of NLTK: y becomes i after a consonant, unless that is the whole rest.
    if word.endswith("y") and len(word) > _MAX_UNCHANGED and _shape(word[:-1]).endswith("c"):
        word = word[:-1] + "i"
    word = _replaced(_step_2(word), _STEP_3, _LENGTHS_3)
    # Step 4: the paper removes ion only after s or t.
    if not word.endswith("ion") or word[-4:-3] in ("s", "t"):
        word = _replaced(word, _STEP_4, _LENGTHS_4, above=1)
    word = _without_e(word)
    # Step 5b.
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


_cached_stem: Final = lru_cache(maxsize=32_768)(_stem)


def _shape(word: str) -> str:
    """Return c for each consonant and v for each vowel; y is a vowel after a consonant."""
    if "y" not in word:
        return word.translate(_KINDS)
    shape, last = [], "v"
    for letter in word:
        is_vowel = letter in _VOWELS or (letter == "y" and last == "c")
        last = "v" if is_vowel else "c"
        shape.append(last)
    return "".join(shape)


def _measure(word: str) -> int:
    """Return the paper's m: the number of vowels that a consonant follows."""
    return _shape(word).count("vc")


def _ends_cvc(word: str) -> bool:
    """Say whether the paper's *o holds, or NLTK's addition: a word of a vowel and a consonant."""
    shape = _shape(word)
    return (shape.endswith("cvc") and word[-1] not in "wxy") or shape == "vc"


def _replaced(word: str, rules: Mapping[str, str], lengths: Sequence[int], *, above: int = 0) -> str:
    """Replace the longest suffix that has a rule, if the measure of the rest is more than `above`."""
    for length in lengths:
        suffix = word[-length:]
        if suffix in rules:
            rest = word[: -len(suffix)]
            return rest + rules[suffix] if _measure(rest) > above else word
    return word


def _without_plural(word: str) -> str:
    """Apply step 1a; NLTK keeps the e of words such as dies."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == _SHORT_IES else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_participle(word: str) -> str:
    """Apply step 1b; NLTK keeps the i of words such as spied, and ie of words such as died."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == _SHORT_IES else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        rest = word.removesuffix(suffix)
        if rest != word and "v" in _shape(rest):
            return _repaired(rest)
    return word


def _repaired(word: str) -> str:
    """Restore a final e after ed or ing was removed, or remove a doubled consonant."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    # The paper's *d: two equal consonants at the end.
    if word[-1:] == word[-2:-1] and _shape(word)[-1:] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_cvc(word) else word


def _step_2(word: str) -> str:
    """Apply step 2; NLTK repeats it after alli, adds the suffixes fulli and bli, and accepts logi after any l."""
    if word.endswith("alli") and _measure(word[:-4]):
        word = word[:-2]
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replaced(word, _STEP_2, _LENGTHS_2)


def _without_e(word: str) -> str:
    rest = word.removesuffix("e")
    if rest == word:
        return word
    measure = _measure(rest)
    return rest if measure > 1 or (measure == 1 and not _ends_cvc(rest)) else word


_MIN_STEMMED: Final = 4
