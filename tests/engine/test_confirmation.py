from __future__ import annotations

import pytest

from evalmeta.engine.comparison import compare
from evalmeta.engine.confirmation import MOST_ANSWERS, answers_needed, confirm
from evalmeta.model.statistics import CaseCounts, Comparison, Standing

STABLE = 30


def flipped(number: int, *, iterations: int = 1) -> Comparison:
    """Compare a stable test whose first cases flipped, as before a confirmation."""
    before = [CaseCounts(each, "", iterations) for each in range(1, STABLE + 1)]
    after = [CaseCounts(each, "", *((0, 1) if each <= number else (1, 0))) for each in range(1, STABLE + 1)]
    return compare(before, after, name="Orders", labels=("a", "b"), will_confirm=True)


def again(*pairs: tuple[int, int]) -> dict[int, CaseCounts]:
    return {number: CaseCounts(number, "", *pair) for number, pair in enumerate(pairs, 1)}


def standings(comparison: Comparison) -> list[Standing]:
    return [each.standing for each in comparison.cases if each.again]


def test_a_case_that_fails_all_new_answers_broke_and_one_that_passes_is_back() -> None:
    found = confirm(flipped(3, iterations=5), again((0, 5), (5, 0), (4, 1)))
    assert standings(found) == [Standing.BROKEN, Standing.BACK, Standing.BACK]
    assert found.is_regression("significant")


def test_a_flip_that_is_back_fails_neither_gate() -> None:
    found = confirm(flipped(1), again((3, 2)))
    assert not found.is_regression("significant")
    assert not found.is_regression("broken")


def test_flips_that_are_all_back_are_no_fall_of_all_cases() -> None:
    first = flipped(3, iterations=5)
    assert first.is_regression("significant")
    assert not confirm(first, again((5, 0), (5, 0), (5, 0))).is_regression("significant")
    assert confirm(first, again((2, 3), (3, 2), (2, 3))).is_significantly == "worse"


def test_too_few_new_answers_leave_a_case_suspect() -> None:
    found = confirm(flipped(1), again((0, 2)))
    assert standings(found) == [Standing.SUSPECT]
    assert (found.is_regression("significant"), found.is_regression("broken")) == (False, True)


def test_errors_confirm_nothing() -> None:
    found = confirm(flipped(1), {1: CaseCounts(1, "", errors=5)})
    assert standings(found) == [Standing.SUSPECT]
    assert standings(confirm(flipped(1), {})) == []


@pytest.mark.parametrize(("number", "iterations"), [(1, 1), (1, 5), (2, 3), (3, 5)])
def test_as_many_new_answers_as_are_needed_show_that_all_suspect_cases_broke(number: int, iterations: int) -> None:
    suspects = flipped(number, iterations=iterations)
    needed = answers_needed(suspects)
    assert set(standings(confirm(suspects, again(*[(0, needed)] * number)))) == {Standing.BROKEN}
    first_only = again((0, needed - 1), *[(needed, 0)] * (number - 1))
    assert standings(confirm(suspects, first_only))[0] is Standing.SUSPECT


def test_more_iterations_of_the_baseline_need_fewer_new_answers() -> None:
    needed = [answers_needed(flipped(1, iterations=each)) for each in (1, 3, 5, 10)]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] == 5


def test_only_the_chosen_cases_need_more_answers() -> None:
    assert answers_needed(flipped(2), numbers=[1]) == answers_needed(flipped(2))
    assert answers_needed(flipped(2), numbers=[]) == 0
    assert answers_needed(flipped(0)) == 0


def test_no_more_than_a_limit_is_asked_for() -> None:
    assert answers_needed(flipped(20)) == MOST_ANSWERS


def test_a_first_comparison_that_will_be_confirmed_uses_half_of_the_level() -> None:
    sides = [CaseCounts(1, "", 5)], [CaseCounts(1, "", 0, 5)]
    once, first = (compare(*sides, name="", labels=("", ""), will_confirm=each) for each in (False, True))
    assert first.cases[0].p_value == pytest.approx(2 * once.cases[0].p_value)
    assert first.significance.p_value == pytest.approx(2 * once.significance.p_value)
