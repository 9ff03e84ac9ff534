"""The results that scorers give, in one place so that none forgets a part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from evalmeta.model.definition import Expectation

__all__ = ["broken", "judged", "undecided"]


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


def undecided(
    expectation: Expectation, explanation: str, *, expected: str = "", actual: str = "", score: float | None = None
) -> TestResult:
    """Gives UNDECIDED: nothing able to judge was there; `score` is what could be measured all the same."""
    return TestResult(expectation.name, Verdict.UNDECIDED, expected, actual, score, explanation, expectation.label)


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
