"""The judged metrics of Google ADK and Databricks Agent Evaluation: what a rater says yes or no to, or grades."""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.raters.rater import Rubric
from evalmeta.engine.scorers.judgedmetrics import LACKS, METRICS, Metric, Part, Reading, is_yes
from evalmeta.engine.scorers.judgedparts import JudgedPart, write_parts
from evalmeta.engine.scorers.judgedterms import read_terms
from evalmeta.engine.scorers.rated import sound_rating
from evalmeta.engine.scorers.results import undecided
from evalmeta.errors import RaterError
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from evalmeta.engine.raters.rater import Rater, Rating
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.engine.scorers.judgedterms import JudgedTerms
    from evalmeta.model.definition import Expectation

__all__ = ["judge_scorers"]

_TOLERANCE: Final = 1e-9
_ADK_SAMPLES: Final = 5


class _Question(NamedTuple):
    """One expectation of one exchange, ready to be asked about."""

    expectation: Expectation
    metric: Metric
    reading: Reading
    expected: str
    actual: str
    parts: tuple[Part, ...]
    remark: str


def judge_scorers(rater: Rater, *, threshold: float = 3.0) -> Mapping[str, Scorer]:
    """Gives the scorers of all judged metrics by name.

    `threshold` is the rating, 0 to 5, that is a yes of raters that rate instead of judging. A metric that
    the rater cannot judge, or whose data is missing, is UNDECIDED and says what is missing.
    """
    return {name: _scorer(metric, rater, threshold) for name, metric in METRICS.items()}


def _scorer(metric: Metric, rater: Rater, threshold: float) -> Scorer:
    def score_judged(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        reading = Reading(read_terms(expectation), threshold)
        rubric = _rubric(expectation, exchange, metric, reading)
        question = _question(expectation, metric, reading, rubric, _remark(metric, exchange))
        lack = next((words for need in metric.needs if (words := LACKS[need](rubric, reading.terms))), "")
        # What has no data is no part of a mean; what nobody can judge keeps one from being a pass.
        return _undecided(question, lack)._replace(threshold=None) if lack else _ask(question, rater)

    return score_judged


def _question(expectation: Expectation, metric: Metric, reading: Reading, rubric: Rubric, remark: str) -> _Question:
    parts = metric.parts(rubric, reading.terms) if metric.parts else [Part("", rubric)]
    if len(parts) > limits.MAX_JUDGED_PARTS:
        raise RaterError(f"there are {len(parts):,} to judge one by one; at most {limits.MAX_JUDGED_PARTS} are judged")
    actual = ", ".join(each.uri for each in rubric.passages) if metric.shows_passages else rubric.actual
    expected = expectation.expected_value or _expected(reading.terms)
    return _Question(expectation, metric, reading, expected, actual, tuple(parts), remark)


def _expected(terms: JudgedTerms) -> str:
    return "\n".join((*terms.facts, *terms.guidelines, *(each.text for each in terms.rubrics)))


def _remark(metric: Metric, exchange: Exchange) -> str:
    passages = exchange.generated.retrieved or ()
    unknown = sum(each.content is None for each in passages)
    return f" ({unknown} of {len(passages)} passages have no content)" if unknown and "passages" in metric.needs else ""


def _rubric(expectation: Expectation, exchange: Exchange, metric: Metric, reading: Reading) -> Rubric:
    terms, generated = reading.terms, exchange.generated
    return Rubric(
        expectation.name,
        exchange.utterance,
        generated.outcome,
        "" if terms.facts else (expectation.expected_value or "").strip(),
        exchange.history,
        generated.actions,
        _rating_threshold(metric, reading),
        tuple(each for each in generated.retrieved or () if each.content is not None),
        terms.facts,
        terms.guidelines,
        (terms.samples or _ADK_SAMPLES) if metric.is_pooled else terms.samples,
        metric.is_pooled,
    )


def _rating_threshold(metric: Metric, reading: Reading) -> float:
    """Gives the rating that passes: the metric's own threshold where the score is a rating, or a part of the best."""
    if metric.rating_scale is None or reading.terms.threshold is None:
        return reading.threshold
    return metric.rating_scale * reading.terms.threshold - _TOLERANCE


def _ask(question: _Question, rater: Rater) -> TestResult | Awaitable[TestResult]:
    first, *others = question.parts
    rating = rater(first.rubric)
    if rating is None:
        return _undecided(question, "it needs an LLM rater, a table under [raters], and none judges this run")
    ratings = [rating, *(rater(each.rubric) for each in others)]
    # Nothing has to be awaited when an offline rater judges.
    if any(isawaitable(each) for each in ratings):
        return _awaited(question, ratings)
    return _result(question, ratings)


async def _awaited(question: _Question, ratings: list[Rating | Awaitable[Rating] | None]) -> TestResult:
    waiting = [each for each in ratings if isawaitable(each)]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    for each in answers:
        if isinstance(each, BaseException):
            raise each
    given = iter(answers)
    return _result(question, [next(given) if isawaitable(each) else each for each in ratings])


def _result(question: _Question, given: Sequence[object]) -> TestResult:
    ratings = [sound_rating(each) for each in given]
    broken = next((each for each in ratings if each.verdict is Verdict.ERROR), None)
    if broken:
        raise RaterError(broken.explanation)
    unsure = next((each for each in ratings if each.verdict is Verdict.UNDECIDED and each.score is None), None)
    if unsure:
        return _undecided(question, unsure.explanation)._replace(rater=unsure.rater)
    score = _snapped(question.metric.score(ratings, question.reading), question.reading.terms.threshold)
    verdict = _verdict(question, ratings, score)
    return TestResult(
        question.expectation.name,
        verdict,
        question.expected,
        question.actual,
        score,
        _explanation(question, ratings),
        question.expectation.label,
        rater=ratings[0].rater,
        threshold=_mean_threshold(question),
        is_measured=verdict is Verdict.UNDECIDED,
    )


def _snapped(score: float, wanted: float | None) -> float:
    """Gives the threshold for a score that only misses it by rounding."""
    return wanted if wanted is not None and abs(score - wanted) <= _TOLERANCE else score


def _verdict(question: _Question, ratings: Sequence[Rating], score: float) -> Verdict:
    wanted = question.reading.terms.threshold
    if wanted is not None:
        return Verdict.PASS if score >= wanted else Verdict.FAILURE
    if not question.metric.is_decided:
        return Verdict.UNDECIDED
    return Verdict.PASS if all(is_yes(each, question.reading) for each in ratings) else Verdict.FAILURE


def _mean_threshold(question: _Question) -> float | None:
    return question.reading.terms.threshold if question.metric.is_averaged else None


def _explanation(question: _Question, ratings: Sequence[Rating]) -> str:
    """Gives the rationale; of parts one line for each."""
    if not question.metric.parts:
        return f"{ratings[0].explanation}{question.remark}"
    given = zip(question.parts, ratings, strict=True)
    parts = [
        JudgedPart("yes" if is_yes(rating, question.reading) else "no", part.name, rating.explanation)
        for part, rating in given
    ]
    return write_parts(parts, remark=question.remark)


def _undecided(question: _Question, explanation: str) -> TestResult:
    result = undecided(question.expectation, explanation, expected=question.expected, actual=question.actual)
    return result._replace(threshold=_mean_threshold(question))
