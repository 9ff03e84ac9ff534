from __future__ import annotations

import math
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.significance import CaseTests, Table, fisher_worse, permutation_worse, weighted_holm, with_noise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

few = st.integers(0, 3)
tables = st.builds(Table, few, few, few, few).filter(lambda each: sum(each[:2]) > 0 < sum(each[2:]))
several = st.lists(tables.filter(lambda each: not each.is_single), min_size=1, max_size=4)

PASSES, BROKE, FIXED, FAILS = Table(1, 0, 1, 0), Table(1, 0, 0, 1), Table(0, 1, 1, 0), Table(0, 1, 0, 1)


def ways(table: Table) -> Iterator[tuple[int, float]]:
    """Yield each possible number of passed answers now, and its probability, by counting the ways."""
    before, now, passed = sum(table[:2]), sum(table[2:]), table.passed_before + table.passed
    for number in range(now + 1):
        if 0 <= passed - number <= before:
            count = math.comb(now, number) * math.comb(before, passed - number)
            yield number, count / math.comb(before + now, passed)


def counted(all_tables: Sequence[Table]) -> float:
    """Return the p-value by going through all combinations."""
    most = sum(table.passed for table in all_tables)
    found = product(*map(ways, all_tables))
    return math.fsum(math.prod(p for _, p in each) for each in found if sum(number for number, _ in each) <= most)


# Fisher's tea tasting has p = 17/70; the others are R's fisher.test(..., alternative = "less").
@pytest.mark.parametrize(
    ("table", "p"),
    [
        (Table(3, 1, 1, 3), 17 / 70),
        (Table(4, 0, 0, 4), 1 / 70),
        (Table(10, 2, 3, 15), 0.0004651809),
        (Table(5, 0, 5, 0), 1.0),
        (Table(0, 5, 5, 0), 1.0),
    ],
)
def test_one_case_is_tested_as_in_the_literature(table: Table, p: float) -> None:
    assert fisher_worse(table) == pytest.approx(p, rel=1e-7)


@given(several)
def test_all_cases_are_tested_exactly(all_tables: list[Table]) -> None:
    assert permutation_worse(all_tables) == pytest.approx(counted(all_tables))


@given(several)
def test_worse_and_better_mirror_each_other(all_tables: list[Table]) -> None:
    better = permutation_worse([table.mirrored for table in all_tables])
    assert permutation_worse(all_tables) + better >= 1 - 1e-9


def changing(cases: int, level: float) -> float:
    """Return the size of the sign test at a level if each case changes with probability 1/2, in either direction."""
    size = 0.0
    for outcome in product((-1, 0, 0, 1), repeat=cases):
        worse, changed = outcome.count(-1), sum(map(abs, outcome))
        tail = sum(math.comb(changed, n) for n in range(worse, changed + 1)) / 2**changed
        size += tail <= level
    return size / 4**cases


@pytest.mark.parametrize("cases", [1, 2, 3, 4, 5])
def test_one_answer_per_run_has_the_largest_probability_over_all_pass_rates(cases: int) -> None:
    for broken in range(1, cases + 1):
        all_tables = [BROKE] * broken + [PASSES] * (cases - broken)
        sizes = [changing(number, 1 / 2**broken) for number in range(1, cases + 1)]
        assert permutation_worse(all_tables) == pytest.approx(max(sizes))


@pytest.mark.parametrize(
    ("all_tables", "p"),
    [
        ([BROKE], 1 / 4),
        ([BROKE] * 2, 1 / 16),
        ([BROKE] * 3, 1 / 64),
        ([PASSES, FAILS], 1.0),
        ([FIXED] * 5, 1.0),
        ([BROKE, FIXED], 3 / 4),
    ],
)
def test_three_of_three_broken_cases_are_more_than_chance(all_tables: list[Table], p: float) -> None:
    assert permutation_worse(all_tables) == pytest.approx(p)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_the_unconditional_p_is_never_above_that_of_the_sign_test(broken: int, fixed: int, same: int) -> None:
    changed = broken + fixed
    sign_test = sum(math.comb(changed, n) for n in range(broken, changed + 1)) / 2**changed
    all_tables = [BROKE] * broken + [FIXED] * fixed + [PASSES] * same
    assert permutation_worse(all_tables) <= sign_test + 1e-9


def test_cases_that_cannot_be_significant_add_nothing_to_the_correction() -> None:
    broke, stable, mixed = Table(5, 0, 0, 5), Table(5, 0, 5, 0), Table(4, 1, 1, 4)
    assert CaseTests([broke, *[stable] * 29]).corrected()[0] == pytest.approx(1 / 252)
    assert CaseTests([broke, mixed]).corrected()[0] == pytest.approx(2 / 252)


def test_a_case_is_not_corrected_for_those_with_smaller_p_values() -> None:
    first, second = Table(9, 1, 1, 9), Table(8, 2, 2, 8)
    corrected = CaseTests([second, first]).corrected()
    assert corrected[0] == pytest.approx(fisher_worse(second))
    assert corrected[1] < corrected[0]


@given(st.lists(tables, min_size=1, max_size=5))
def test_corrected_p_values_are_between_the_raw_ones_and_bonferronis(all_tables: list[Table]) -> None:
    for table, corrected in zip(all_tables, CaseTests(all_tables).corrected(), strict=True):
        assert fisher_worse(table) - 1e-9 <= corrected <= len(all_tables) * fisher_worse(table) + 1e-9


def test_holms_correction_goes_in_steps_by_weight() -> None:
    assert weighted_holm([0.04, 0.01, 0.03], [1 / 3] * 3) == pytest.approx([0.06, 0.03, 0.06])
    assert weighted_holm([0.01, 0.02], [0.5, 0.5]) == pytest.approx([0.02, 0.02])
    assert weighted_holm([0.04, 0.001], [0.5, 0.5]) == pytest.approx([0.04, 0.002])


def test_noise_between_runs_makes_a_change_less_significant() -> None:
    assert with_noise(0.01, 1.0) == 0.01
    assert with_noise(0.01, 4.0) == pytest.approx(1 - NormalDist().cdf(NormalDist().inv_cdf(0.99) / 2))
    assert (with_noise(1.0, 4.0), with_noise(0.9, 4.0)) == (1.0, 0.9)


def test_many_cases_with_one_answer_are_tested_by_the_sign_test() -> None:
    tables = [BROKE] * 20 + [FIXED] * 5
    many, fewer = (permutation_worse([*tables, *[PASSES] * number]) for number in (1_000, 900))
    assert fewer < many < 1.2 * fewer
