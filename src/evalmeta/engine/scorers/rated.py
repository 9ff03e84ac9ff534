"""Expectations that a rater judges as a whole: the score is its rating."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Final

from evalmeta.engine.interfaces import BEST_RATING, Rating, Rubric
from evalmeta.engine.metrics import METRICS
from evalmeta.engine.scorers.results import undecided
from evalmeta.errors import RaterError
from evalmeta.model.expectations import canonical_name
from evalmeta.model.run import NEEDS_MODEL, TestResult

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.interfaces import Exchange, Rater, Scorer
    from evalmeta.model.definition import Expectation


NEEDS_LLM: Final = f"{NEEDS_MODEL}judge this, and this run has none"


def rated_by(rater: Rater, *, threshold: float = 3.0) -> Scorer:
    """Return a scorer that asks a rater; the score is the rating, 0 to 5, and UNDECIDED has none."""

    def score_rated(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        actual, expected = exchange.generated.outcome, (expectation.expected_value or "").strip()
        metric = canonical_name(expectation.name)
        if "reference" in METRICS[metric].needs and not expected:
            return undecided(expectation, "no expectedValue: there is no response to compare with", actual=actual)
        rubric = Rubric(
            metric,
            exchange.utterance,
            actual,
            expected,
            exchange.history,
            exchange.generated.actions,
            _threshold(expectation, threshold),
            instructions=_instructions(expectation),
        )
        rating = rater(rubric)
        if isinstance(rating, Rating) or not isawaitable(rating):
            return _rating_result(expectation, actual, rating)
        return _await_rating(expectation, actual, rating)

    return score_rated


def _threshold(expectation: Expectation, default: float) -> float:
    own = expectation.terms.get("threshold")
    return float(own) if isinstance(own, int | float) else default


def _instructions(expectation: Expectation) -> str:
    """Return the expectation's own instructions for a language model."""
    instructions = expectation.terms.get("instructions", "")
    if not isinstance(instructions, str):
        raise RaterError(f"the term instructions is not valid: it must be a text, not {instructions!r:.50}")
    return instructions


async def _await_rating(expectation: Expectation, actual: str, rating: Awaitable[Rating]) -> TestResult:
    return _rating_result(expectation, actual, await rating)


def _rating_result(expectation: Expectation, actual: str, rating: object) -> TestResult:
    expected = expectation.expected_value or ""
    if rating is None:
        return undecided(expectation, NEEDS_LLM, expected=expected, actual=actual)
    rating = checked_rating(rating)
    return TestResult(
        expectation.name,
        rating.verdict,
        expected,
        actual,
        rating.score,
        rating.explanation,
        expectation.label,
        rater=rating.rater,
    )


def checked_rating(rating: object) -> Rating:
    """Return what a rater returned; raise RaterError unless it is a Rating with a score from 0 to 5, or none."""
    if not isinstance(rating, Rating):
        raise RaterError(f"the rater returned {type(rating).__name__}, which is not a Rating")
    if rating.score is not None and not 0 <= rating.score <= BEST_RATING:
        raise RaterError(f"{rating.rater} returned the rating {rating.score}, which is not from 0 to {BEST_RATING:g}")
    return rating
