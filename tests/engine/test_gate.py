from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare, compare_all, detectable_fall, noise_of
from evalmeta.engine.significance import Table, fisher_worse
from evalmeta.model.comparison import Standing
from evalmeta.model.statistics import CaseCounts, RunCounts


def side(*passed: int, of: int) -> list[CaseCounts]:
    return [CaseCounts(number, f"{number}", count, of - count) for number, count in enumerate(passed, 1)]


def compared(before: list[CaseCounts], after: list[CaseCounts], name: str = "Orders") -> ComparedTest:
    return ComparedTest(name, ("a", "b"), before, after)


def test_a_fall_of_one_test_is_found_among_many() -> None:
    steady = [compared(side(*[5] * 10, of=5), side(*[5] * 10, of=5), f"Test{number}") for number in range(19)]
    fell = compared(side(*[5, 4] * 5, of=5), side(*[2, 3] * 5, of=5), "Fell")
    found = compare_all([*steady, fell])
    assert [test.name for test in found.tests if test.is_significantly == "worse"] == ["Fell"]


def test_a_small_fall_of_all_tests_is_found_together() -> None:
    tests = [compared(side(*[1] * 4, of=1), side(1, 1, 1, 0, of=1), f"Test{number}") for number in range(12)]
    found = compare_all(tests)
    assert found.is_significantly == "worse"
    assert not any(test.is_regression() for test in found.tests)


def test_one_test_alone_is_not_corrected_for_others() -> None:
    before, after = side(*[1] * 8, of=1), side(*[0] * 4, *[1] * 4, of=1)
    alone, [first, _] = (
        compare(compared(before, after)),
        compare_all([compared(before, after), compared(before, before)]).tests,
    )
    assert alone.significance
    assert first.significance
    assert alone.significance.p_value < first.significance.p_value


def test_falls_of_all_cases_together_have_four_and_a_half_percent() -> None:
    fell = compare(compared(side(10, of=10), side(5, of=10)))
    assert fell.significance
    assert fell.significance.p_value == pytest.approx(fisher_worse(Table(10, 0, 5, 5)) * 0.05 / 0.045)


counts = st.integers(1, 5).flatmap(
    lambda of: st.lists(st.tuples(st.integers(0, of), st.integers(0, of)), min_size=1, max_size=8).map(
        lambda rows: (of, rows)
    )
)


@given(counts, st.integers(0, 7))
def test_more_failures_never_turn_red_into_green(drawn: tuple[int, list[tuple[int, int]]], place: int) -> None:
    of, rows = drawn
    before, after = [row[0] for row in rows], [row[1] for row in rows]
    place %= len(rows)
    worse = [*after[:place], 0, *after[place + 1 :]]
    first = compare(compared(side(*before, of=of), side(*after, of=of)))
    if first.is_uniform:
        return
    last = compare(compared(side(*before, of=of), side(*worse, of=of)))
    if first.is_significantly == "worse" and not last.is_uniform:
        assert last.is_significantly == "worse"


def test_answers_that_never_differ_within_a_run_count_once() -> None:
    found = compare(compared(side(*[5] * 10, of=5), side(0, 0, *[5] * 8, of=5)))
    assert (found.is_uniform, found.is_regression()) == (True, False)
    assert [case.standing for case in found.suspects] == [Standing.SUSPECT] * 2
    acquitted = ComparedTest(
        "Orders", ("a", "b"), side(*[5] * 10, of=5), side(*[0] * 4, *[5] * 6, of=5), again={1: CaseCounts(1, "1", 1, 0)}
    )
    assert (compare(acquitted).is_uniform, compare(acquitted).is_significantly) == (False, "worse")
    differing = compare(compared(side(*[5] * 9, 4, of=5), side(0, 0, *[5] * 8, of=5)))
    assert (differing.is_uniform, differing.is_regression()) == (False, True)


def history(runs: list[list[int]], of: int) -> list[CaseCounts]:
    """Return the cases of a baseline; `runs` has how many answers to each case passed in each run."""
    return [
        CaseCounts.of_runs(number, f"{number}", tuple(RunCounts(passed, of - passed) for passed in column))
        for number, column in enumerate(zip(*runs, strict=True), 1)
    ]


def test_good_and_bad_days_of_an_agent_make_a_fall_less_significant() -> None:
    steady, varying = [[3, 2] * 10] * 6, [[4, 4] * 10, [2, 1] * 10, [4, 3] * 10, [2, 2] * 10, [4, 3] * 10, [2, 2] * 10]
    assert noise_of(compare(compared(history(steady, 4), side(*[2] * 20, of=4)))) == 1.0
    assert noise_of(compare(compared(history(varying, 4), side(*[2] * 20, of=4)))) > 5
    before, after = [compare(compared(history(runs, 4), side(*[2, 1] * 10, of=4))) for runs in (steady, varying)]
    assert (before.is_significantly, after.is_significantly) == ("worse", "same")


@pytest.mark.slow
@pytest.mark.parametrize("cases", [10_000])
def test_ten_thousand_cases_are_compared(cases: int) -> None:
    before = side(*(number % 3 > 0 for number in range(cases)), of=1)
    after = side(*(number % 7 > 0 for number in range(cases)), of=1)
    assert compare(compared(before, after)).significance is not None


def cases(number: int, passed: int, failed: int) -> list[CaseCounts]:
    return [CaseCounts(place, f"Question {place}", passed, failed) for place in range(1, number + 1)]


def in_runs(number: int, passed: int, failed: int) -> list[CaseCounts]:
    runs = (RunCounts(1),) * passed + (RunCounts(0, 1),) * failed
    return [CaseCounts.of_runs(place, f"Question {place}", runs) for place in range(1, number + 1)]


@pytest.mark.parametrize(
    ("known", "iterations", "fall"),
    [(in_runs(30, 10, 0), 1, 10), (in_runs(200, 9, 1), 1, 7), (cases(200, 9, 1), 5, 4), (cases(30, 1, 0), 1, 23)],
)
def test_more_cases_runs_and_iterations_find_smaller_falls(known: list[CaseCounts], iterations: int, fall: int) -> None:
    assert detectable_fall(known, iterations=iterations) == fall


def test_iterations_that_never_differ_count_as_one_answer() -> None:
    runs = (RunCounts(5, 0), RunCounts(5, 0), RunCounts(0, 5))
    alike = [CaseCounts.of_runs(number, "Same", runs[number % 3 :] + runs[: number % 3]) for number in range(1, 31)]
    single = [CaseCounts(number, "Same", 2, 1) for number in range(1, 31)]
    assert detectable_fall(alike, iterations=5) == detectable_fall(single, iterations=1)


@pytest.mark.parametrize("known", [[], cases(30, 0, 0), cases(30, 0, 5), cases(1, 1, 0)])
def test_without_passed_answers_no_fall_can_be_found(known: list[CaseCounts]) -> None:
    assert detectable_fall(known) is None
