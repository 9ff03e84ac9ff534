"""Facts that can be compared exactly: numbers, codes and names."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from evalmeta.engine.raters.words import word_list

__all__ = ["find_names", "find_numbers", "with_plain_numbers", "without_bounds"]

_MONTHS: Final = word_list("january february march april may june july august september october november december")
_NUMBER_WORDS: Final = word_list(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
_VALUES: Final = {
    **{name[:length]: str(number) for number, name in enumerate(_MONTHS, 1) for length in (3, len(name))},
    **{word: str(number) for number, word in enumerate(_NUMBER_WORDS, 2)},
}
_SCALES: Final = {"k": 3, "thousand": 3, "m": 6, "million": 6, "bn": 9, "billion": 9}

_BOUND: Final = re.compile(
    r"\b(?:at (?:least|most)|(?:more|less|fewer|greater) than|up to|over|under|above|below|between|around|about"
    r"|approximately|roughly|(?:min|max)imum(?: of)?)\s+\S*\d\S*(?:\s+(?:and|to)\s+\S*\d\S*)?",
    re.IGNORECASE,
)
_MONTH: Final = rf"({'|'.join(name for month in _MONTHS for name in (month, month[:3]))})\b\.?"
_MONTH_BY_DAY: Final = re.compile(rf"\b{_MONTH}(?=\s+\d)|(?<=\d)(?:st|nd|rd|th)?(?: of)? {_MONTH}", re.IGNORECASE)
_NUMBER_WORD: Final = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)
_FACT: Final = re.compile(
    r"(?P<code>(?<![\w])(?:[A-Za-z]+[-_#]?\d[\w-]*|\d+[A-Za-z]\w{4,})\b)"
    r"|(?P<hour>\d{1,2})(?P<minute>:\d\d)?(?::\d\d)?\s?(?P<half>[ap])\.?m\b"
    r"|(?P<clock>\d{1,2}:\d\d)\b"
    r"|(?P<figure>\d{1,3}(?:[,']\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<scale>thousand|million|billion|bn)\b|(?P<short>[kKM])\b)?",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_SENTENCE: Final = re.compile(r"[.!?:;]\s+|[\n\r]+")
_NAME_WORD: Final = re.compile(r"[^\W\d_][\w'&-]*")
_NO_NAMES: Final = frozenset(
    word_list(
        "i i'm i'll i've i'd a an the this that these those your our my his her its their you we he she it they is are "
        "was were to of in on at for from with by and or but if as no not yes ok okay sure hello hi hey dear thanks "
        "thank please sorry here there what when where which who how why can could should would will do does"
    )
)


def find_numbers(text: str) -> tuple[str, ...]:
    """Lists numbers, times and codes in one spelling each, in order and once.

    `1,250`, `1250.00` and `1.250,00` are 1250, `2k` is 2000, `three` is 3, `3:30 pm`
    and `15:30` are 3:30, a month beside a day is its number; codes such as `ORD-17`
    come in capitals.
    """
    return tuple(dict.fromkeys(map(_plain_fact, _FACT.finditer(_with_digits(text)))))


def with_plain_numbers(text: str) -> str:
    """Writes every number of a text the way `find_numbers` spells it."""
    return _FACT.sub(_plain_fact, _with_digits(text))


def without_bounds(text: str) -> str:
    """Takes out numbers that need not be met to the digit, such as `at least 100`."""
    return _BOUND.sub(" ", text)


def find_names(text: str) -> dict[str, str]:
    """Gives names by their lower case: capitalised words inside sentences, and e-mail addresses.

    A sentence's first word counts only when another capitalised one follows it.
    """
    names = {address.lower(): address for address in _EMAIL.findall(text)}
    for sentence in _SENTENCE.split(_EMAIL.sub(" ", _MONTH_BY_DAY.sub(" ", text))):
        names.update(_names_in(_NAME_WORD.findall(sentence)))
    return names


def _names_in(words: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for index, word in enumerate(words):
        plain = word.removesuffix("'s").lower()
        follows = index + 1 < len(words) and words[index + 1][0].isupper()
        if word[0].isupper() and plain not in _NO_NAMES and (index or follows):
            names[plain] = word.removesuffix("'s")
    return names


def _with_digits(text: str) -> str:
    text = _MONTH_BY_DAY.sub(lambda found: f" {_VALUES[(found[1] or found[2]).lower()]} ", text)
    return _NUMBER_WORD.sub(lambda found: _VALUES[found[0].lower()], text)


def _plain_fact(found: re.Match[str]) -> str:
    if found["code"]:
        return found["code"].upper()
    if found["hour"]:
        return _clock(found["hour"], (found["minute"] or ":00")[1:])
    if found["clock"]:
        return _clock(*found["clock"].split(":"))
    scale = _SCALES.get((found["scale"] or found["short"] or "").lower(), 0)
    return _figure(found["figure"], scale)


def _clock(hour: str, minute: str) -> str:
    return f"{int(hour) % 12}:{minute}"


def _figure(text: str, scale: int) -> str:
    if "," in text and "." in text and text.rindex(",") > text.rindex("."):
        text = text.replace(".", "").replace(",", ".")
    text = re.sub(r"[,']", "", text)
    if scale:
        text = f"{Decimal(text).scaleb(scale):f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
