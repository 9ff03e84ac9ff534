"""Where the facts of a text are, and facts of the expectation for which the answer has others of their kind.

The finders of each kind search what earlier ones left over. An answer can omit what the question says. So facts of the
question count only in two nearly equal sentences.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from evalmeta.rules_rater import amounts, codes, dates
from evalmeta.rules_rater.facts import Fact, Weekday, are_rivals, is_met, key
from evalmeta.rules_rater.text import CACHED_TEXTS, content_words, is_negative, with_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.rules_rater.ratings import Texts


_FINDERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Fact | None]], ...]] = (
    *codes.FINDERS[:2],
    *dates.DATE_FINDERS,
    *dates.TIME_FINDERS,
    *codes.FINDERS[2:],
    *amounts.FINDERS,
)
_WORD_FINDERS: Final = (*codes.FINDERS[:2], *dates.DATE_FINDERS[-4:])
_DIGIT: Final = re.compile(r"\d")
# Long runs without a blank hold no fact that a person could compare; some patterns are slow for them.
_LONG_RUN: Final = re.compile(r"[!-~]{400,}|[\d.,]{40,}")


_Located = tuple[Fact, int, int]


@lru_cache(CACHED_TEXTS)
def _locate_facts(text: str) -> tuple[str, tuple[_Located, ...]]:
    """Return a text with its numbers in digits, and its facts in order, each with its start and end.

    `1,250`, `1250.00` and `1.250,00` are 1250, `2k` is 2000, `three` is 3, `3:30 pm` and `15:30`
    are 15:30, `14 May 2024` and `2024-05-14` are one day; codes such as `ORD-17` are upper case.
    """
    text = with_digits(text)
    rest = text = _LONG_RUN.sub(" ", text)
    facts: list[_Located] = []
    for pattern, make in _FINDERS if _DIGIT.search(rest) else _WORD_FINDERS:
        matches = [(match, fact) for match in pattern.finditer(rest) if (fact := make(match))]
        facts += ((fact, *match.span()) for match, fact in matches)
        for match, _ in matches:
            rest = f"{rest[: match.start()]}{' ' * len(match[0])}{rest[match.end() :]}"
    return text, tuple(sorted(facts, key=itemgetter(1)))


def find_facts(text: str) -> tuple[Fact, ...]:
    """Return the distinct facts of a text in order."""
    return tuple(dict.fromkeys(fact for fact, _, _ in _locate_facts(text)[1]))


@lru_cache(CACHED_TEXTS)
def with_keys(text: str) -> str:
    """Return a text with one word for equal facts, so that its words can be compared."""
    return _rewritten(text, key)


@lru_cache(CACHED_TEXTS)
def without_facts(text: str) -> str:
    """Return a text without its facts."""
    return _rewritten(text, lambda _: "")


def _rewritten(text: str, spell: Callable[[Fact], str]) -> str:
    text, facts = _locate_facts(text)
    for fact, start, end in reversed(facts):
        text = f"{text[:start]} {spell(fact)} {text[end:]}"
    return text


_NEARLY: Final = 0.8
_BEFORE: Final = 40  # characters in which a bound is searched for
# A bound such as `at least` or `before` can be said in another way.
_BOUND: Final = re.compile(
    r"\b(?:before|after|until|vor|nach|antes del?|después del?|avant|après|at (?:least|most)|up to|under|below|over"
    r"|above|(?:more|less|fewer) than|m[ai]ximum|mindestens|höchstens|bis zu|mehr als|al menos|más de|hasta|au moins"
    r"|plus de|jusqu'à|pelo menos|até)\b",
    re.IGNORECASE,
)
_BOUNDED: Final = re.compile(rf"{_BOUND.pattern}\s(?:the\s)?\W?$", re.IGNORECASE)


def replaced_facts(texts: Texts) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that the answer replaces, and those that it has instead."""
    missing, expected = missing_facts(texts), find_facts(texts.expected)
    if not _BOUND.search(texts.actual):
        missing = [fact for fact in missing if fact not in _bounded_facts(texts.expected)]
    extra = [fact for fact in find_facts(texts.actual) if not _is_among(fact, expected)]
    are_alike = _are_alike_but_facts(texts)
    if not are_alike:
        asked = find_facts(texts.utterance)
        missing, extra = ([fact for fact in facts if not _is_among(fact, asked)] for facts in (missing, extra))
    if is_negative(texts.expected) != is_negative(texts.actual):
        missing = [fact for fact in missing if not isinstance(fact, Weekday)]  # open on Saturday, closed on Sunday
    pairs = [(fact, other) for fact in missing for other in extra if are_rivals(fact, other, are_alike=are_alike)]
    replaced, replacing = {fact for fact, _ in pairs}, {other for _, other in pairs}
    return [fact for fact in missing if fact in replaced], [other for other in extra if other in replacing]


def missing_facts(texts: Texts) -> list[Fact]:
    """Return the expected facts that the answer does not have."""
    actual = find_facts(texts.actual)
    return [fact for fact in find_facts(texts.expected) if not any(is_met(fact, other) for other in actual)]


def _is_among(fact: Fact, others: Sequence[Fact]) -> bool:
    return any(is_met(other, fact) for other in others)


def _bounded_facts(text: str) -> set[Fact]:
    text, located = _locate_facts(text)
    return {fact for fact, start, _ in located if _BOUNDED.search(text, max(0, start - _BEFORE), start)}


def _are_alike_but_facts(texts: Texts) -> bool:
    """Say whether two texts have nearly the same important words, in any order, and no negation."""
    if is_negative(texts.actual) != is_negative(texts.expected):
        return False
    own, others = (frozenset(content_words(without_facts(text))) for text in (texts.expected, texts.actual))
    return len(own & others) >= _NEARLY * max(len(own), len(others))
