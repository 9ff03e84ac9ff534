"""What a baseline can detect: the smallest fall of a test's pass rate that a comparison finds.

The pass rate of a test is the mean of its cases' rates. By the normal approximation, a fall is found with a chance of
80 % if it is at least z(level) times the standard error without a change plus z(80 %) times the standard error with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.statistics import CaseCounts

# One-sided quantiles of the normal distribution: 4.5 % for the level, and 80 % for the power.
_LEVEL: Final = 1.6954
_POWER: Final = 0.8416
_POINTS: Final = 100


class _Counts(NamedTuple):
    passed: int
    answers: int


class _Rate(NamedTuple):
    """What is known of a case: its observed rate, and the expected one, between this and the mean of all cases."""

    observed: float
    expected: float
    answers: int


def detectable_fall(cases: Sequence[CaseCounts], *, iterations: int = 1) -> int | None:
    """Return the smallest fall of the mean pass rate, in percentage points, that a new run finds in 80 % of runs.

    All cases fall by the same number of points, down to 0. None if no fall can be found, or no case was decided.
    Iterations that never differ within a run count as one answer.
    """
    counts = [_Counts(case.passed, case.decided) for case in cases if case.decided]
    if not any(run.passed and run.failed for case in cases for run in case.by_run):
        iterations = 1
        counts = [_Counts(case.observed_runs[0], sum(case.observed_runs)) for case in cases if case.decided]
    mean = math.fsum(case.passed / case.answers for case in counts) / max(1, len(counts))
    rates = [
        _Rate(case.passed / case.answers, (case.passed + mean) / (case.answers + 1), case.answers) for case in counts
    ]
    sizes = (points for points in range(1, _POINTS + 1) if _is_found(rates, points / _POINTS, iterations))
    return next(sizes, None)


def _is_found(rates: list[_Rate], fall: float, iterations: int) -> bool:
    now = [max(0.0, rate.expected - fall) for rate in rates]
    # The number of passed answers is whole: half an answer is the usual correction.
    size = math.fsum(rate.observed - after for rate, after in zip(rates, now, strict=True)) - 0.5 / iterations
    unchanged = math.fsum(_unchanged(rates, now, iterations))
    changed = math.fsum(after * (1 - after) / iterations for after in now)
    changed += math.fsum(rate.expected * (1 - rate.expected) / rate.answers for rate in rates)
    return size >= _LEVEL * math.sqrt(unchanged) + _POWER * math.sqrt(changed) > 0


def _unchanged(rates: list[_Rate], now: list[float], iterations: int) -> Iterator[float]:
    """Yield the variance of each case's difference if its answers are divided between both runs at random."""
    for (observed, _, answers), after in zip(rates, now, strict=True):
        total = answers + iterations
        both = (observed * answers + after * iterations) / total
        spread = max(0.0, both * (1 - both) - iterations * after * (1 - after) / total**2)
        yield spread * total / (total - 1) * (1 / answers + 1 / iterations)
