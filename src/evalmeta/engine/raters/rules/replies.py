"""How an answer responds: it gives what the question asks for, refuses, fails, is only polite, or asks a question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.rules import phrases, refusals
from evalmeta.engine.raters.rules.acts import does_act
from evalmeta.engine.raters.rules.containment import changes
from evalmeta.engine.raters.rules.facts import find_facts, is_met, with_plain_numbers
from evalmeta.engine.raters.rules.ratings import failed, passed, quoted, undecided
from evalmeta.engine.raters.rules.vocabulary import DOUBTS, HARMLESS, NEUTRAL, word_list
from evalmeta.engine.raters.rules.words import (
    content_words,
    is_content,
    missing_words,
    negations,
    raw_words,
    recall,
    share_roots,
)

if TYPE_CHECKING:
    from evalmeta.engine.raters.judge import Rating
    from evalmeta.engine.raters.rules.ratings import Texts


# Questions whose words an answer can repeat: all of `When was it sent?`, but not `late` of `Was it late?`.
_OPEN: Final = re.compile(
    r"^\W*(?:(?:and|so|hi|hello|please)\W+)?(?:(?:what|where|when)(?:'s|\b)|which\b"
    r"|(?:at|on|by|in|from|to|for) (?:what|which|whom)\b|how (?:much|many|long|old|far|often|big|large|high|tall)\b)",
    re.IGNORECASE,
)
# Questions for which the order of the answer's words does not matter: `What is it?`, but not `Who bought it?`.
_BEING: Final = re.compile(r"^\W*(?:and |so )?(?:what|where|when)(?:'s| is| are)\b", re.IGNORECASE)
_CHOICE: Final = re.compile(r"\b(?:or|and)\b|[.;]\s", re.IGNORECASE)
_COUNTING: Final = re.compile(r"\bhow (?:much|many)\b", re.IGNORECASE)
_MIN_COUNT: Final = 3
# Words that state a quantity without a number.
_COUNTS: Final = frozenset(
    word_list(
        "a an one no none nothing zero all every each both half quarter third double triple single pair couple few "
        "several many some any free same dozen hundred hundreds thousand thousands million millions unlimited once "
        "twice only"
    )
)
_SAID_FROM: Final = 0.6
_TROUBLE: Final = re.compile(
    r"\b(?:error|down|outage|maintenance|unavailable|problem|issue|fail\w*|trouble|invalid|cannot|unable)\b",
    re.IGNORECASE,
)
_ONLY: Final = re.compile(r"\b(?:only|just|nothing but)\b", re.IGNORECASE)
_INFORMING: Final = re.compile(
    r"\b(?:summar|list|overview|descri|explain|explanation|provid|show|confirm|stat|details?|information|breakdown"
    r"|return|mention|nam|inform|tell|instructions|steps|calculat|compar|includ|contain)",
    re.IGNORECASE,
)
_ACTING: Final = word_list("transfer hand escalat connect forward wait human help greet thank welcom wish bye farewell")
_GENERAL: Final = frozenset(
    word_list(
        "help assist answer question request topic kind such information detail matter thing anything something "
        "further instruction personal data about other with from this that your provide share legal medical financial "
        "time moment able regard conversation right leider helfen auskunft ayudar ayudarle respuesta pregunta "
        "répondre aider cette nicht eso atender esa esta solicitud petición sorry afraid unfortunately"
    )
)


def is_yes_or_no(expected: str, actual: str) -> bool:
    """Say whether a bare yes or no was expected, and the answer starts with it and does not retract it."""
    opening = phrases.opening(expected)
    if len(raw_words(expected)) != 1 or not opening or phrases.opening(actual) != opening or "?" in actual:
        return False
    if find_facts(actual) or not {"yes", "wait"}.isdisjoint(raw_words(actual)[1:]):
        return False
    return DOUBTS.isdisjoint(raw_words(actual)) and (opening == "no" or not negations(actual))


def is_terse(texts: Texts, expected_words: list[str], actual_words: list[str]) -> bool:
    """Say whether an answer has only the expected words that are not in the question."""
    new = _new_words(texts, expected_words)
    return bool(new) and actual_words == new and len(new) < len(expected_words) and not negations(texts.expected)


def fills_in(texts: Texts, expected_words: list[str], actual_words: list[str]) -> bool:
    """Say whether an answer has what the question asks for, and otherwise only words of the question, in order.

    The words of the question are trusted only if it asks for one thing, such as `When ...?`.
    """
    if not _OPEN.match(texts.utterance) or _CHOICE.search(texts.utterance) or "?" in texts.actual:
        return False
    new = _new_words(texts, expected_words)
    if not new or missing_words(new, actual_words) or any(map(negations, texts[:3])):
        return False
    if not _BEING.match(texts.utterance) and any(word.isalpha() for word in new):
        return False
    known = {*expected_words, *content_words(with_plain_numbers(texts.utterance)), *HARMLESS, *NEUTRAL, "in", "on"}
    common = [word for word in expected_words if word in actual_words]
    in_order = common == [word for word in actual_words if word in expected_words]
    return in_order and known.issuperset(actual_words) and not changes(texts.expected, texts.actual)


def _new_words(texts: Texts, expected_words: list[str]) -> list[str]:
    """Return the expected words that are not in the question; none without a question."""
    asked = frozenset(content_words(with_plain_numbers(texts.utterance))) if texts.utterance else frozenset()
    return [word for word in expected_words if word not in asked] if asked else []


def left_uncounted(texts: Texts) -> str:
    """Return the number that `How many ...?` asks for if the answer has no number at all; else an empty text.

    Small numbers do not count, because an answer can express them in words: nothing, a single one, both.
    """
    if texts.described or not _COUNTING.search(texts.utterance) or find_facts(texts.actual):
        return ""
    asked = find_facts(texts.utterance)
    facts = [fact for fact in find_facts(texts.expected) if not is_met(fact, asked)]
    if not facts or any(fact.kind != "number" or float(fact.text) < _MIN_COUNT for fact in facts):
        return ""
    return facts[0].full_text if _COUNTS.isdisjoint(raw_words(texts.actual)) else ""


def judge_breakdown(texts: Texts) -> Rating | None:
    """Fail an error message, unless a refusal or trouble was expected."""
    if not refusals.is_breakdown(texts.actual) or refusals.is_breakdown(texts.expected):
        return None
    if refusals.is_expected_refusal(texts.expected):
        return undecided("a refusal was expected, but the answer reports an error")
    if _TROUBLE.search(texts.expected) or negations(texts.expected):
        return None
    return failed("breakdown", f"expected an answer, got an error message: {quoted(texts.actual)}")


def judge_refusal(texts: Texts) -> Rating | None:
    """Pass a plain refusal that was expected; fail an unexpected one, and an answer instead of one."""
    refused = refusals.is_refusal(texts.actual)
    if refusals.is_expected_refusal(texts.expected):
        return _expected_refusal(texts, refused=refused)
    if not refused:
        return _non_answer(texts)
    if refusals.continues(texts.actual):
        return undecided("the answer refuses and then continues")
    if negations(texts.expected) or "unable" in texts.expected.lower():
        return undecided("the answer refuses, and the expectation is negative too")
    return failed("refusal", f"expected an answer, got a refusal: {quoted(texts.actual)}")


def _non_answer(texts: Texts) -> Rating | None:
    if not refusals.is_non_answer(texts.actual) or negations(texts.expected) or refusals.is_non_answer(texts.expected):
        return None
    if recall(content_words(texts.expected), content_words(texts.actual)) >= _SAID_FROM:
        return None
    return failed("refusal", f"expected an answer, got none: {quoted(texts.actual)}")


def _expected_refusal(texts: Texts, *, refused: bool) -> Rating:
    if refused and refusals.asks_for_more(texts.expected):
        return undecided("a refusal was expected and given; the rest of the expectation needs an LLM rater")
    if refused and refusals.is_plain_refusal(texts.actual):
        if _refuses_something_else(texts):
            return undecided("a refusal was expected and given, but perhaps of something else")
        return passed("refusal", "a refusal was expected and given")
    if refused or refusals.is_deflection(texts.actual, complies=phrases.opening(texts.actual) == "yes"):
        return undecided("a refusal was expected; it is not clear whether the answer is one")
    return failed("refusal", f"expected a refusal, got an answer: {quoted(texts.actual)}")


def _refuses_something_else(texts: Texts) -> bool:
    refused = content_words(refusals.refused_part(texts.actual))
    specific = [word for word in refused if len(word) > _MIN_COUNT and is_content(word) and word not in _GENERAL]
    asked = [*content_words(texts.expected), *content_words(texts.utterance)]
    return bool(specific) and not share_roots(specific, asked)


def judge_courtesy(texts: Texts) -> Rating | None:
    """Pass a greeting, thanks or an apology that was described; fail courtesy instead of an answer."""
    expected = texts.expected.lower()
    if does_act(texts.expected, texts.actual):
        return passed("act", "the answer does what the expectation describes")
    if phrases.without_courtesy(texts.actual) or not phrases.without_courtesy(texts.expected):
        return None
    is_act = any(act in expected for act in _ACTING)
    if is_act or len(raw_words(expected)) < _MIN_COUNT or phrases.opening(texts.actual):
        return None
    return failed("courtesy", f"expected an answer, got only courtesy or a promise: {quoted(texts.actual)}")


def judge_question(texts: Texts) -> Rating | None:
    """Pass a question that was expected; fail another answer then, and an unexpected question."""
    if phrases.asks_for(texts.expected):
        return _expected_question(texts)
    if not phrases.is_question(texts.actual) or phrases.is_asking(texts.expected, []):
        return None
    if texts.described and not _INFORMING.search(texts.expected):
        return None
    if not texts.described and recall(content_words(texts.expected), content_words(texts.actual)) > _SAID_FROM:
        return None
    return failed("question", f"expected an answer, got a question: {quoted(texts.actual)}")


def _expected_question(texts: Texts) -> Rating | None:
    asked = phrases.asked_part(texts.expected)
    is_one = not _ONLY.search(texts.expected) or " and " not in texts.actual
    if asked and is_one and phrases.is_asking(texts.actual, asked):
        return passed("question", f"the answer asks for {', '.join(asked)}")
    if phrases.is_asking(texts.actual, []):
        return None
    return failed("question", f"expected a question, but the answer asks nothing: {quoted(texts.actual)}")
