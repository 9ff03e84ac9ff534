"""Confirm suspect cases by asking them again: how many answers are needed, and what they show.

A suspect case passed before and fails now. Either it broke, or it always failed often and passed by chance. The test
predicts its new answers for the second reason: its pass rate has a beta distribution with the mean of all cases' rates
before and the weight of one answer, updated by the case's own answers before and now. The predicted number of passed
answers is beta-binomial. The p-value is the probability of at most so many, corrected for all suspect cases.

Sources: J. G. Skellam, "A probability distribution derived from the binomial distribution by regarding the probability
of success as variable between the sets of trials", JRSS B 10 (1948); G. E. P. Box, "Sampling and Bayes' inference in
scientific modelling and robustness", JRSS A 143 (1980), for predictive p-values; S. Holm (1979), as in `significance`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.comparison import together
from evalmeta.engine.significance import holm, log_choose
from evalmeta.model.statistics import SIGNIFICANCE_LEVEL, Standing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from evalmeta.model.statistics import CaseComparison, CaseCounts, Comparison, Significance

# More answers are not asked for: the baseline says too little about so many suspect cases.
MOST_ANSWERS: Final = 20


class _Beta(NamedTuple):
    """A beta distribution of a pass rate."""

    passed: float
    failed: float


def answers_needed(comparison: Comparison, numbers: Collection[int] | None = None) -> int:
    """Return how many new answers show that a suspect case broke if all of them fail, at most `MOST_ANSWERS`.

    `numbers` are the cases that need them, by default all suspect ones; the most for one of them is returned.
    """
    suspects, rate = comparison.of(Standing.SUSPECT), _rate_before(comparison)
    chosen = [each for each in suspects if numbers is None or each.number in numbers]
    return max((_needed(_expected(each, rate), len(suspects)) for each in chosen), default=0)


def confirm(comparison: Comparison, again: Mapping[int, CaseCounts]) -> Comparison:
    """Return a comparison whose suspect cases are judged by new answers, which are given by case number.

    A case is back if it passed in more than half of its new answers, broken if it passed in significantly few of them,
    and still suspect otherwise. Only new answers are tested, because the others are why the case was asked again. A
    fall of all cases together must also be significant with the new answers.
    """
    suspects, rate = comparison.of(Standing.SUSPECT), _rate_before(comparison)
    raw = [_p_value(_expected(each, rate), again.get(each.number)) for each in suspects]
    pairs = zip(suspects, holm(raw), strict=True)
    found = {case.number: _judged(case, again.get(case.number), min(1.0, p_value)) for case, p_value in pairs}
    cases = tuple(found[each.number] if each.standing is Standing.SUSPECT else each for each in comparison.cases)
    return replace(comparison, cases=cases, significance=_together(comparison.significance, cases))


def _together(first: Significance | None, cases: Sequence[CaseComparison]) -> Significance | None:
    """Return the significance of all cases with the new answers, which can only make a fall less significant.

    The cases were chosen because they failed, so their new answers alone could not show a fall of all cases.
    """
    if first is None or first.test != "permutation" or first.change != "worse":
        return first
    seen = [replace(each, after=each.after + each.again) if each.after and each.again else each for each in cases]
    found = together(seen, stages=2) or first
    p_value = max(first.p_value, found.p_value) if found.change == "worse" else 1.0
    return replace(found, p_value=p_value)


def _judged(case: CaseComparison, again: CaseCounts | None, p_value: float) -> CaseComparison:
    if again is None or again.passes is None:
        return replace(case, again=again)
    if again.passes:
        return replace(case, standing=Standing.BACK, p_value=None, again=again)
    found = replace(case, p_value=p_value, again=again)
    return replace(found, standing=Standing.BROKEN) if found.is_significant else found


def _needed(expected: _Beta, cases: int) -> int:
    numbers = range(1, MOST_ANSWERS)
    enough = (each for each in numbers if cases * _predicted(expected, 0, each) < SIGNIFICANCE_LEVEL)
    return next(enough, MOST_ANSWERS)


def _p_value(expected: _Beta, again: CaseCounts | None) -> float:
    """Return the probability of at most so many passed answers; 1 without answers, or if most of them passed."""
    if again is None or again.passes is not False:
        return 1.0
    return math.fsum(_predicted(expected, passed, again.decided) for passed in range(again.passed + 1))


def _predicted(expected: _Beta, passed: int, answers: int) -> float:
    """Return the beta-binomial probability of `passed` passed answers."""
    updated = _Beta(expected.passed + passed, expected.failed + answers - passed)
    return math.exp(log_choose(answers, passed) + _log_beta(updated) - _log_beta(expected))


def _expected(case: CaseComparison, rate: float) -> _Beta:
    """Return the distribution of a case's pass rate after its answers in both runs."""
    sides = [each for each in (case.before, case.after) if each]
    return _Beta(rate + sum(each.passed for each in sides), 1 - rate + sum(each.failed for each in sides))


def _rate_before(comparison: Comparison) -> float:
    """Return the mean pass rate of the cases before, drawn towards one half by the weight of one case."""
    rates = [each.before.pass_rate for each in comparison.cases if each.before]
    known = [each for each in rates if each is not None]
    return (math.fsum(known) + 0.5) / (len(known) + 1)


def _log_beta(beta: _Beta) -> float:
    return math.lgamma(beta.passed) + math.lgamma(beta.failed) - math.lgamma(sum(beta))
