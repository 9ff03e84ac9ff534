"""Exact tests of whether an agent became worse or better between two runs of the same cases.

If the agent has not changed, the answers to one case before and now are exchangeable: each way to divide its passed and
failed answers between the two runs is equally likely. All tests follow from this, and none has random numbers.

Sources: R. A. Fisher, "The Design of Experiments" (1935), section 11, for one case; E. J. G. Pitman, "Significance
tests which may be applied to samples from any populations", Supplement to the JRSS 4 (1937), for all cases together:
permutation within each case, which with one answer per run is the sign-flip test; R. D. Boschloo, "Raised conditional
level of significance for the 2x2-table when testing the equality of two probabilities", Statistica Neerlandica 24
(1970), and S. Suissa and J. J. Shuster, "The 2x2 matched-pairs trial: exact unconditional design and analysis",
Biometrics 47 (1991), for one answer per run; S. Holm, "A simple sequentially rejective multiple test procedure",
Scandinavian Journal of Statistics 6 (1979), and R. E. Tarone, "A modified Bonferroni method for discrete data",
Biometrics 46 (1990), for many cases.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Equal probabilities may differ in the last digits.
_AS_LIKELY: Final = 1 + 1e-9
# Less likely sums at both ends of a distribution are left out.
_NEGLIGIBLE: Final = 1e-18
_CACHED: Final = 1024
# For more cases, the unconditional test takes too long; the p-value of the sign test is a little larger.
_MOST_UNCONDITIONAL: Final = 1_000
_NORMAL: Final = NormalDist()


class Table(NamedTuple):
    """How many answers to one case passed and failed, before and now."""

    passed_before: int
    failed_before: int
    passed: int
    failed: int

    @property
    def mirrored(self) -> Table:
        """Return the table with passed and failed answers exchanged: worse becomes better."""
        return Table(self.failed_before, self.passed_before, self.failed, self.passed)

    @property
    def is_single(self) -> bool:
        """Return whether each run has one answer."""
        return self.passed_before + self.failed_before == 1 == self.passed + self.failed


class _Distribution(NamedTuple):
    """The probabilities of consecutive numbers of passed answers, beginning with `lowest`."""

    lowest: int
    probabilities: tuple[float, ...]


def fisher_worse(table: Table) -> float:
    """Return the one-sided p-value of Fisher's exact test: the probability of at most so many passed answers now."""
    lowest, tails = _lower_tails(_margins(table))
    return tails[table.passed - lowest]


def permutation_worse(tables: Sequence[Table]) -> float:
    """Return the one-sided p-value for all cases: the probability of at most so many passed answers now, in all.

    Answers are permuted within each case. With one answer per case and run, the p-value is that of the unconditional
    test, which is never larger.
    """
    if tables and all(table.is_single for table in tables):
        broken = sum(table.passed_before > table.passed for table in tables)
        fixed = sum(table.passed_before < table.passed for table in tables)
        return _single_answers(broken, fixed, len(tables))
    total = _Distribution(0, (1.0,))
    margins_of = {table: _margins(table) for table in {*tables}}
    for margins, count in Counter(map(margins_of.__getitem__, tables)).items():
        total = _sum(total, _repeated(_passed_now(margins), count))
    passed = sum(table.passed for table in tables)
    return min(1.0, math.fsum(total.probabilities[: max(0, passed - total.lowest + 1)]))


class CaseTests:
    """Fisher's exact tests of several cases, corrected for their number in steps (Holm).

    Results are discrete: many cases cannot have a small p-value, whatever their answers. A case only adds the
    probability with which its p-value could be so small (Tarone), so cases that always pass add nothing.
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = tuple(tables)

    def corrected(self) -> list[float]:
        """Return the corrected p-value of each case: the probability that any case is at least so much worse."""
        # Many cases have the same answers.
        raw = {table: fisher_worse(table) for table in {*self._tables}}
        groups: dict[float, Counter[_Margins]] = {}
        left = Counter[_Margins]()
        for table, number in Counter(self._tables).items():
            margins = _margins(table)
            groups.setdefault(raw[table], Counter())[margins] += number
            left[margins] += number
        corrected, largest = dict[float, float](), 0.0
        for p_value in sorted(groups):
            attainable = math.fsum(count * _largest_tail(margins, p_value) for margins, count in left.items() if count)
            largest = corrected[p_value] = max(largest, min(1.0, attainable))
            left.subtract(groups[p_value])
        return [corrected[raw[table]] for table in self._tables]


def weighted_holm(p_values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number in steps (Holm), in the same order; they may exceed 1.

    A test's weight is its share of the level in the first step; all weights together are 1.
    """
    scaled = [p_value / weight for p_value, weight in zip(p_values, weights, strict=True)]
    corrected, largest, left = [0.0] * len(scaled), 0.0, 1.0
    for place in sorted(range(len(scaled)), key=scaled.__getitem__):
        largest = corrected[place] = max(largest, scaled[place] * left)
        left -= weights[place]
    return corrected


