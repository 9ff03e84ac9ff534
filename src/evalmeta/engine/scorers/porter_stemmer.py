"""English word stems after Porter: "orders" and "ordered" have the same stem.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, in the default
variant of the natural language toolkit (NLTK), which Google's ROUGE uses too: words of one or
two letters are unchanged, some irregular words have their own stems, and docstrings say where
a step differs. The conditions m, *v*, *d and *o are the paper's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_VOWELS: Final = frozenset("aeiou")
_KINDS: Final = {ord(letter): "v" if letter in _VOWELS else "c" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"}
_MAX_UNCHANGED: Final = 2
_SHORT_IES: Final = len("dies")
# Longer texts are rarely words, and would make the cache large.
_MAX_CACHED_LENGTH: Final = 40

_IRREGULAR: Final = {
    "canning": "canning",
    "cannings": "canning",
    "dying": "die",
    "exceed": "exceed",
    "howe": "howe",
    "inning": "inning",
    "innings": "inning",
    "lying": "lie",
    "news": "news",
    "outing": "outing",
    "outings": "outing",
    "proceed": "proceed",
    "skies": "sky",
    "sky": "sky",
    "succeed": "succeed",
    "tying": "tie",
}
_STEP_2: Final = {
    "alism": "al",
    "aliti": "al",
    "alli": "al",
    "anci": "ance",
    "ation": "ate",
    "ational": "ate",
    "ator": "ate",
    "biliti": "ble",
    "bli": "ble",
    "eli": "e",
    "enci": "ence",
    "entli": "ent",
    "fulli": "ful",
    "fulness": "ful",
    "iveness": "ive",
    "iviti": "ive",
    "ization": "ize",
    "izer": "ize",
    "ousli": "ous",
    "ousness": "ous",
    "tional": "tion",
}
_STEP_3: Final = {"alize": "al", "ative": "", "ful": "", "ical": "ic", "icate": "ic", "iciti": "ic", "ness": ""}
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
    """Apply step 5a."""
    rest = word.removesuffix("e")
    if rest == word:
        return word
    measure = _measure(rest)
    return rest if measure > 1 or (measure == 1 and not _ends_cvc(rest)) else word
