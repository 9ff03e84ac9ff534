"""Latency: how long the agent took, and whether that is within a threshold if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.numbers import parse_number
from evalmeta.engine.scorers.results import broken, judged, undecided

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult

__all__ = ["score_latency"]


def score_latency(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Passes when the answer took at most the expectedValue, in milliseconds, or when none is set.

    The score is the latency in milliseconds.
    """
    latency = exchange.generated.latency_ms
    expected = (expectation.expected_value or "").strip()
    if latency is None:
        return undecided(expectation, "no latency was measured", expected=expected)
    actual = f"{latency:.0f}" if latency >= 1 else f"{latency:.3f}"
    threshold = parse_number(expected)
    if expected and threshold is None:
        return broken(expectation, f"the expectedValue is no number of milliseconds: {expected!r}", actual=actual)
    passed = threshold is None or latency <= threshold
    explanation = f"{actual} ms, no threshold is set"
    if threshold is not None:
        explanation = f"{actual} ms, {'within' if passed else 'over'} the threshold of {expected} ms"
    return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation, score=latency)
