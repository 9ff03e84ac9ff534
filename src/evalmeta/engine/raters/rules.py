"""The offline rater: rules that decide what is plain, and `undecided` for all the rest.

No similarity of texts tells a right answer from a wrong one that differs in one
digit. So numbers, names and refusals decide first; likeness alone passes an answer
only when every word that matters is there, in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.raters.facts import find_names, find_numbers, with_plain_numbers, without_bounds
from evalmeta.engine.raters.phrases import (
    asks_for_more,
    goes_on,
    has_exception,
    is_deflection,
    is_described,
    is_expected_refusal,
    is_question,
    is_refusal,
)
from evalmeta.engine.raters.rater import Rating
from evalmeta.engine.raters.words import content_words, cosine, is_english, missing_words, negations, recall, words
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from evalmeta.engine.raters.rater import Rater, Rubric
    from evalmeta.model.settings import RulesRater

__all__ = ["NAME", "Rules", "bind_rules", "rate"]

NAME: Final = "rules"
_BEST: Final = 5.0
_PASS_FROM: Final = 3.0 / _BEST
_FAIL_BELOW: Final = 0.1
_COUNTS: Final = frozenset(str(number) for number in range(13))
_EVIDENCE: Final = 5


_RATED: Final = frozenset({"bot_response_rating", "response_match"})


class Rules:
    """The offline rater: it rates responses against expected ones, and no other quality of theirs."""

    def __call__(self, rubric: Rubric) -> Rating | None:
        """Gives what `rate` says; None for a metric that no rule can judge."""
        if rubric.metric not in _RATED:
            return None
        return rate(rubric.expected, rubric.actual, utterance=rubric.utterance)

    async def close(self) -> None:
        """Has nothing to let go of."""


def bind_rules(settings: RulesRater, *, root: Path) -> Rater:  # noqa: ARG001 - the hook is imported from there
    """Makes the offline rater."""
    return Rules()


class _Texts(NamedTuple):
    expected: str
    actual: str
    utterance: str
    described: bool


def rate(expected: str, actual: str, *, utterance: str) -> Rating:
    """Rates an answer without a model: 5 and 0 for what a rule decides, the likeness x 5 for what words decide.

    The expectation may be a model answer or describe one. The first rule that fires
    decides: the same text, refusals, numbers, names; then the words. Likeness is the
    mean of the cosine of character n-grams and the recall of the expected words. A
    negation on one side, an exception, a fact that is missing and a question back keep
    likeness from passing. The explanation names the rule and its evidence.
    """
    if max(len(expected), len(actual)) > limits.MAX_RATED_CHARS:
        return _undecided(f"texts of more than {limits.MAX_RATED_CHARS} characters are not rated without an LLM rater")
    texts = _Texts(_plain(expected), _plain(actual), _plain(utterance), is_described(_plain(expected)))
    for rule in _RULES:
        rating = rule(texts)
        if rating:
            return rating
    return _by_words(texts)


def _plain(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _same_text(texts: _Texts) -> Rating | None:
    if not texts.actual.strip():
        return _failed("the answer is empty")
    same = " ".join(words(texts.expected)) == " ".join(words(texts.actual))
    return _passed("the answer is the expected text") if same and words(texts.expected) else None


def _refusals(texts: _Texts) -> Rating | None:
    refused = is_refusal(texts.actual)
    if is_expected_refusal(texts.expected):
        return _expected_refusal(texts, refused=refused)
    if not refused:
        return None
    if goes_on(texts.actual):
        return _undecided("the answer refuses and then goes on")
    return _failed("refusal instead of an answer")


def _expected_refusal(texts: _Texts, *, refused: bool) -> Rating:
    if refused and asks_for_more(texts.expected):
        return _undecided("a refusal was expected and given; the rest of the expectation needs an LLM rater")
    if refused and not goes_on(texts.actual):
        return _passed("a refusal was expected and given")
    if refused or is_deflection(texts.actual):
        return _undecided("a refusal was expected; whether the answer is one is not plain")
    return _failed("a refusal was expected, the answer is none")


def _numbers(texts: _Texts) -> Rating | None:
    missing, extra = _number_gap(texts)
    return _failed(_difference("numbers", missing, extra)) if missing and extra else None


def _names(texts: _Texts) -> Rating | None:
    missing, extra = _name_gap(texts)
    return _failed(_difference("names", missing, extra)) if missing and extra else None


_RULES: Final[tuple[Callable[[_Texts], Rating | None], ...]] = (_same_text, _refusals, _numbers, _names)


def _number_gap(texts: _Texts) -> tuple[list[str], list[str]]:
    asked = frozenset(find_numbers(texts.utterance))
    known = asked | (_COUNTS if texts.described else frozenset())
    found = find_numbers(texts.actual)
    missing = [number for number in find_numbers(without_bounds(texts.expected)) if number not in {*known, *found}]
    expected = frozenset(find_numbers(texts.expected))
    return missing, [number for number in found if number not in expected | asked]


def _name_gap(texts: _Texts) -> tuple[list[str], list[str]]:
    if not (is_english(texts.expected) and is_english(texts.actual)):
        return [], []
    said = frozenset(words(texts.actual))
    asked = frozenset(words(texts.utterance))
    wanted = find_names(texts.expected)
    missing = {key: name for key, name in wanted.items() if not _is_said(key, said)}
    if texts.described and len(missing) < len(wanted):
        return [], []
    if not texts.described:
        missing = {key: name for key, name in missing.items() if not _is_said(key, asked)}
    known = frozenset(words(texts.expected)) | asked
    return list(missing.values()), [name for key, name in find_names(texts.actual).items() if not _is_said(key, known)]


def _is_said(name: str, said: frozenset[str]) -> bool:
    return said.issuperset(words(name))


def _by_words(texts: _Texts) -> Rating:
    if texts.described:
        return _undecided("the expectation describes the answer; judging that needs an LLM rater")
    expected, actual = with_plain_numbers(texts.expected), with_plain_numbers(texts.actual)
    wanted, said = content_words(expected), content_words(actual)
    likeness = (cosine(expected, actual) + recall(wanted, said)) / 2
    remark = f"likeness {likeness:.2f}"
    if likeness < _FAIL_BELOW and is_english(texts.expected) and is_english(texts.actual):
        return _rating(
            _BEST * likeness, Verdict.FAILURE, f"the answer has next to nothing of the expected text: {remark}"
        )
    doubts = [*_doubts(texts), *_missing(wanted, said)]
    if likeness < _PASS_FROM or doubts:
        return _undecided("; ".join((f"the words do not decide: {remark}", *doubts)))
    return _rating(_BEST * likeness, Verdict.PASS, f"every word that matters is there, in order: {remark}")


def _doubts(texts: _Texts) -> Iterable[str]:
    if negations(texts.expected) != negations(texts.actual):
        yield "warning: one side has a negation that the other has not"
    if has_exception(texts.actual) and not has_exception(texts.expected):
        yield "the answer makes an exception"
    if is_question(texts.actual) and not is_question(texts.expected):
        yield "the answer only asks back"
    numbers, names = _number_gap(texts)[0], _name_gap(texts)[0]
    if numbers or names:
        yield f"missing: {_listed([*numbers, *names])}"


def _missing(wanted: list[str], said: list[str]) -> Iterable[str]:
    missing = missing_words(wanted, said)
    if missing:
        yield f"not found in this order: {_listed(missing)}"


def _difference(what: str, missing: list[str], extra: list[str]) -> str:
    return f"{what} differ: expected {_listed(missing)}, got {_listed(extra)}"


def _listed(items: list[str]) -> str:
    return ", ".join(items[:_EVIDENCE]) + (", …" if len(items) > _EVIDENCE else "")


def _passed(explanation: str) -> Rating:
    return _rating(_BEST, Verdict.PASS, explanation)


def _failed(explanation: str) -> Rating:
    return _rating(0.0, Verdict.FAILURE, explanation)


def _undecided(explanation: str) -> Rating:
    return _rating(None, Verdict.UNDECIDED, explanation)


def _rating(score: float | None, verdict: Verdict, explanation: str) -> Rating:
    return Rating(score, verdict, explanation, NAME)
