"""Responses: a rater says how well the answer meets what was expected of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.raters.rater import Rating
from evalmeta.engine.scorers.results import undecided
from evalmeta.model.run import TestResult

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.raters.rater import Rater
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation

__all__ = ["rated_by"]


def rated_by(rater: Rater) -> Scorer:
    """Makes a scorer of a rater; the score is the rating, 0 to 5."""

    def score_response(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        actual = exchange.generated.outcome
        expected = (expectation.expected_value or "").strip()
        if not expected:
            return undecided(expectation, "no expectedValue: there is no response to compare with", actual=actual)
        rating = rater(expected, actual, utterance=exchange.utterance)
        if isinstance(rating, Rating):
            return _result(expectation, actual, rating)
        return _awaited(expectation, actual, rating)

    return score_response


async def _awaited(expectation: Expectation, actual: str, rating: Awaitable[Rating]) -> TestResult:
    return _result(expectation, actual, await rating)


def _result(expectation: Expectation, actual: str, rating: Rating) -> TestResult:
    return TestResult(
        expectation.name,
        rating.verdict,
        expected=expectation.expected_value or "",
        actual=actual,
        score=rating.score,
        explanation=rating.explanation,
        label=expectation.label,
        rater=rating.rater,
    )
