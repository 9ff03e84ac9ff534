"""Quality metrics: only a language model can judge them, so without one they are undecided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.scorers.results import undecided

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult

__all__ = ["score_quality"]


def score_quality(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Gives UNDECIDED and says what is missing."""
    return undecided(
        expectation,
        f"{expectation.name} needs an LLM rater, and none judges this run",
        expected=expectation.expected_value or "",
        actual=exchange.generated.outcome,
    )
