"""What a question leaves open, and whether an answer gives it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.offline import phrases
from evalmeta.engine.raters.offline.containment import changes
from evalmeta.engine.raters.offline.facts import find_facts, is_met, with_plain_numbers
from evalmeta.engine.raters.offline.vocabulary import DOUBTS, HARMLESS, NEUTRAL, word_list
from evalmeta.engine.raters.offline.words import content_words, missing_words, negations, raw_words

if TYPE_CHECKING:
    from evalmeta.engine.raters.offline.decisions import Texts

__all__ = ["fills_in", "is_terse", "is_yes_or_no", "left_uncounted"]

# Of `Was it late?` an answer may not take `late`; of `When was it sent?` it may take all.
_OPEN: Final = re.compile(
    r"^\W*(?:(?:and|so|hi|hello|please)\W+)?(?:(?:what|where|when)(?:'s|\b)|which\b"
    r"|(?:at|on|by|in|from|to|for) (?:what|which|whom)\b|how (?:much|many|long|old|far|often|big|large|high|tall)\b)",
    re.IGNORECASE,
)
# Of `Who bought it?` the answer's order of words tells who did; of `What is it?` it does not.
_BEING: Final = re.compile(r"^\W*(?:and |so )?(?:what|where|when)(?:'s| is| are)\b", re.IGNORECASE)
_CHOICE: Final = re.compile(r"\b(?:or|and)\b|[.;]\s", re.IGNORECASE)
_COUNTING: Final = re.compile(r"\bhow (?:much|many)\b", re.IGNORECASE)
_FEW: Final = 3
# What counts without a number.
_COUNTS: Final = frozenset(
    word_list(
        "a an one no none nothing zero all every each both half quarter third double triple single pair couple few "
        "several many some any free same dozen hundred hundreds thousand thousands million millions unlimited once "
        "twice only"
    )
)


def is_yes_or_no(expected: str, actual: str) -> bool:
    """Says whether a bare yes or no was expected, and the answer opens with it and takes nothing of it back."""
    wanted = phrases.opening(expected)
    if len(raw_words(expected)) != 1 or not wanted or phrases.opening(actual) != wanted or "?" in actual:
        return False
    if find_facts(actual) or not {"yes", "wait"}.isdisjoint(raw_words(actual)[1:]):
        return False
    return DOUBTS.isdisjoint(raw_words(actual)) and (wanted == "no" or not negations(actual))


def is_terse(texts: Texts, wanted: list[str], said: list[str]) -> bool:
    """Says whether an answer is just the words of the model answer that the question does not have."""
    own = _own(texts, wanted)
    return bool(own) and said == own and len(own) < len(wanted) and not negations(texts.expected)


def fills_in(texts: Texts, wanted: list[str], said: list[str]) -> bool:
    """Says whether an answer has what the question left open, and besides only words of the question.

    What the model answer and the answer share must stand in one order. Only a question
    that asks for one thing, such as `When ...?`, vouches for its own words.
    """
    if not _OPEN.match(texts.utterance) or _CHOICE.search(texts.utterance) or "?" in texts.actual:
        return False
    own = _own(texts, wanted)
    if not own or missing_words(own, said) or any(map(negations, texts[:3])):
        return False
    if not _BEING.match(texts.utterance) and any(word.isalpha() for word in own):
        return False
    known = {*wanted, *content_words(with_plain_numbers(texts.utterance)), *HARMLESS, *NEUTRAL, "in", "on"}
    if not known.issuperset(said) or _shared(wanted, said) != _shared(said, wanted):
        return False
    return not changes(texts.expected, texts.actual)


def _own(texts: Texts, wanted: list[str]) -> list[str]:
    asked = frozenset(content_words(with_plain_numbers(texts.utterance))) if texts.utterance else frozenset()
    return [word for word in wanted if word not in asked] if asked else []


def _shared(some: list[str], others: list[str]) -> list[str]:
    return [word for word in some if word in others]


def left_uncounted(texts: Texts) -> str:
    """Names the number that `How many ...?` asks for when an answer has no number at all; else empty.

    Small numbers may be said in other words: nothing, a single one, both.
    """
    if texts.described or not _COUNTING.search(texts.utterance) or find_facts(texts.actual):
        return ""
    asked = find_facts(texts.utterance)
    wanted = [fact for fact in find_facts(texts.expected) if not is_met(fact, asked)]
    if not wanted or any(fact.kind != "number" or float(fact.text) < _FEW for fact in wanted):
        return ""
    return wanted[0].full_text if _COUNTS.isdisjoint(raw_words(texts.actual)) else ""
