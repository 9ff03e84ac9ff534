"""Facts and names of the expectation for which the answer has others of their kind.

An answer can omit what the question says. So facts of the question count only in two nearly equal sentences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.rules.facts import Fact, Weekday, are_rivals, is_met
from evalmeta.engine.raters.rules.finding import find_facts, locate_facts, without_facts
from evalmeta.engine.raters.rules.text import content_words, is_negative

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.raters.rules.ratings import Texts


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
    text, located = locate_facts(text)
    return {fact for fact, start, _ in located if _BOUNDED.search(text, max(0, start - _BEFORE), start)}


def _are_alike_but_facts(texts: Texts) -> bool:
    """Say whether two texts have nearly the same important words, in any order, and no negation."""
    if is_negative(texts.actual) != is_negative(texts.expected):
        return False
    own, others = (frozenset(content_words(without_facts(text))) for text in (texts.expected, texts.actual))
    return len(own & others) >= _NEARLY * max(len(own), len(others))
