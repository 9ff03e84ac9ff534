"""The rating of one answer without a model: rules decide clear cases, and everything else is undecided.

No similarity of texts distinguishes a right answer from one with a single wrong digit. So refusals and facts
decide first, and words pass an answer only if it says the expected ones and nothing else. An expectation can describe
the answer instead of quoting it, such as `The agent confirms the order`; words decide nothing then.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.interfaces import BEST_RATING
from evalmeta.engine.refusals import is_refusal
from evalmeta.model.run import Verdict
from evalmeta.rules_rater import ratings, refusals, text
from evalmeta.rules_rater.facts import Amount, Code, Weekday, full_text
from evalmeta.rules_rater.finding import find_facts, missing_facts, replaced_facts, with_keys
from evalmeta.rules_rater.names import replaced_names
from evalmeta.rules_rater.ratings import Texts, difference, failed, passed, quoted, undecided
from evalmeta.rules_rater.text import content_words, is_negative, words

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Rating
    from evalmeta.rules_rater.ratings import Cosine


_AGENT: Final = r"(?:(?:ai )?(?:agent|assistant|bot|chatbot|copilot|model|response|reply|answer))"
_MODAL: Final = r"(?:should|must|will|shall|can|cannot|would|could|needs?|has to|is able|is expected|\w+s)"
_ACTS: Final = (
    r"summari[sz]|list|provid|describ|explain|return|show|confirm|ask|offer|inform|tell|giv|greet|identif|mention|stat|say"
    r"|respond|repl|acknowledg|includ|contain|recommend|suggest|draft|apologi[sz]|thank|guid|prompt|clarif|verif|request"
    r"|advis|direct|escalat|transfer|cit|nam|compar|calculat|indicat|present|welcom|refus|declin"
)
_DOCUMENT: Final = (
    r"summar(?:y|i[sz]ation)|list(?:ing)?|overview|description|explanations?|confirmation|greeting|details?|information"
    r"|recommendations?|draft|suggestions?|comparison|apology|answer|reply|response|request|instructions|steps|question"
)
# "Thanks for waiting" is said to the user; "Thanks the user" describes the answer.
_THANKS: Final = r"thanks(?:\W*$|[,.!]| (?:for|to|a|so|very|again|in|and)\b)"
_DESCRIBED: Final = re.compile(
    rf"\W{{0,20}}(?:it (?:should|must|shall)\b|(?:the |an? )?{_AGENT}\b(?! is | was | has )[^.!?]{{0,30}}?\b{_MODAL}\b"
    rf"|(?:an? |the )?(?!(?:you|ou|m)[ry]\b)(?:[\w-]{{1,60}} ){{0,2}}?(?:{_DOCUMENT}) (?:of|about|for|that|with|on)\b"
    rf"|(?:(?:polite|friendly|correct|clear)(?:ly)? )?(?!{_THANKS})(?:(?:{_ACTS})(?:s|es|ies|ing|ying)|must)\b"
    r"|summari[sz]e\b|(?:der|die|el|la|l')\s?(?:agente?|assistente?|antwort|respuesta|réponse)\b)",
    re.IGNORECASE,
)
_EXAMPLE: Final = re.compile(r"(?i)\b(?:for (?:example|instance)|e\.g\.|such as|something like)\b.*", re.DOTALL)


def is_described(expected: str) -> bool:
    """Say whether an expectation describes the answer instead of quoting it."""
    return _DESCRIBED.match(expected) is not None


def without_examples(expected: str) -> str:
    """Return a description without its examples."""
    return _EXAMPLE.sub("", expected)


_PASS_FROM: Final = 3.0 / BEST_RATING
_SAID_FROM: Final = 0.6
_MAX_NUMBERS: Final = 300
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_ASKING: Final = re.compile(
    r"\?|\b(?:please|need|provide|tell|specify|ask|which|what|clarify|confirm|bitte|por favor|s'il vous|prego)\b"
    r"|ください|请|請|주세요|कृपया|يرجى",
    re.IGNORECASE,
)


def rate(expected: str, actual: str, *, utterance: str, cosine: Cosine | None = None) -> Rating:
    """Rate an answer without a model: 5 or 0 if a rule decides, the similarity x 5 if words decide.

    The first rule that applies decides. The similarity is the share of words that both texts have.
    """
    if max(len(expected), len(actual)) > limits.MAX_RATED_CHARS:
        return undecided(f"texts of more than {limits.MAX_RATED_CHARS} characters are not rated without an LLM rater")
    texts = _texts(*map(text.plain, (expected, actual, utterance)))
    if max(len(_NUMBER.findall(part)) for part in texts[:3]) > _MAX_NUMBERS:
        return undecided(f"texts with more than {_MAX_NUMBERS} numbers are not rated without an LLM rater")
    rating = next(filter(None, (rule(texts) for rule in _RULES)), None)
    return rating or _by_words(texts, cosine or _shared_words)


def _texts(expected: str, actual: str, utterance: str) -> Texts:
    described = is_described(expected)
    return Texts(without_examples(expected) if described else expected, actual, utterance, described)


def _same_text(texts: Texts) -> Rating | None:
    if not texts.actual.strip():
        return failed("empty", f"the answer is empty: expected {quoted(texts.expected)}, got nothing")
    own, others = ([*words(part), part.count("?"), *map(full_text, find_facts(part))] for part in texts[:2])
    is_same = own == others and bool(words(texts.expected))
    return passed("same", "the answer is the expected text") if is_same else None


def _breakdown(texts: Texts) -> Rating | None:
    if not refusals.BREAKDOWN.search(texts.actual) or refusals.TROUBLE.search(texts.expected):
        return None
    if refusals.is_expected_refusal(texts.expected):
        return undecided("a refusal was expected, but the answer reports an error")
    return failed("breakdown", f"expected an answer, got an error message: {quoted(texts.actual)}")


def _refusal(texts: Texts) -> Rating | None:
    if refusals.is_expected_refusal(texts.expected):
        return _expected_refusal(texts)
    if not is_refusal(texts.actual):
        return None
    if refusals.continues(texts.actual):
        return undecided("the answer refuses and then continues")
    if _says_expected(texts):
        return undecided("the answer refuses, and says what was expected")
    if is_negative(texts.expected):
        return undecided("the answer refuses, and the expectation is negative too")
    return failed("refusal", f"expected an answer, got a refusal: {quoted(texts.actual)}")


def _says_expected(texts: Texts) -> bool:
    """Say whether most words, or all of the facts, of the expectation are in the answer."""
    own, others = (set(content_words(with_keys(part))) for part in texts[:2])
    has_facts = bool(find_facts(texts.expected)) and not missing_facts(texts)
    return has_facts or len(own & others) >= _SAID_FROM * len(own)


def _expected_refusal(texts: Texts) -> Rating:
    if not is_refusal(texts.actual):
        if refusals.complies(texts.actual):
            return failed("refusal", f"expected a refusal, got an answer: {quoted(texts.actual)}")
        return undecided("a refusal was expected; it is not clear whether the answer is one")
    if refusals.asks_for_more(texts.expected):
        return undecided("a refusal was expected and given; the rest of the expectation needs an LLM rater")
    if refusals.is_plain_refusal(texts.actual, f"{texts.expected} {texts.utterance}"):
        return passed("refusal", "a refusal was expected and given")
    return undecided("a refusal was expected and given, but perhaps of another request or for another reason")


def _question(texts: Texts) -> Rating | None:
    if texts.described or _ASKING.search(texts.expected) or not text.is_question(texts.actual):
        return None
    return failed("question", f"expected an answer, got a question: {quoted(texts.actual)}")


def _facts(texts: Texts) -> Rating | None:
    wrong, others = replaced_facts(texts)
    if not wrong:
        return None
    are_days = all(isinstance(fact, Weekday) for fact in wrong)
    are_addresses = all(isinstance(fact, Code) and fact.form in {"mail", "link"} for fact in wrong)
    rule = "days" if are_days else "names" if are_addresses else "numbers"
    short, full = (
        [[spell(fact) for fact in facts] for facts in (wrong, others)] for spell in (attrgetter("text"), full_text)
    )
    has_measure = any(isinstance(fact, Amount) and fact.unit and fact.unit.factor for fact in wrong)
    return failed(rule, difference(rule, *(full if has_measure or {*short[0]} & {*short[1]} else short)))


def _names(texts: Texts) -> Rating | None:
    missing, extra = replaced_names(texts)
    return failed("names", difference("names", missing, extra)) if missing and extra else None


_RULES: Final = (_same_text, _breakdown, _refusal, _question, _facts, _names)


def _by_words(texts: Texts, cosine: Cosine) -> Rating:
    if texts.described:
        return undecided("the expectation describes the answer; judging that needs an LLM rater")
    expected, actual = (text.without_courtesy(part) or part for part in texts[:2])
    own, others = (content_words(with_keys(part)) for part in (expected, actual))
    others = [word for word in others if word not in text.HARMLESS or word in own]
    similarity = max(0.0, cosine(expected, actual))
    if own == others and expected.count("?") == actual.count("?") and similarity >= _PASS_FROM:
        explanation = f"the answer says the expected words and nothing else (similarity {similarity:.2f})"
        return ratings.rated("words", BEST_RATING * similarity, Verdict.PASS, explanation)
    missing = [full_text(fact) for fact in missing_facts(texts)] or [word for word in own if word not in others]
    remark = f"; missing from the answer: {ratings.listed(missing)}" if missing else "; the answer has other words too"
    return undecided(f"cannot be decided by words (similarity {similarity:.2f}){remark}")


def _shared_words(expected: str, actual: str) -> float:
    """Return the share of words that both texts have, 0 to 1 (Dice's coefficient)."""
    own, others = (set(words(with_keys(part))) for part in (expected, actual))
    return 2 * len(own & others) / max(1, len(own) + len(others))
