"""The gate: whether the tests of a command became worse by more than chance explains.

If an agent has not changed, a command fails for it with a chance of at most 5 %, over all its tests and cases. Of
these, 4.5 % are for falls of all cases of a test or of the whole command, 0.25 % for falls of single cases, and 0.25 %
for cases that do not pass any more (`suspects`). These shares are always the same, so asking more cases again never
makes it harder to find something else. docs/comparing.md explains the gate to its users.

An agent can have good and bad days: all its answers of a run, or all its answers to a case in a run, are then more
alike than those of different runs. Both are estimated from a baseline of at least three runs, as Pearson's statistic
divided by its degrees of freedom, and count if chance explains them with less than 5 %.

The pass rate of a test is the mean of its cases' rates. By the normal approximation, a fall is found with a chance of
80 % if it is at least z(level) times the standard error without a change plus z(80 %) times the standard error with it.

Sources: K. Pearson, Philosophical Magazine 50 (1900); P. McCullagh and J. A. Nelder, "Generalized Linear Models"
(1989), section 4.5; the quantiles of chi-squared: E. B. Wilson and M. M. Hilferty, PNAS 17 (1931).
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.comparison import ComparedTest, match, tables_of
from evalmeta.engine.significance import CaseTests, Table, fisher_worse, permutation_worse, weighted_holm, with_noise
from evalmeta.engine.suspects import judge_suspects
from evalmeta.model.comparison import SIGNIFICANCE_LEVEL, Comparison, Significance, Standing, SuiteComparison, change_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.comparison import CaseComparison
    from evalmeta.model.statistics import CaseCounts


_FACTOR_TOGETHER: Final = SIGNIFICANCE_LEVEL / 0.045
_FACTOR_SINGLE: Final = SIGNIFICANCE_LEVEL / 0.0025
# Means of equal rates may differ in the last digits.
_DIGITS: Final = 12
_PROVEN: Final = {"worse": Standing.BROKEN, "better": Standing.FIXED}


class _Test(NamedTuple):
    """A matched test with the observations of each case, None for a case that was not decided on both sides.

    `noise` is how much more the results of its runs vary than independent answers do.
    """

    comparison: Comparison
    tables: list[Table | None]
    noise: float

    @property
    def decided(self) -> list[Table]:
        return [table for table in self.tables if table is not None]


def compare(test: ComparedTest) -> Comparison:
    """Compare a test that is the only one of its command."""
    return compare_all([test]).tests[0]


def compare_all(tests: Sequence[ComparedTest]) -> SuiteComparison:
    """Compare all tests of a command, whose p-values are corrected for all that the command tests.

    If at least half of the cases of the smaller run are in both runs, a permutation test compares the pairs. Otherwise
    Fisher's exact test compares how many cases passed in each run.
    """
    matched = [_Test(comparison, tables_of(comparison), noise_of(comparison)) for comparison in map(match, tests)]
    alone = [_significance(*pair) for pair in zip(tests, matched, strict=True)]
    overall, corrected = _corrected(alone, matched)
    cases = iter(_with_p_values(matched))
    compared = [
        replace(test.comparison, significance=significance, cases=tuple(next(cases) for _ in test.tables))
        for test, significance in zip(matched, corrected, strict=True)
    ]
    judged = judge_suspects(compared, [test.subject for test in tests], [test.failing_runs for test in tests])
    return SuiteComparison(tuple(judged), overall)


def _significance(test: ComparedTest, matched: _Test) -> Significance | None:
    """Return the significance of the change of a test, not corrected yet; None if no case was decided on both sides."""
    pairs = sum(case.before is not None and case.after is not None for case in matched.comparison.cases)
    if 2 * pairs >= min(len(test.before), len(test.after)):
        return _together(matched.decided, matched.noise)
    table = Table(*_pass_counts(test.before), *_pass_counts(test.after))
    if not (table.passed_before + table.failed_before and table.passed + table.failed):
        return None
    rates = _rates([table])
    p_value = fisher_worse(table.mirrored if change_of(*rates) == "better" else table)
    return Significance("fisher", p_value, sum(table), rates)


def _together(tables: Sequence[Table], noise: float) -> Significance | None:
    if not tables:
        return None
    rates = _rates(tables)
    change = change_of(*rates)
    p_value = permutation_worse([table.mirrored for table in tables] if change == "better" else tables)
    return Significance("permutation", 1.0 if change == "same" else with_noise(p_value, noise), len(tables), rates)


def _corrected(
    alone: Sequence[Significance | None], matched: Sequence[_Test]
) -> tuple[Significance | None, list[Significance | None]]:
    """Return the significance of all tests together, None if there is only one, and that of each test, corrected.

    Half of the level is for all tests together, and the other half for the tests one by one.
    """
    tested = [significance for significance in alone if significance is not None]
    if len(tested) <= 1:
        return None, [significance and _with_factor(significance, 1.0) for significance in alone]
    tables = [table for test in matched for table in test.decided]
    overall = _together(tables, max(test.noise for test in matched))
    worse = [significance.p_value if significance.change == "worse" else 1.0 for significance in tested]
    weights = [0.5, *(0.5 / len(tested) for _ in tested)]
    all_worse = overall.p_value if overall and overall.change == "worse" else 1.0
    total, *corrected = weighted_holm([all_worse, *worse], weights)
    values = iter(corrected)
    parts = [
        None if significance is None else _with_factor(significance, 2.0 * len(tested), corrected=next(values))
        for significance in alone
    ]
    return overall and _with_factor(overall, 2.0, corrected=total), parts


def _with_factor(significance: Significance, factor: float, *, corrected: float | None = None) -> Significance:
    """Return a significance with its share of the level; a fall has the p-value of the correction in steps."""
    p_value = significance.p_value * factor
    if corrected is not None and significance.change == "worse":
        p_value = corrected
    return replace(significance, p_value=min(1.0, p_value * _FACTOR_TOGETHER))


def _with_p_values(matched: Sequence[_Test]) -> Iterator[CaseComparison]:
    """Yield the cases of all tests with corrected p-values; a significant change makes a case broken or fixed."""
    rows = [
        (case, table, test.noise)
        for test in matched
        for case, table in zip(test.comparison.cases, test.tables, strict=True)
    ]
    tables = [table for _, table, _ in rows if table is not None]
    worse = iter(CaseTests(tables).corrected())
    mirrored = {table: table.mirrored for table in {*tables}}
    better = iter(CaseTests(map(mirrored.__getitem__, tables)).corrected())
    for case, table, noise in rows:
        yield case if table is None else _tested(case, table, noise, fell=next(worse), rose=next(better))


def _tested(case: CaseComparison, table: Table, noise: float, *, fell: float, rose: float) -> CaseComparison:
    if max(table.passed_before + table.failed_before, table.passed + table.failed) == 1:
        return case
    if case.change == "same":
        return replace(case, p_value=1.0)
    p_value = min(1.0, _FACTOR_SINGLE * with_noise(rose if case.change == "better" else fell, noise))
    proven = replace(case, p_value=p_value)
    return replace(proven, standing=_PROVEN[case.change]) if proven.is_significant else proven


def _rates(tables: Sequence[Table]) -> tuple[float, float]:
    """Return the mean of the cases' pass rates, before and now."""
    before = math.fsum(table.passed_before / (table.passed_before + table.failed_before) for table in tables)
    now = math.fsum(table.passed / (table.passed + table.failed) for table in tables)
    return round(before / len(tables), _DIGITS), round(now / len(tables), _DIGITS)


