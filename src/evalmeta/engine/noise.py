"""How much more the results of a test vary between the runs of a baseline than independent answers do.

An agent can have good and bad days: all its answers of a run, or all its answers to a case in a run, are then more
alike than those of different runs. Both are estimated from a baseline of at least three runs, as Pearson's statistic
divided by its degrees of freedom, and count if chance explains them with less than 5 %.

Sources: K. Pearson, Philosophical Magazine 50 (1900); P. McCullagh and J. A. Nelder, "Generalized Linear Models"
(1989), section 4.5; the quantiles of chi-squared: E. B. Wilson and M. M. Hilferty, PNAS 17 (1931).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.statistics import CaseCounts, Comparison

_FEWEST_RUNS: Final = 3
_NORMAL_QUANTILE: Final = NormalDist().inv_cdf(0.95)


def noise_of(comparison: Comparison) -> float:
    """Return by which factor the results of a test's runs vary more than those of independent answers; at least 1."""
    if comparison.runs < _FEWEST_RUNS or comparison.is_uniform:
        return 1.0
    cases = [case.before for case in comparison.cases if case.before and case.before.is_flaky]
    whole = [case for case in cases if len(case.runs) == comparison.runs]
    return max(_of_runs(whole, comparison.runs), _of_cases(cases))


def _of_runs(cases: Sequence[CaseCounts], runs: int) -> float:
    """Compare the passed answers of each run with those to expect."""
    distances, variances = [0.0] * runs, [0.0] * runs
    for case in cases:
        for place, (distance, variance) in enumerate(_deviations(case)):
            distances[place] += distance
            variances[place] += variance
    pearson = sum(distance**2 / variance for distance, variance in zip(distances, variances, strict=True) if variance)
    return _factor(pearson * (runs - 1) / runs, runs - 1)


def _of_cases(cases: Sequence[CaseCounts]) -> float:
    """Compare the passed answers to each case in each run with those to expect."""
    pearson, degrees = 0.0, 0.0
    for case in cases:
        deviations = [
            deviation
            for deviation, run in zip(_deviations(case), case.by_run, strict=True)
            if run.decided > 1 and deviation[1]
        ]
        pearson += sum(distance**2 / variance for distance, variance in deviations)
        degrees += len(deviations)
    return _factor(pearson, degrees)


def _deviations(case: CaseCounts) -> list[tuple[float, float]]:
    """Return for each run how far its number of passed answers is from the expected one, and the variance of that.

    The answers to a case are divided between its runs at random.
    """
    total, rate = case.decided, case.passed / case.decided
    found = []
    for run in case.by_run:
        number = run.decided
        variance = number * rate * (1 - rate) * (total - number) / (total - 1) if total > 1 else 0.0
        found.append((run.passed - number * rate, variance))
    return found


def _factor(pearson: float, degrees: float) -> float:
    if degrees < 1:
        return 1.0
    spread = 2 / (9 * degrees)
    quantile = degrees * (1 - spread + _NORMAL_QUANTILE * spread**0.5) ** 3
    return max(1.0, pearson / degrees) if pearson > quantile else 1.0
