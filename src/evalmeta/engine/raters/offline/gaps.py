"""What one text has and the other has not: names, days, and things of which there are none."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.offline.facts import find_facts
from evalmeta.engine.raters.offline.names import differing_names, find_days, find_names, has_range_of_days
from evalmeta.engine.raters.offline.numerals import with_digits
from evalmeta.engine.raters.offline.words import is_english, negations, stem, words

__all__ = ["counted_nothing", "day_gap", "name_gap"]

_NONE: Final = re.compile(r"\b(?:no|zero|0|any)\s+(?:\w+\s+)?(\w{3,}s)\b", re.IGNORECASE)
_SOME: Final = re.compile(r"(?<![\w.])0*[1-9]\d*\s+(?:\w+\s+)?(\w{3,})\b")
_TURNED: Final = re.compile(
    r"\b(?:closed|except|not|no|never|but|nicht|kein\w*|geschlossen|cerrad\w+|fermé\w*|pas)\b", re.IGNORECASE
)


def counted_nothing(one: str, other: str) -> str:
    """Names things of which one text says there are none and the other counts some; empty when there are no such."""
    none = [found[1].lower() for found in _NONE.finditer(one) if found[0].lower()[:3] != "any" or negations(one)]
    if not none or find_facts(one.replace("0", "")):
        return ""
    some = {stem(found[1].lower()) for found in _SOME.finditer(with_digits(other))}
    return next((thing for thing in none if stem(thing) in some), "")


def day_gap(expected: str, actual: str, known: str) -> tuple[list[str], list[str]]:
    """Lists weekdays and months that are missing, and others of the answer; nothing where days stand for others."""
    if has_range_of_days(expected) != has_range_of_days(actual) or bool(_TURNED.search(expected)) != bool(
        _TURNED.search(actual)
    ):
        return [], []
    wanted, said, asked = find_days(expected), find_days(actual), find_days(known)
    missing = {key: day for key, day in wanted.items() if key not in said and key not in asked}
    extra = {key: day for key, day in said.items() if key not in wanted and key not in asked}
    kinds = {key.partition(" ")[0] for key in missing} & {key.partition(" ")[0] for key in extra}
    return _of(kinds, missing), _of(kinds, extra)


def _of(kinds: set[str], days: dict[str, str]) -> list[str]:
    return [day for key, day in days.items() if key.partition(" ")[0] in kinds]


def name_gap(expected: str, actual: str, known: str, *, described: bool) -> tuple[list[str], list[str]]:
    """Lists names that are missing, and others of the answer; rules for capital letters are those of English.

    Of the names in a description one must be said; they say what the answer is about.
    """
    if not (is_english(expected) and is_english(actual)):
        return [], []
    missing, extra = differing_names(expected, actual, known=known)
    asked = frozenset(words(known))
    if described and len(missing) < len(find_names(expected)):
        return [], []
    if not described:
        missing = [name for name in missing if not asked.issuperset(word for part in name for word in words(part))]
    return [_title(name) for name in missing], [_title(name) for name in extra]


def _title(name: tuple[str, ...]) -> str:
    return " ".join(word if "@" in word else word.capitalize() for word in name)