def _pass_counts(cases: Iterable[CaseCounts]) -> tuple[int, int]:
    passes = [case.passes for case in cases]
    return passes.count(True), passes.count(False)


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
    squares = [
        distance**2 / variance
        for case in cases
        for (distance, variance), run in zip(_deviations(case), case.by_run, strict=True)
        if run.decided > 1 and variance
    ]
    return _factor(sum(squares), len(squares))


def _deviations(case: CaseCounts) -> list[tuple[float, float]]:
    """Return for each run how far its number of passed answers is from the expected one, and the variance of that.

    The answers to a case are divided between its runs at random.
    """
    total, rate = case.decided, case.passed / case.decided
    deviations = []
    for run in case.by_run:
        number = run.decided
        variance = number * rate * (1 - rate) * (total - number) / (total - 1) if total > 1 else 0.0
        deviations.append((run.passed - number * rate, variance))
    return deviations


def _factor(pearson: float, degrees: float) -> float:
    if degrees < 1:
        return 1.0
    spread = 2 / (9 * degrees)
    quantile = degrees * (1 - spread + _NORMAL_QUANTILE * spread**0.5) ** 3
    return max(1.0, pearson / degrees) if pearson > quantile else 1.0


# One-sided quantiles of the normal distribution: 4.5 % for the level, and 80 % for the power.
_LEVEL: Final = 1.6954
_POWER: Final = 0.8416
_POINTS: Final = 100


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
    counts = [(case.passed, case.decided) for case in cases if case.decided]
    if not any(run.passed and run.failed for case in cases for run in case.by_run):
        iterations = 1
        counts = [(case.observed_runs[0], sum(case.observed_runs)) for case in cases if case.decided]
    mean = math.fsum(passed / answers for passed, answers in counts) / max(1, len(counts))
    rates = [_Rate(passed / answers, (passed + mean) / (answers + 1), answers) for passed, answers in counts]
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