def with_noise(p_value: float, noise: float) -> float:
    """Return a p-value whose statistic varies `noise` times as much as independent answers do (quasi-likelihood).

    Source: R. W. M. Wedderburn, "Quasi-likelihood functions, generalized linear models, and the Gauss-Newton method",
    Biometrika 61 (1974).
    """
    if noise <= 1 or not 0 < p_value < 1:
        return p_value
    return max(p_value, 1 - _NORMAL.cdf(_NORMAL.inv_cdf(1 - p_value) / math.sqrt(noise)))


def _largest_tail(margins: _Margins, level: float) -> float:
    """Return the largest p-value of a case that is at most `level`; 0 if all are larger."""
    tails = _lower_tails(margins)[1]
    place = bisect_right(tails, level * _AS_LIKELY)
    return tails[place - 1] if place else 0.0


class _Margins(NamedTuple):
    before: int
    now: int
    passed: int


def _margins(table: Table) -> _Margins:
    before, now = table.passed_before + table.failed_before, table.passed + table.failed
    return _Margins(before, now, table.passed_before + table.passed)


@lru_cache(maxsize=_CACHED)
def _passed_now(margins: _Margins) -> _Distribution:
    """Return the hypergeometric distribution of the passed answers now."""
    before, now, passed = margins
    numbers = range(max(0, passed - before), min(now, passed) + 1)
    all_ways = _log_choose(before + now, passed)
    chances = (math.exp(_log_choose(now, n) + _log_choose(before, passed - n) - all_ways) for n in numbers)
    return _Distribution(numbers.start, tuple(chances))


@lru_cache(maxsize=_CACHED)
def _lower_tails(margins: _Margins) -> tuple[int, tuple[float, ...]]:
    lowest, probabilities = _passed_now(margins)
    return lowest, tuple(min(1.0, probability) for probability in accumulate(probabilities))


def _repeated(one: _Distribution, count: int) -> _Distribution:
    """Return the distribution of the sum of `count` independent numbers of the same distribution."""
    total = _Distribution(0, (1.0,))
    while count:
        if count % 2:
            total = _sum(total, one)
        count //= 2
        one = _sum(one, one) if count else one
    return total


def _sum(first: _Distribution, second: _Distribution) -> _Distribution:
    """Return the distribution of the sum of two independent numbers, without negligible ends."""
    size = len(first.probabilities) + len(second.probabilities) - 1
    total = [0.0] * size
    for shift, chance in enumerate(second.probabilities):
        for place, other in enumerate(first.probabilities, shift):
            total[place] += chance * other
    counted = [place for place, chance in enumerate(total) if chance >= _NEGLIGIBLE]
    start, end = counted[0], counted[-1] + 1
    return _Distribution(first.lowest + second.lowest + start, tuple(total[start:end]))


@lru_cache(maxsize=_CACHED)
def _single_answers(broken: int, fixed: int, cases: int) -> float:
    """Return the largest probability, over all pass rates of the cases, of a p-value at most that of the sign test.

    A case changes with the probability 2p(1 - p), at most 1/2. The probability of a small p-value is linear in each
    of these, so it is largest if some cases change with probability 1/2 and the others never do. The work grows with
    the square of the number of cases: for many of them, the sign test is as good.
    """
    level = _sign_test(broken, broken + fixed)
    if broken <= fixed or cases > _MOST_UNCONDITIONAL:
        return level
    level *= _AS_LIKELY
    # The size of the sign test for each number of changed cases; one row of tails follows from the one before.
    sizes, tails = [0.0], [1.0, 0.0]
    for _ in range(cases):
        tails = [1.0, *((tails[place] + tails[place - 1]) / 2 for place in range(1, len(tails))), 0.0]
        sizes.append(max((tail for tail in tails if tail <= level), default=0.0))
    largest = 0.0
    while len(sizes) > 1:
        sizes = [(one + other) / 2 for one, other in pairwise(sizes)]
        largest = max(largest, sizes[0])
    return largest


def _sign_test(broken: int, changed: int) -> float:
    """Return the probability of at least so many broken cases if changes in both directions are equally likely."""
    ways = (math.exp(_log_choose(changed, n) - changed * math.log(2)) for n in range(broken, changed + 1))
    return min(1.0, math.fsum(ways))


def _log_choose(total: int, count: int) -> float:
    """Return the logarithm of a binomial coefficient, which may be too large for a float."""
    return math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)
