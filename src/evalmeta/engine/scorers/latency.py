"""Latency: how long the agent took, and whether that is within a threshold if there is one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from evalmeta.engine.numbers import parse_number
from evalmeta.engine.scorers.results import broken, judged, measured, undecided

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult

__all__ = ["latency_scorer"]


def latency_scorer(*, judges: bool = True) -> Scorer:
    """Makes the scorer of latency; the score is the latency in milliseconds.

    It passes when the answer took at most the expectedValue, in milliseconds, or when
    none is set. With `judges=False` the latency is measured and every result UNDECIDED,
    whatever the expectedValue. So is one that nobody measured.
    """

    def score_latency(expectation: Expectation, exchange: Exchange) -> TestResult:
        latency = exchange.generated.latency_ms
        expected = (expectation.expected_value or "").strip()
        if latency is None:
            return undecided(expectation, "no latency was measured", expected=expected)
        actual = f"{latency:.0f}" if latency >= 1 else f"{latency:.3f}"
        if not judges:
            explanation = f"{actual} ms, measured and not judged"
            return measured(expectation, latency, explanation, expected=expected, actual=actual)
        if not expected:
            explanation = f"{actual} ms, no threshold is set"
            return judged(expectation, passed=True, expected="", actual=actual, explanation=explanation, score=latency)
        threshold = _milliseconds(expected)
        if threshold is None:
            return broken(expectation, f"the expectedValue is no number of milliseconds: {expected!r}", actual=actual)
        passed = latency <= threshold
        return judged(
            expectation,
            passed=passed,
            expected=expected,
            actual=actual,
            explanation=f"{actual} ms, {'within' if passed else 'over'} the threshold of {expected} ms",
            score=latency,
        )

    return score_latency


@lru_cache(maxsize=1024)
def _milliseconds(text: str) -> float | None:
    number = parse_number(text)
    return None if number is None else float(number)
