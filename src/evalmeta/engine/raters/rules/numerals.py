"""Numbers that are written in words, converted to digits."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from evalmeta.engine.raters.rules.vocabulary import NUMBER_WORDS, ORDINALS
from evalmeta.engine.raters.rules.words import language, raw_words

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

    In German, Spanish and French only plain cardinals are converted. `one` is converted only
    before a unit, because it can be an article.
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
            _multiply(values, _HUNDRED if name == "hundred" else _HUNDRED * _TEN)
        elif values and _joins(last, _ENGLISH[name]):
            values[-1] = last + _ENGLISH[name]
        else:
            values.append(_ENGLISH[name])
    return values


def _joins(last: int, value: int) -> bool:
    if last % _HUNDRED == 0:
        return last > 0
    return last % _TEN == 0 and last % _HUNDRED > _TEN and 0 < value < _TEN


def _multiply(values: list[int], factor: int) -> None:
    hundreds = values[-1] % (_HUNDRED * _TEN)
    values[-1] += hundreds * (factor - 1)
