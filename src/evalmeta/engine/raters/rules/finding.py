"""Where the facts of a text are: the finders of each kind search what earlier ones left over."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.rules import amounts, codes, dates, times
from evalmeta.engine.raters.rules.facts import Fact, key
from evalmeta.engine.raters.rules.numerals import with_digits
from evalmeta.engine.raters.rules.text import CACHED_TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable


_FINDERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Fact | None]], ...]] = (
    *codes.FINDERS[:2],
    *dates.FINDERS,
    *times.FINDERS,
    *codes.FINDERS[2:],
    *amounts.FINDERS,
)
_WORD_FINDERS: Final = (*codes.FINDERS[:2], *dates.FINDERS[-4:])
_DIGIT: Final = re.compile(r"\d")
# Long runs without a blank hold no fact that a person could compare; some patterns are slow for them.
_LONG_RUN: Final = re.compile(r"[!-~]{400,}|[\d.,]{40,}")


Located = tuple[Fact, int, int]


@lru_cache(CACHED_TEXTS)
def locate_facts(text: str) -> tuple[str, tuple[Located, ...]]:
    """Return a text with its numbers in digits, and its facts in order, each with its start and end.

    `1,250`, `1250.00` and `1.250,00` are 1250, `2k` is 2000, `three` is 3, `3:30 pm` and `15:30`
    are 15:30, `14 May 2024` and `2024-05-14` are one day; codes such as `ORD-17` are upper case.
    """
    text = with_digits(text)
    rest = text = _LONG_RUN.sub(" ", text)
    facts: list[Located] = []
    for pattern, make in _FINDERS if _DIGIT.search(rest) else _WORD_FINDERS:
        matches = [(match, fact) for match in pattern.finditer(rest) if (fact := make(match))]
        facts += ((fact, *found.span()) for found, fact in matches)
        for found, _ in matches:
            rest = f"{rest[: found.start()]}{' ' * len(found[0])}{rest[found.end() :]}"
    return text, tuple(sorted(facts, key=itemgetter(1)))


def find_facts(text: str) -> tuple[Fact, ...]:
    """Return the distinct facts of a text in order."""
    return tuple(dict.fromkeys(fact for fact, _, _ in locate_facts(text)[1]))


@lru_cache(CACHED_TEXTS)
def with_keys(text: str) -> str:
    """Return a text with one word for equal facts, so that its words can be compared."""
    return _rewritten(text, key)


@lru_cache(CACHED_TEXTS)
def without_facts(text: str) -> str:
    """Return a text without its facts."""
    return _rewritten(text, lambda _: "")


def _rewritten(text: str, spell: Callable[[Fact], str]) -> str:
    text, facts = locate_facts(text)
    for fact, start, end in reversed(facts):
        text = f"{text[:start]} {spell(fact)} {text[end:]}"
    return text
