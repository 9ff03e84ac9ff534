from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.comparison import compare, pair_cases
from evalmeta.engine.statistics import fisher, mcnemar
from evalmeta.model.statistics import CaseCounts, Comparison, Standing

LABELS = ("before", "after")

sides = st.lists(
    st.builds(CaseCounts, st.integers(1, 12), st.sampled_from("abc"), *[st.integers(0, 3)] * 4),
    unique_by=lambda each: each.number,
)


def case(number: int, passed: int = 1, failed: int = 0, *, utterance: str = "", **others: int) -> CaseCounts:
    return CaseCounts(number, utterance or f"Question {number}", passed, failed, **others)


def compared(before: list[CaseCounts], after: list[CaseCounts]) -> Comparison:
    return compare(before, after, name="Orders", labels=LABELS)


def standing(before: CaseCounts, after: CaseCounts) -> Standing:
    [found] = compared([before], [after]).cases
    return found.standing


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (case(1, 1, 0), case(1, 0, 1), Standing.BROKEN),
        (case(1, 0, 1), case(1, 1, 0), Standing.FIXED),
        (case(1, 0, 1), case(1, 0, 1), Standing.STILL_FAILING),
        (case(1, 3, 2), case(1, 5, 0), Standing.STILL_PASSING),
        (case(1, 3, 2), case(1, 2, 3), Standing.FLAKY),
        (case(1, 2, 1), case(1, 2, 2), Standing.FLAKY),
        (case(1, 3, 2), case(1, 4, 1), Standing.FLAKY),
        (case(1, 5, 0), case(1, 2, 3), Standing.BROKEN),
        (case(1, 3, 2), case(1, 0, 1), Standing.BROKEN),
        (case(1, 2, 3), case(1, 5, 0), Standing.FIXED),
        (case(1, 19, 1), case(1, 1, 19), Standing.BROKEN),
        (case(1, 90, 10), case(1, 60, 40), Standing.STILL_PASSING),
        (case(1, 1, 0), case(1, 0, 0, errors=1), Standing.ERROR),
        (case(1, 1, 0), case(1, 0, 0, undecided=1), Standing.UNDECIDED),
        (case(1, 0, 0, undecided=1), case(1, 0, 1, errors=1), Standing.UNDECIDED),
    ],
)
def test_the_majority_of_iterations_decides_the_standing_of_a_case(
    before: CaseCounts, after: CaseCounts, expected: Standing
) -> None:
    assert standing(before, after) is expected


def test_a_case_is_the_same_by_number_and_utterance_else_by_utterance() -> None:
    before = [case(1), case(2), case(3), case(4, utterance="twice"), case(5, utterance="twice")]
    after = [case(2), case(3, utterance="Question 1"), case(1, utterance="other"), case(6, utterance="twice")]
    pairs = [(old and old.number, new and new.number) for old, new in pair_cases(before, after)]
    assert pairs == [(None, 1), (2, 2), (1, 3), (4, 6), (3, None), (5, None)]


@given(sides, sides)
def test_every_case_of_both_sides_is_compared_once(before: list[CaseCounts], after: list[CaseCounts]) -> None:
    found = compared(before, after).cases
    assert sorted(each.after.number for each in found if each.after) == sorted(each.number for each in after)
    assert sorted(each.before.number for each in found if each.before) == sorted(each.number for each in before)


@given(sides)
def test_nothing_changes_from_a_run_to_itself(side: list[CaseCounts]) -> None:
    found = compared(side, side)
    still = set(Standing) - {Standing.BROKEN, Standing.FIXED, Standing.NEW, Standing.GONE}
    assert {each.standing for each in found.cases} <= still
    assert not found.is_regression("broken")
    assert not found.is_regression("significant")


def test_the_same_cases_are_tested_in_pairs() -> None:
    before = [case(number) for number in range(1, 9)]
    after = [case(number, 0, 1) for number in range(1, 8)] + [case(9)]
    found = compared(before, after)
    assert found.significance.test == "mcnemar"
    assert (found.significance.p_value, found.significance.cases) == (mcnemar(0, 7), 7)
    assert found.is_regression("significant")


def test_other_cases_are_tested_by_their_counts() -> None:
    before = [case(number) for number in range(1, 9)]
    after = [case(number, number % 2, 1, utterance=f"Other {number}") for number in range(1, 9)]
    found = compared(before, after)
    assert found.significance.test == "fisher"
    assert (found.significance.p_value, found.significance.cases) == (fisher((8, 0), (0, 8)), 16)
    assert found.rates == (1.0, 0.0)
    assert (found.is_regression("broken"), found.is_regression("significant")) == (False, True)


