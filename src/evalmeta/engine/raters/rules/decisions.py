"""The rating of one answer without a model: rules decide clear cases, and everything else is undecided.

No similarity of texts distinguishes a right answer from one with a single wrong digit. So
refusals, numbers, days, names and opposites decide first. Words alone pass an answer only if
every important one is there, in order, and no other word could change the meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.raters.rules import containment, phrases, refusals, replies
from evalmeta.engine.raters.rules.facts import find_facts, with_plain_numbers
from evalmeta.engine.raters.rules.names import contradicted_none, find_days
from evalmeta.engine.raters.rules.ratings import (
    BEST,
    Texts,
    difference,
    failed,
    listed,
    passed,
    quoted,
    rated,
    undecided,
)
from evalmeta.engine.raters.rules.replacements import missing_facts, replaced_days, replaced_facts, replaced_names
from evalmeta.engine.raters.rules.retractions import is_taken_back, retraction
from evalmeta.engine.raters.rules.vocabulary import ENGLISH_DAYS, word_list
from evalmeta.engine.raters.rules.words import (
    content_words,
    is_english,
    negations,
    raw_words,
    recall,
    share_roots,
    words,
)
from evalmeta.engine.raters.rules.words import cosine as ngram_cosine
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.engine.raters.judge import Rating
    from evalmeta.engine.raters.rules.embedding import Cosine


_PASS_FROM: Final = 3.0 / BEST
_FAIL_BELOW: Final = 0.1
_MIN_WORDS: Final = 3
_MAX_FACTS: Final = 300
# "No." alone can be an answer before a number.
_NUMBER_SIGN: Final = re.compile(
    r"\b(order|case|ticket|invoice|room|claim|policy|booking|account|item|model|line|bestellung|rechnung|auftrag)"
    r"\s(?:no|nr)\.?\s?(?=\d)",
    re.IGNORECASE,
)
_TITLE_DOT: Final = re.compile(r"\b(Mr|Mrs|Ms|Dr|Prof|St)\.(?=\s)")
# Short names of weekdays and months are also words, so a preposition must be before them.
_SHORT_DAY: Final = re.compile(
    r"\b((?:on|in|for|by|this|next|every|until|since|from|to|last)\s)(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun|Jan|Feb|Apr"
    r"|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?(?!\s?\d)"
)
_LONG_DAYS: Final = {name[:3]: name.capitalize() for name in ENGLISH_DAYS}
_POINTING: Final = frozenset(word_list("it its it's that that's this they them one here there yes no sure done"))
_NAMING: Final = re.compile(
    r"\b(?:lists?|listing|contacts?|who|names?|owners?|members?|people|persons?)\b", re.IGNORECASE
)


def rate(expected: str, actual: str, *, utterance: str, cosine: Cosine | None = None) -> Rating:
    """Rate an answer without a model: 5 or 0 if a rule decides, the similarity x 5 if words decide.

    The expectation quotes an answer or describes one; a description that something is said counts as a quote
    of that. The first rule that applies decides. The similarity is the mean of the cosine and the recall of
    the expected words.
    """
    if max(len(expected), len(actual)) > limits.MAX_RATED_CHARS:
        return undecided(f"texts of more than {limits.MAX_RATED_CHARS} characters are not rated without an LLM rater")
    texts = _texts(_plain(expected), _plain(actual), _plain(utterance))
    if max(len(find_facts(text)) for text in texts[:3]) > _MAX_FACTS:
        return undecided(f"texts with more than {_MAX_FACTS} numbers are not rated without an LLM rater")
    rating = next(filter(None, (rule(texts) for rule in _RULES)), None) or _by_words(texts, cosine or ngram_cosine)
    if rating.verdict is Verdict.PASS and (words_back := retraction(expected, actual)):
        return undecided(f"the answer may take back what it says: {words_back!r}; otherwise, {rating.explanation}")
    return rating


def _plain(text: str) -> str:
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("\N{NO-BREAK SPACE}", " ")
    text = _TITLE_DOT.sub(r"\1", _NUMBER_SIGN.sub(r"\1 #", text))
    return _SHORT_DAY.sub(lambda found: found[1] + _LONG_DAYS[found[2][:3].lower()], text)


def _texts(expected: str, actual: str, utterance: str) -> Texts:
    described = phrases.is_described(expected)
    stated = phrases.stated_part(expected) if described else ""
    if stated and not refusals.is_expected_refusal(expected):
        return Texts(stated, actual, utterance, described=False, stated=True)
    return Texts(phrases.without_examples(expected) if described else expected, actual, utterance, described)


def _same_text(texts: Texts) -> Rating | None:
    if not texts.actual.strip():
        return failed("empty", f"the answer is empty: expected {quoted(texts.expected)}, got nothing")
    expected_words = words(texts.expected)
    is_same = expected_words == words(texts.actual) and texts.expected.count("?") == texts.actual.count("?")
    if not expected_words or not is_same:
        return None
    facts = [[fact.full_text for fact in find_facts(text)] for text in texts[:2]]
    return passed("same", "the answer is the expected text") if facts[0] == facts[1] else None


def _retraction(texts: Texts) -> Rating | None:
    words_back = "" if texts.described else retraction(texts.expected, texts.actual)
    if not words_back or not is_taken_back(texts.expected, texts.actual):
        return None
    return failed("retraction", f"retraction: the answer says what was expected, then takes it back: {words_back!r}")


def _none_and_some(expected: str, actual: str) -> str:
    if none := contradicted_none(expected, actual):
        return f"expected no {none}, got some"
    some = contradicted_none(actual, expected)
    return f"expected some {some}, got none" if some else ""


def _numbers(texts: Texts) -> Rating | None:
    none = _none_and_some(texts.expected, texts.actual)
    if none:
        return failed("numbers", f"numbers differ: {none}")
    uncounted = replies.left_uncounted(texts)
    if uncounted:
        return failed("numbers", f"numbers differ: expected {uncounted}, got none")
    wrong, found = replaced_facts(texts)
    if not wrong:
        return None
    if all(fact.kind == "address" for fact in wrong):
        return failed("names", difference("names", [fact.text for fact in wrong], [fact.text for fact in found]))
    short = [fact.text for fact in wrong], [fact.text for fact in found]
    if frozenset(short[0]).isdisjoint(short[1]) and not any(fact.unit and fact.unit.factor for fact in wrong):
        return failed("numbers", difference("numbers", *short))
    full = [fact.full_text for fact in wrong], [fact.full_text for fact in found]
    return failed("numbers", difference("numbers", *full))


def _days(texts: Texts) -> Rating | None:
    missing, extra = ([], []) if texts.described else replaced_days(texts)
    return failed("days", difference("days", missing, extra)) if missing and extra else None


def _names(texts: Texts) -> Rating | None:
    if texts.described and _NAMING.search(texts.expected):
        return None
    missing, extra = replaced_names(texts)
    return failed("names", difference("names", missing, extra)) if missing and extra else None


def _opposites(texts: Texts) -> Rating | None:
    openings = [phrases.opening(texts.expected), phrases.opening(texts.actual)]
    if sorted(openings) == ["no", "yes"]:
        return failed("opposite", "opposite meaning: expected {}, got {}".format(*openings))
    if replies.is_yes_or_no(texts.expected, texts.actual):
        return passed("same", f"the answer starts with {texts.expected.strip()!r}, as expected")
    if texts.described:
        return None
    wrong = containment.contrary_words(texts.expected, texts.actual)
    return failed("opposite", f"opposite meaning: {wrong}") if wrong else None


def _roles(texts: Texts) -> Rating | None:
    swapped = "" if texts.described else containment.swapped_roles(texts.expected, texts.actual)
    return failed("roles", f"roles swapped: {swapped} have changed places") if swapped else None


def _parts(texts: Texts) -> Rating | None:
    missing = "" if texts.described else containment.left_out(texts.expected, phrases.without_courtesy(texts.actual))
    if not missing or frozenset(content_words(with_plain_numbers(texts.utterance))).issuperset(missing.split(", ")):
        return None
    return failed("partial", f"the answer ends early; missing from the answer: {missing}")


_RULES: Final[tuple[Callable[[Texts], Rating | None], ...]] = (
    *(
        _same_text,
        _retraction,
        replies.judge_breakdown,
        replies.judge_refusal,
        replies.judge_courtesy,
        replies.judge_question,
    ),
    *(_numbers, _days, _names, _opposites, _roles, _parts),
)


def _by_words(texts: Texts, cosine: Cosine) -> Rating:
    if texts.described:
        return undecided("the expectation describes the answer; judging that needs an LLM rater")
    expected, actual = (phrases.without_courtesy(text) or text for text in (texts.expected, texts.actual))
    expected_words = content_words(with_plain_numbers(expected))
    actual_words = content_words(with_plain_numbers(actual))
    similarity = (max(0.0, cosine(expected, actual)) + recall(expected_words, actual_words)) / 2
    remark = f"similarity {similarity:.2f}"
    if similarity < _FAIL_BELOW and _is_off_topic(texts, expected_words, actual_words):
        explanation = f"off topic: no word in common with the expectation or the question ({remark})"
        return rated("topic", BEST * similarity, Verdict.FAILURE, explanation)
    reason = _equivalence(texts._replace(expected=expected, actual=actual), expected_words, actual_words)
    if reason:
        return passed("words", reason)
    found = list(containment.doubts(expected, actual))
    missing = missing_facts(texts)
    if missing and not any(each.startswith(containment.MISSING) for each in found):
        found.append(f"{containment.MISSING}: {listed([fact.full_text for fact in missing])}")
    if similarity < _PASS_FROM or found:
        return undecided("; ".join((f"cannot be decided by words ({remark})", *found)))
    explanation = f"every important word of the expectation is in the answer, in order ({remark})"
    return rated("words", BEST * similarity, Verdict.PASS, explanation)


def _equivalence(texts: Texts, expected_words: list[str], actual_words: list[str]) -> str:
    """Return why an answer in other words means the same; empty if it may not."""
    if replies.is_terse(texts, expected_words, actual_words):
        return "the answer is exactly what the question asks for"
    if containment.reversed_statement(texts.expected, texts.actual):
        return "the answer is the expected statement in reverse"
    if replies.fills_in(texts, expected_words, actual_words) and not missing_facts(texts):
        return "the answer has what the question asks for, in the words of the question"
    return ""


def _has_facts(text: str) -> bool:
    return bool(find_facts(text) or find_days(text))


def _is_off_topic(texts: Texts, expected_words: list[str], actual_words: list[str]) -> bool:
    are_english = is_english(texts.expected) and is_english(texts.actual)
    if not are_english or len(expected_words) < _MIN_WORDS or len(actual_words) < _MIN_WORDS - 1 or texts.stated:
        return False
    if _has_facts(texts.expected) and _has_facts(texts.actual):
        return False
    if negations(texts.expected) or negations(texts.actual) or not _POINTING.isdisjoint(raw_words(texts.actual)):
        return False
    contrary = containment.contraries(raw_words(texts.expected), raw_words(texts.actual))
    return not contrary and not share_roots(actual_words, [*expected_words, *content_words(texts.utterance)])
