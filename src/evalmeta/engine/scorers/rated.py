"""What a rater judges: how well an answer meets what was expected of it, and qualities that need a model."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.judge import Rating, Rubric
from evalmeta.engine.scorers.results import undecided
from evalmeta.errors import RaterError
from evalmeta.model.expectations import canonical_name, expectation_kind
from evalmeta.model.run import TestResult

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.raters.judge import Rater
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation


_MOST: Final = 5


def rated_by(rater: Rater, *, threshold: float = 3.0) -> Scorer:
    """Makes a scorer of a rater; the score is the rating, 0 to 5.

    A metric that the rater cannot judge, and a response without an expected one, is UNDECIDED.
    """

    def score_rated(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        kind = expectation_kind(expectation.name)
        actual, expected = exchange.generated.outcome, (expectation.expected_value or "").strip()
        if kind is not None and kind.needs == "value" and not expected:
            return undecided(expectation, "no expectedValue: there is no response to compare with", actual=actual)
        rating = rater(_rubric(expectation, exchange, expected, threshold))
        if isinstance(rating, Rating) or not isawaitable(rating):
            return _result(expectation, actual, rating)
        return _awaited(expectation, actual, rating)

    return score_rated


def _rubric(expectation: Expectation, exchange: Exchange, expected: str, threshold: float) -> Rubric:
    return Rubric(
        canonical_name(expectation.name),
        exchange.utterance,
        exchange.generated.outcome,
        expected,
        exchange.history,
        exchange.generated.actions,
        threshold,
    )


async def _awaited(expectation: Expectation, actual: str, rating: Awaitable[Rating]) -> TestResult:
    return _result(expectation, actual, await rating)


def _result(expectation: Expectation, actual: str, rating: object) -> TestResult:
    expected = expectation.expected_value or ""
    if rating is None:
        explanation = f"{expectation.name} needs an LLM rater, and none judges this run"
        return undecided(expectation, explanation, expected=expected, actual=actual)
    rating = sound_rating(rating)
    return TestResult(
        expectation.name,
        rating.verdict,
        expected=expected,
        actual=actual,
        score=rating.score,
        explanation=rating.explanation,
        label=expectation.label,
        rater=rating.rater,
    )


def sound_rating(rating: object) -> Rating:
    """Gives what a rater gave, if it is a rating.

    Raises:
        RaterError: it is none, or its score is not from 0 to 5.
    """
    if not isinstance(rating, Rating):
        raise RaterError(f"the rater gave {type(rating).__name__}, which is no Rating")
    if rating.score is not None and not 0 <= rating.score <= _MOST:
        raise RaterError(f"{rating.rater} rated {rating.score}; ratings go from 0 to {_MOST}")
    return rating