def test_what_became_better_by_more_than_noise_is_no_regression() -> None:
    passing, failing = [case(number) for number in range(1, 9)], [case(number, 0, 1) for number in range(1, 9)]
    others = [case(number + 8) for number in range(1, 9)]
    assert not compared(failing, passing).is_regression("significant")
    assert not compared(failing, others).is_regression("significant")


def test_one_broken_case_may_be_noise() -> None:
    found = compared([case(1), case(2)], [case(1), case(2, 0, 1)])
    assert (found.is_regression("broken"), found.is_regression("significant")) == (True, False)


def test_many_flaky_cases_that_tip_over_are_worse_as_a_whole() -> None:
    numbers = range(1, 9)
    found = compared([case(number, 3, 2) for number in numbers], [case(number, 2, 3) for number in numbers])
    assert (found.significance.p_value, found.significance.cases) == (mcnemar(0, 8), 8)
    assert (found.is_regression("broken"), found.is_regression("significant")) == (False, True)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([case(1)], [case(1)], (1, 1, 4)),
        ([case(1, 3)], [case(1, 0, 3)], (3, 1, 4)),
        ([case(1, 4)], [case(1, 4)], None),
        ([case(number, 4) for number in range(1, 11)], [case(number, 4) for number in range(1, 11)], (4, 10, 6)),
        ([case(1, 1)], [case(1, 10)], (1, 1, 4)),
        ([case(1, 10)], [case(1, 0, 10)], None),
        ([case(1)], [case(2)], None),
        ([case(1)], [case(1, 0)], None),
    ],
)
def test_too_few_iterations_are_reported_with_the_number_that_is_needed(
    before: list[CaseCounts], after: list[CaseCounts], expected: tuple[int, int, int] | None
) -> None:
    assert compared(before, after).shortage == expected


@given(st.integers(1, 12), st.integers(1, 30))
def test_as_many_iterations_as_are_needed_show_that_one_case_broke(iterations: int, cases: int) -> None:
    shortage = compared(
        [case(n, iterations) for n in range(cases)], [case(n, iterations) for n in range(cases)]
    ).shortage
    enough = shortage.needed if shortage else iterations
    after = [case(0, 0, enough), *[case(n, enough) for n in range(1, cases)]]
    assert compared([case(n, enough) for n in range(cases)], after).is_regression("significant")


def test_what_a_run_did_not_ask_is_neither_gone_nor_new() -> None:
    whole, part = [case(number) for number in range(1, 5)], [case(2), case(3, 0, 1, utterance="Other")]
    found = compare(whole, part, name="Orders", labels=LABELS, partial=(False, True))
    assert [(each.standing, each.number) for each in found.cases] == [
        (Standing.STILL_PASSING, 2),
        (Standing.NEW, 3),
        (Standing.GONE, 3),
    ]
    assert (found.not_asked, found.rates) == ((0, 2), (1.0, 0.5))
    back = compare([case(2)], whole, name="Orders", labels=LABELS, partial=(True, False))
    assert ([each.number for each in back.cases], back.not_asked) == ([2], (3, 0))


def test_a_cases_iterations_are_tested_on_their_own() -> None:
    found = compared([case(1, 10), case(2, 10)], [case(1, 2, 8), case(2, 9, 1)])
    slipped, other = found.cases
    assert slipped.p_value == 2 * fisher((10, 0), (2, 8))
    assert other.p_value == 1.0
    assert (slipped.rate_changed, found.is_regression("significant")) == (True, True)


def test_a_case_whose_rate_rose_is_no_regression() -> None:
    assert not compared([case(1, 2, 8)], [case(1, 10)]).is_regression("significant")


def test_what_is_averaged_over_iterations_has_no_p_value() -> None:
    [found] = compared([case(1, 9)], [case(1, 0, 9, is_averaged=True)]).cases
    assert (found.standing, found.p_value) == (Standing.BROKEN, None)


@pytest.mark.parametrize(
    ("before", "after"), [([case(1)], [case(1, 0, 1)]), ([case(1, 3)], [case(1, 0)]), ([case(1, 3)], [case(2, 3)])]
)
def test_where_nothing_was_repeated_a_case_has_no_p_value(before: list[CaseCounts], after: list[CaseCounts]) -> None:
    assert [each.p_value for each in compared(before, after).cases] in ([None], [None, None])


@pytest.mark.parametrize(
    ("before", "after"),
    [([], []), ([case(1)], [case(1, 0, errors=1)]), ([case(1)], [case(2, 0)]), ([case(1, 0)], [case(2)])],
)
def test_where_one_side_decided_nothing_nothing_is_said(before: list[CaseCounts], after: list[CaseCounts]) -> None:
    found = compared(before, after)
    assert found.significance is None
    assert None in found.rates


def test_a_new_case_that_fails_is_reported() -> None:
    found = compared([case(1)], [case(1), case(2, 0, 1), case(3)])
    assert [each.number for each in found.cases if each.is_new_failure] == [2]
