"""Names of persons and places: capitalised words in English texts, and words after a title in all languages."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.rules_rater.amounts import UNITS
from evalmeta.rules_rater.dates import MONTHS, WEEKDAYS
from evalmeta.rules_rater.finding import without_facts
from evalmeta.rules_rater.text import CACHED_TEXTS, sentences, word_set, words

if TYPE_CHECKING:
    from evalmeta.rules_rater.ratings import Texts


_TITLE: Final = r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Herrn?|Frau|Sra?|Señora?|Mme|M|Monsieur|Madame|Sig|Signora?)\b\.?\s"
_TITLED: Final = re.compile(rf"{_TITLE}([A-ZÀ-Þ][\w'-]+(?:\s[A-ZÀ-Þ][\w'-]+)?)")
_WORD: Final = re.compile(r"[^\W\d_][\w'&-]*|[,;:()>\"]")
_ENGLISH: Final = word_set("the is are was of you your for has have will this that can with my our we and by to")
_OTHER: Final = word_set(
    "der die das ein eine ist und ihr ihre el es los la las le les est un una une su votre il è o os een"
)
_NO_NAMES: Final = frozenset({*MONTHS, *WEEKDAYS, *UNITS}) | word_set(
    "i i'm i'll i've i'd a an the this that these those your our my his her its their you we he she it they is are was "
    "were to of in on at for from with by and or but if as no not yes ok sure hello hi dear thanks thank please sorry "
    "here there what when where which who how why can could should will would do does did has have had may must let mr "
    "mrs ms dr good great it's that's there's you'll you're we'll we're unfortunately currently however also then all "
    "every each some only after before until since because so faq id pdf url api ai am pm eur gbp"
)
_NO_PLACE: Final = word_set("is are was the a an of by in at on")


class _Name(NamedTuple):
    """A name in lower case, and the words beside it."""

    words: tuple[str, ...]
    before: str
    after: str


def replaced_names(texts: Texts) -> tuple[list[str], list[str]]:
    """Return a name that the answer replaces, and the one that it has instead.

    The other name must be next to the same word, such as `manager`, or have a word of the expected name.
    """
    expected, actual = _find_names(texts.expected), _find_names(texts.actual)
    expected_words, actual_words, asked = (
        frozenset(words(text.replace("'s", ""))) for text in (texts.expected, texts.actual, texts.utterance)
    )
    extra = [name for name in actual if not expected_words.issuperset(name.words)]
    missing = (name for name in expected if not _is_said(name, actual_words, actual))
    for name, other in ((name, other) for name in missing for other in extra if _are_rivals(name, other, asked)):
        return [" ".join(name.words).title()], [" ".join(other.words).title()]
    return [], []


def _is_said(name: _Name, said: frozenset[str], names: tuple[_Name, ...]) -> bool:
    """Say whether an answer has the name, or a part of it that is not beside a different word."""
    shared = said.intersection(name.words)
    beside = (set(other.words) - set(name.words) for other in names if shared & set(other.words))
    return shared == set(name.words) or (bool(shared) and not any(beside))


def _are_rivals(name: _Name, other: _Name, asked: frozenset[str]) -> bool:
    own = [word for word in name.words if word not in other.words]
    short, long = sorted(("".join(own), "".join(word for word in other.words if word not in name.words)), key=len)
    if not short or (len(short) <= len("usa") and long[0] == short[0]):
        return False  # an abbreviation, such as TN for Tennessee
    if len(own) < len(name.words):
        return True
    if asked.issuperset(name.words) or not asked.isdisjoint(other.words):
        return name[1:] == other[1:] != ("", "")
    return not {name.before, name.after}.isdisjoint({other.before, other.after} - {""})


@lru_cache(CACHED_TEXTS)
def _find_names(text: str) -> tuple[_Name, ...]:
    """Return the names in a text; the first word of a sentence counts only after a title or before another one."""
    common = words(text)
    if sum(map(_OTHER.__contains__, common)) >= max(1, sum(map(_ENGLISH.__contains__, common))):
        return tuple(_Name(tuple(match[1].lower().split()), "title", "") for match in _TITLED.finditer(text))
    text = re.sub(_TITLE, "title ", without_facts(text))
    return tuple(name for sentence in sentences(text) for name in _names_in(_WORD.findall(sentence)))


def _names_in(parts: list[str]) -> list[_Name]:
    names, start = [], 0
    while start < len(parts):
        end = start
        while end < len(parts) and _is_capital(parts[end]) and (end == start or not parts[end - 1].endswith("'s")):
            end += 1
        if end > start and (start or end - start > 1):
            first = start or 1  # the first word of a sentence has a capital anyway
            name = tuple(word.removesuffix("'s").lower() for word in parts[first:end])
            names.append(_Name(name, _nearest(parts[start - 1 :: -1] if start else []), _nearest(parts[end:])))
        start = max(end, start + 1)
    return names


def _nearest(parts: list[str]) -> str:
    """Return the first word with a meaning of its own; empty if a comma is before it."""
    word = next((word for word in parts if word.lower() not in _NO_PLACE), "")
    return word.lower() if word[:1].isalpha() else ""


def _is_capital(word: str) -> bool:
    return word[0].isupper() and word.removesuffix("'s").lower() not in _NO_NAMES
