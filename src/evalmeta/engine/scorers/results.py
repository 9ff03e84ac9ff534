"""Constructors of the results that scorers return, and a wrapper that leaves empty answers undecided.

An empty answer without actions proves nothing, so checks that it would pass are undecided.
"""

from __future__ import annotations

import math
from functools import partial
from inspect import isawaitable
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar, cast

from evalmeta.model.checks import is_blank
from evalmeta.model.run import DECIDED, TO_REVIEW, TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import GeneratedData


_T = TypeVar("_T")
# Before Python 3.12, `Verdict.PASS` calls a function.
_PASS: Final = Verdict.PASS
_FAILURE: Final = Verdict.FAILURE


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
    """Return PASS or FAILURE; the score is 1 or 0 unless the scorer has its own scale."""
    verdict, number = _PASS if passed else _FAILURE, float(passed) if score is None else score
    return TestResult(expectation.name, verdict, expected, actual, number, explanation, expectation.label, detail)


def averaged(
    expectation: Expectation, *, score: float, expected: str, actual: str, explanation: str, detail: float | None = None
) -> TestResult:
    """Return PASS if the score reaches the threshold of the terms, else FAILURE; the mean of the case decides.

    Without a threshold the score is reported, not judged: UNDECIDED.
    """
    threshold = threshold_of(expectation)
    passed = threshold is not None and score >= threshold
    verdict = Verdict.PASS if passed else Verdict.UNDECIDED if threshold is None else Verdict.FAILURE
    result = TestResult(expectation.name, verdict, expected, actual, score, explanation, expectation.label, detail)
    return result._replace(threshold=threshold, is_measured=threshold is None)


def threshold_of(expectation: Expectation) -> float | None:
    """Return the threshold that the terms set; None if they set none."""
    threshold = expectation.terms.get("threshold")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold):
        return None
    return float(threshold)


def undecided(expectation: Expectation, explanation: str, *, expected: str = "", actual: str = "") -> TestResult:
    """Return UNDECIDED: the expectation could not be judged."""
    return TestResult(expectation.name, Verdict.UNDECIDED, expected, actual, None, explanation, expectation.label)


def score_unjudged(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Return UNDECIDED with the reason of the terms: a scorer of what only another system can judge."""
    reason = str(expectation.terms.get("reason", "only another system can judge this"))
    return undecided(expectation, reason, actual=exchange.generated.outcome)


def measured(
    expectation: Expectation, score: float | None, explanation: str, *, expected: str = "", actual: str = ""
) -> TestResult:
    """Return a number that is reported and not judged; None if the agent did not report it."""
    result = undecided(expectation, explanation, expected=expected, actual=actual)
    return result._replace(score=score, is_measured=True)


def broken(expectation: Expectation, reason: str, *, expected: str = "", actual: str = "") -> TestResult:
    """Return ERROR with its reason; an ERROR is never a failure of the agent."""
    name, shown, label = expectation.name, expected or expectation.expected_value or "", expectation.label
    return TestResult(name, Verdict.ERROR, shown, actual, None, reason, label, error=reason)


def to_be_reviewed(result: TestResult, why: str = TO_REVIEW) -> TestResult:
    """Return a result that depends on something that a person must review: UNDECIDED instead of PASS or FAILURE."""
    if result.verdict not in DECIDED:
        return result
    would = "pass" if result.verdict is _PASS else "fail"
    explanation = f"{why}: it would {would}; {result.explanation}"
    return result._replace(verdict=Verdict.UNDECIDED, explanation=explanation, threshold=None)


def first_few(items: Collection[object], most: int = 10) -> str:
    """Return the first items, separated by commas, and the number of the others: `A, B and 3 more`."""
    shown = ", ".join(map(str, islice(items, most)))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


_NOTHING: Final = (
    "the agent returned an empty answer and took no action, so nothing can be judged; "
    "if an empty answer is valid, write empty: true in the test case of a spec"
)


def not_passing_silence(scorer: Scorer) -> Scorer:
    """Return a scorer whose PASS is UNDECIDED if the agent returned nothing, unless the terms set `empty`.

    Nothing is an answer without text and without actions. A comparison with the topic that the agent chose counts.
    """

    def score(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        result: object = scorer(expectation, exchange)
        generated = exchange.generated
        if not generated.actions and is_blank(generated.outcome or "") and not _may_be_silent(expectation, generated):
            result = when_ready(result, partial(_without_pass, expectation))
        return cast("TestResult", result)

    return score


def when_ready(value: object, finish: Callable[[object], _T]) -> _T | Awaitable[_T]:
    """Return what `finish` returns for a value: at once, or when it is ready if it is an awaitable."""

    async def wait(awaited: Awaitable[object]) -> _T:
        return finish(await awaited)

    return wait(value) if isawaitable(value) else finish(value)


def _without_pass(expectation: Expectation, result: object) -> object:
    """Return UNDECIDED instead of PASS; scorers of packages may return anything, which the caller checks."""
    if isinstance(result, list):
        return [_without_pass(expectation, part) for part in result]
    if not isinstance(result, TestResult) or result.verdict is not Verdict.PASS:
        return result
    silent = undecided(expectation, _NOTHING, expected=result.expected, actual=result.actual)
    return silent._replace(rater=result.rater, threshold=result.threshold)


def _may_be_silent(expectation: Expectation, generated: GeneratedData) -> bool:
    if expectation.terms and expectation.terms.get("empty") is True:
        return True
    references = [parameter.value for parameter in expectation.parameters if parameter.is_reference]
    read = " ".join((*references, str(expectation.terms.get("path"))))
    return bool(generated.topic) and "topic" in read
