"""What a question leaves open, and whether an answer gives it.

What an answer does instead of answering: it refuses, breaks down, is merely polite, or asks back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.rules import phrases, refusals
from evalmeta.engine.raters.rules.containment import changes
from evalmeta.engine.raters.rules.facts import find_facts, is_met, with_plain_numbers
from evalmeta.engine.raters.rules.ratings import failed, passed, undecided
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


_MOST: Final = 0.6
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
        "further instruction personal data about other with from this that your provide share legal medical "
        "financial time moment able regard conversation right leider helfen auskunft ayudar ayudarle respuesta "
        "pregunta répondre aider cette nicht eso atender esa esta solicitud petición sorry afraid unfortunately"
    )
)


def judge_breakdown(texts: Texts) -> Rating | None:
    """Fails an error message; where a refusal or trouble was expected it decides nothing."""
    if not refusals.is_breakdown(texts.actual) or refusals.is_breakdown(texts.expected):
        return None
    if refusals.is_expected_refusal(texts.expected):
        return undecided("a refusal was expected, and something broke")
    if _TROUBLE.search(texts.expected) or negations(texts.expected):
        return None
    return failed("breakdown", "an error message instead of an answer")


def judge_refusal(texts: Texts) -> Rating | None:
    """Passes a plain refusal that was expected, fails one that was not, and fails an answer instead of one."""
    refused = refusals.is_refusal(texts.actual)
    if refusals.is_expected_refusal(texts.expected):
        return _expected_refusal(texts, refused=refused)
    if not refused:
        return None
    if refusals.goes_on(texts.actual):
        return undecided("the answer refuses and then goes on")
    if negations(texts.expected) or "unable" in texts.expected.lower():
        return undecided("the answer refuses, and the expectation says no as well")
    return failed("refusal", "refusal instead of an answer")


def _expected_refusal(texts: Texts, *, refused: bool) -> Rating:
    if refused and refusals.asks_for_more(texts.expected):
        return undecided("a refusal was expected and given; the rest of the expectation needs an LLM rater")
    if refused and refusals.is_plain_refusal(texts.actual):
        if _other_matter(texts):
            return undecided("a refusal was expected and given, perhaps of something else")
        return passed("refusal", "a refusal was expected and given")
    if refused or refusals.is_deflection(texts.actual, complies=phrases.opening(texts.actual) == "yes"):
        return undecided("a refusal was expected; whether the answer is one is not plain")
    return failed("refusal", "a refusal was expected, the answer is none")


def _other_matter(texts: Texts) -> bool:
    refused = [
        word for word in content_words(refusals.refused_part(texts.actual)) if len(word) > _FEW and is_content(word)
    ]
    own = [word for word in refused if word not in _GENERAL]
    asked = [*content_words(texts.expected), *content_words(texts.utterance)]
    return bool(own) and not share_roots(own, asked)


def judge_courtesy(texts: Texts) -> Rating | None:
    """Passes a greeting, thanks or an apology that was described, fails mere courtesy instead of an answer."""
    expected = texts.expected.lower()
    if phrases.does_act(texts.expected, texts.actual):
        return passed("act", "the answer does what the expectation describes")
    if phrases.without_courtesy(texts.actual) or not phrases.without_courtesy(texts.expected):
        return None
    if any(act in expected for act in _ACTING) or len(raw_words(expected)) < _FEW or phrases.opening(texts.actual):
        return None
    return failed("courtesy", "courtesy or a promise instead of an answer")


def judge_question(texts: Texts) -> Rating | None:
    """Passes a question that was expected, fails another answer then, and a question back where none was."""
    if phrases.asks_for(texts.expected):
        return _expected_question(texts)
    if not phrases.is_question(texts.actual) or phrases.is_asking(texts.expected, []):
        return None
    if texts.described and not _INFORMING.search(texts.expected):
        return None
    if not texts.described and _all_said(texts):
        return None
    return failed("question", "a question instead of an answer")


def _expected_question(texts: Texts) -> Rating | None:
    asked = phrases.asked_part(texts.expected)
    is_one = not _ONLY.search(texts.expected) or " and " not in texts.actual
    if asked and is_one and phrases.is_asking(texts.actual, asked):
        return passed("question", f"the answer asks for it: {', '.join(asked)}")
    if phrases.is_asking(texts.actual, []):
        return None
    return failed("question", "a question was expected, the answer asks nothing")


def _all_said(texts: Texts) -> bool:
    return recall(content_words(texts.expected), content_words(texts.actual)) > _MOST
