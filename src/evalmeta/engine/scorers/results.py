"""The results that scorers give, in one place so that none forgets a part."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from evalmeta.model.definition import Expectation


def judged(
    expectation: Expectation,
    *,
    passed: bool,
    expected: str,
    actual: str,
    explanation: str,
    detail: float | None = None,
    score: float | None = None,
) -> TestResult:
    """Gives PASS or FAILURE; the score is 1 or 0 unless the scorer has a scale of its own."""
    return TestResult(
        expectation.name,
        Verdict.PASS if passed else Verdict.FAILURE,
        expected,
        actual,
        float(passed) if score is None else score,
        explanation,
        expectation.label,
        detail,
    )


def averaged(
    expectation: Expectation, *, score: float, expected: str, actual: str, explanation: str, detail: float | None = None
) -> TestResult:
    """Gives PASS when the score reaches the threshold of the terms, or else FAILURE; the mean of the case decides.

    Without a threshold the score is measured: UNDECIDED, and told.
    """
    threshold = threshold_of(expectation)
    passed = threshold is not None and score >= threshold
    verdict = Verdict.PASS if passed else Verdict.UNDECIDED if threshold is None else Verdict.FAILURE
    return TestResult(
        expectation.name,
        verdict,
        expected,
        actual,
        score,
        explanation,
        expectation.label,
        detail,
        threshold=threshold,
        is_measured=threshold is None,
    )


def threshold_of(expectation: Expectation) -> float | None:
    """Gives the threshold that the terms set; None when they set none."""
    threshold = expectation.terms.get("threshold")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold):
        return None
    return float(threshold)


def undecided(expectation: Expectation, explanation: str, *, expected: str = "", actual: str = "") -> TestResult:
    """Gives UNDECIDED: nothing able to judge was there."""
    return TestResult(expectation.name, Verdict.UNDECIDED, expected, actual, None, explanation, expectation.label)


def measured(
    expectation: Expectation, score: float | None, explanation: str, *, expected: str = "", actual: str = ""
) -> TestResult:
    """Gives a number that is told and not judged; None when nobody told it."""
    return TestResult(
        expectation.name, Verdict.UNDECIDED, expected, actual, score, explanation, expectation.label, is_measured=True
    )


def broken(expectation: Expectation, reason: str, *, expected: str = "", actual: str = "") -> TestResult:
    """Gives ERROR with its reason: judging was not possible, and that is nobody's failure."""
    return TestResult(
        expectation.name,
        Verdict.ERROR,
        expected or expectation.expected_value or "",
        actual,
        explanation=reason,
        label=expectation.label,
        error=reason,
    )
