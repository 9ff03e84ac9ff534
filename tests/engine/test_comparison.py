from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.comparison import ComparedTest, changes_of, match, pair_cases
from evalmeta.engine.gate import compare
from evalmeta.engine.significance import Table, fisher_worse
from evalmeta.model.comparison import CaseComparison, Comparison, KnownTest, Standing
from evalmeta.model.fingerprints import ChangesOfTest, PartChange
from evalmeta.model.run_options import Setup
from evalmeta.model.statistics import CaseCounts

LABELS = ("before", "after")

sides = st.lists(
    st.builds(CaseCounts, st.integers(1, 12), st.sampled_from("abc"), *[st.integers(0, 3)] * 4),
    unique_by=lambda each: each.number,
)


def case(number: int, passed: int = 1, failed: int = 0, *, utterance: str = "", **others: int) -> CaseCounts:
    return CaseCounts(number, utterance or f"Question {number}", passed, failed, **others)


def compared(before: list[CaseCounts], after: list[CaseCounts]) -> Comparison:
    return compare(ComparedTest("Orders", LABELS, before, after))


def standing(before: CaseCounts, after: CaseCounts) -> Standing:
    [found] = compared([before], [after]).cases
    return found.standing


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (case(1, 1, 0), case(1, 0, 1), Standing.SUSPECT),
        (case(1, 0, 1), case(1, 1, 0), Standing.MAYBE_FIXED),
        (case(1, 0, 1), case(1, 0, 1), Standing.STILL_FAILING),
        (case(1, 3, 2), case(1, 5, 0), Standing.STILL_PASSING),
        (case(1, 3, 2), case(1, 2, 3), Standing.FLAKY),
        (case(1, 2, 1), case(1, 2, 2), Standing.FLAKY),
        (case(1, 5, 0), case(1, 2, 3), Standing.FLAKY_NOW),
        (case(1, 5, 0), case(1, 0, 5), Standing.SUSPECT),
        (case(1, 0, 5), case(1, 5, 0), Standing.MAYBE_FIXED),
        (case(1, 0, 5), case(1, 1, 4), Standing.STILL_FAILING),
        (case(1, 3, 2), case(1, 0, 1), Standing.SUSPECT),
        (case(1, 1, 9), case(1, 0, 1), Standing.SUSPECT),
        (case(1, 2, 3), case(1, 5, 0), Standing.MAYBE_FIXED),
        (case(1, 19, 1), case(1, 1, 19), Standing.BROKEN),
        (case(1, 1, 19), case(1, 19, 1), Standing.FIXED),
        (case(1, 90, 10), case(1, 60, 40), Standing.BROKEN),
        (case(1, 1, 0), case(1, 0, 0, errors=1), Standing.ERROR),
        (case(1, 3, 0), case(1, 1, 0, errors=2), Standing.ERROR),
        (case(1, 3, 0), case(1, 2, 0, errors=1), Standing.STILL_PASSING),
        (case(1, 1, 0), case(1, 0, 0, undecided=1), Standing.UNJUDGED),
        (case(1, 0, 1), case(1, 0, 0, undecided=1), Standing.UNDECIDED),
        (case(1, 0, 0, undecided=1), case(1, 0, 1, errors=1), Standing.UNDECIDED),
    ],
)
def test_a_flip_is_suspect_until_it_is_more_than_chance(
    before: CaseCounts, after: CaseCounts, expected: Standing
) -> None:
    assert standing(before, after) is expected


def test_cases_in_quarantine_are_not_compared() -> None:
    quarantined = case(1, 0, 0, quarantined=5)
    assert compared([case(1, 5, 0), case(2)], [quarantined, case(2)]).cases == compared([case(2)], [case(2)]).cases
    assert compared([quarantined, case(2)], [case(1, 0, 5), case(2)]).cases == compared([case(2)], [case(2)]).cases


def test_a_removed_case_was_not_asked_again_although_another_case_has_its_number() -> None:
    before, after = [case(1), case(2)], [case(2, 0, 1, utterance="Question 1")]
    found = match(ComparedTest("Orders", LABELS, before, after, again={2: case(2, 0, 3)})).cases
    assert [(each.standing, each.again) for each in found] == [(Standing.SUSPECT, case(2, 0, 3)), (Standing.GONE, None)]


@given(sides, sides)
def test_every_case_of_both_sides_is_compared_once(before: list[CaseCounts], after: list[CaseCounts]) -> None:
    found = compared(before, after).cases
    assert sorted(each.after.number for each in found if each.after) == sorted(each.number for each in after)
    assert sorted(each.before.number for each in found if each.before) == sorted(each.number for each in before)


@given(sides)
def test_nothing_changes_from_a_run_to_itself(side: list[CaseCounts]) -> None:
    found = compared(side, side)
    still = set(Standing) - {
        Standing.BROKEN,
        Standing.SUSPECT,
        Standing.UNJUDGED,
        Standing.FLAKY_NOW,
        Standing.FIXED,
        Standing.MAYBE_FIXED,
        Standing.NEW,
        Standing.GONE,
    }
    assert {each.standing for each in found.cases} <= still
    assert not found.is_regression(suspects_fail=True)


def test_the_same_cases_are_tested_together() -> None:
    before = [case(number) for number in range(1, 9)]
    after = [case(number, 0, 1) for number in range(1, 8)] + [case(9)]
    found = compared(before, after).significance
    assert (found.test, found.cases, found.change, found.rates) == ("permutation", 7, "worse", (1.0, 0.0))
    assert found.p_value == pytest.approx(0.25**7 / 0.9)


def test_other_cases_are_tested_by_their_counts() -> None:
    before = [case(number) for number in range(1, 9)]
    after = [case(number, number % 2, 1, utterance=f"Other {number}") for number in range(1, 9)]
    found = compared(before, after)
    assert (found.significance.test, found.significance.cases) == ("fisher", 16)
    assert found.significance.p_value == pytest.approx(fisher_worse(Table(8, 0, 0, 8)) / 0.9)
    assert found.significance.rates == (1.0, 0.0)
    assert found.is_regression()


def test_what_became_better_by_more_than_noise_is_no_regression() -> None:
    passing, failing = [case(number) for number in range(1, 9)], [case(number, 0, 1) for number in range(1, 9)]
    others = [case(number + 8) for number in range(1, 9)]
    for after in (passing, others):
        found = compared(failing, after)
        assert (found.is_significantly, found.is_regression()) == ("better", False)


def test_one_flip_in_one_iteration_is_suspect() -> None:
    found = compared([case(1), case(2)], [case(1), case(2, 0, 1)])
    assert [each.number for each in found.of(Standing.SUSPECT)] == [2]
    assert (found.is_regression(suspects_fail=True), found.is_regression()) == (True, False)


def test_a_small_test_that_fails_as_a_whole_is_worse_in_one_iteration() -> None:
    assert compared([case(n) for n in range(3)], [case(n, 0, 1) for n in range(3)]).is_regression()


@pytest.mark.parametrize("after", [case(1, 0, errors=1), case(1, 0, errors=1, undecided=1), case(1, 1, errors=2)])
def test_a_case_that_passed_and_now_ends_in_errors_is_a_regression(after: CaseCounts) -> None:
    found = compared([case(1, 3), case(2, 3)], [after, case(2, 3)])
    assert [each.number for each in found.lost] == [1]
    assert found.is_regression()


@pytest.mark.parametrize(
    ("before", "after"),
    [(case(1, 0, 1), case(1, 0, errors=1)), (case(1, 0, errors=1), case(1)), (case(1, 0, errors=1), case(1, 0, 1))],
)
def test_other_errors_are_no_regression(before: CaseCounts, after: CaseCounts) -> None:
    found = compared([before, case(2)], [after, case(2)])
    assert (found.lost, found.is_regression()) == ((), False)


def test_many_flaky_cases_that_fell_are_worse_as_a_whole() -> None:
    numbers = range(1, 21)
    found = compared([case(number, 4, 1) for number in numbers], [case(number, 3, 2) for number in numbers])
    assert {each.standing for each in found.cases} == {Standing.FLAKY}
    assert found.is_regression()


def test_equal_rates_of_different_numbers_of_iterations_are_no_change() -> None:
    found = compared([case(n, 3, 2) for n in range(9)], [case(n, 6, 4) for n in range(9)])
    assert (found.significance.change, found.significance.p_value) == ("same", 1.0)


def test_what_a_run_did_not_ask_is_not_gone_and_what_only_the_earlier_one_did_not_ask_is_new() -> None:
    whole, part = [case(number) for number in range(1, 5)], [case(2), case(3, 0, 1, utterance="Other")]
    found = compare(ComparedTest("Orders", LABELS, whole, part, partial=(False, True)))
    assert [(each.standing, each.number) for each in found.cases] == [
        (Standing.STILL_PASSING, 2),
        (Standing.NEW, 3),
        (Standing.GONE, 3),
    ]
    assert (found.not_asked, found.significance.rates) == ((0, 2), (1.0, 1.0))
    back = compare(ComparedTest("Orders", LABELS, [case(2)], whole, partial=(True, False)))
    assert ([each.number for each in back.of(Standing.NEW)], back.not_asked) == ([1, 3, 4], (3, 0))


def test_a_cases_iterations_are_tested_on_their_own() -> None:
    found = compared([case(1, 10), case(2, 10)], [case(1, 2, 8), case(2, 10)])
    assert found.cases[0].p_value == pytest.approx(20 * fisher_worse(Table(10, 0, 2, 8)))
    assert found.cases[1].p_value == 1.0
    assert (found.cases[0].change, found.is_regression()) == ("worse", True)


def test_a_case_whose_rate_rose_is_no_regression() -> None:
    assert not compared([case(1, 2, 8)], [case(1, 10)]).is_regression()


def test_what_is_averaged_over_iterations_has_no_p_value() -> None:
    [found] = compared([case(1, 9)], [case(1, 0, 9, is_averaged=True)]).cases
    assert (found.standing, found.p_value) == (Standing.SUSPECT, None)


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


def test_a_new_case_that_fails_is_reported() -> None:
    found = compared([case(1)], [case(1), case(2, 0, 1), case(3)])
    assert [each.number for each in found.cases if each.is_new_failure] == [2]


def test_a_case_that_was_never_judged_before_and_fails_is_reported_as_a_new_one() -> None:
    found = compared([case(1, 0, errors=1)], [case(1, 0, 1)])
    assert found.cases[0].is_new_failure


@pytest.mark.parametrize("iterations", [1, 10])
def test_a_thousand_cases_are_compared(iterations: int) -> None:
    before = [case(n, iterations - n % (iterations + 1), n % (iterations + 1)) for n in range(1000)]
    after = [case(n, n * 7 % (iterations + 1), iterations - n * 7 % (iterations + 1)) for n in range(1000)]
    assert 0 < compared(before, after).significance.p_value <= 1


def counts(number: int, utterance: str = "", passed: int = 1, **others: str) -> CaseCounts:
    return CaseCounts(number, utterance or f"Question {number}", passed, **others)


def paired(before: list[CaseCounts], after: list[CaseCounts]) -> list[tuple[int | None, int | None]]:
    return [(old and old.number, new and new.number) for old, new in pair_cases(before, after)]


def test_a_case_is_the_same_by_number_and_utterance_else_by_utterance() -> None:
    before = [counts(1), counts(2), counts(3), counts(4, "twice"), counts(5, "twice")]
    after = [counts(2), counts(3, "Question 1"), counts(1, "other"), counts(6, "twice")]
    assert paired(before, after) == [(None, 1), (2, 2), (1, 3), (4, 6), (3, None), (5, None)]


def test_cases_that_ask_the_same_are_matched_in_order() -> None:
    before, after = [counts(number, "same") for number in (1, 2, 3)], [counts(number, "same") for number in (2, 3, 4)]
    assert paired(before, after) == [(2, 2), (3, 3), (1, 4)]
    assert paired(before, [counts(7, "same"), counts(8, "same")]) == [(1, 7), (2, 8), (3, None)]


def test_a_case_that_got_another_label_is_the_same_case() -> None:
    before = [counts(1, "greeting", asked="Hello! / Where is it?"), counts(2, "refund", asked="Hi / Refund?")]
    after = [counts(1, "welcome", asked="Hello! / Where is it?"), counts(3, "Refund?"), counts(2, "Hi / Refund?")]
    assert paired(before, after) == [(1, 1), (2, 2), (None, 3)]


def test_a_case_with_the_label_of_an_earlier_baseline_is_the_same_case() -> None:
    assert paired([counts(1, "greeting")], [counts(4, "greeting", asked="Hello! / Where is it?")]) == [(1, 4)]


def test_a_case_that_ended_in_an_error_before_its_last_turn_is_the_same_case() -> None:
    whole, broken = counts(1, "Hello! / Where is it?"), counts(1, "Hello!", passed=0)
    assert paired([whole], [broken]) == paired([broken], [whole]) == [(1, 1)]
    assert paired([whole], [counts(1, "Hello!")]) == [(None, 1), (1, None)]


def test_many_cases_that_ask_the_same_are_matched_quickly() -> None:
    many = [counts(number, "same") for number in range(1, 20_001)]
    moved = [counts(number + 1_000_000, "same") for number in range(1, 20_001)]
    assert len(paired(many, moved)) == 20_000


def matched(*pairs: tuple[CaseCounts | None, CaseCounts | None]) -> list[CaseComparison]:
    return [CaseComparison(Standing.NEW, 1, "", *pair) for pair in pairs]


def test_what_changed_in_a_test_is_counted() -> None:
    cases = matched(
        (counts(1, checks="aaaaaaaa bbbbbbbb"), counts(1, checks="aaaaaaaa")),
        (counts(2, checks="aaaaaaaa bbbbbbbb@0.8"), counts(2, checks="cccccccc bbbbbbbb@0.5")),
        (counts(3, checks="-"), counts(3, checks="aaaaaaaa")),
        (counts(4), counts(4, checks="aaaaaaaa")),
        (counts(5, checks="aaaaaaaa"), None),
        (None, counts(6, checks="aaaaaaaa")),
    )
    assert changes_of(cases, KnownTest(()), KnownTest(())) == ChangesOfTest(removed=1, weaker=2, changed=1, new=1)


def test_what_answered_or_judged_is_compared_where_both_are_known() -> None:
    old = KnownTest((), "Desk", "default", Setup("python a:b", "1111", "rules", "", "0.1.0"))
    new = KnownTest((), "Desk", "threshold=4", Setup("python a:b", "2222", "llm m", "v2", "0.1.0"))
    assert changes_of([], old, new).parts == (
        PartChange("rater", "rules", "llm m"),
        PartChange("options of judging", "default", "threshold=4"),
        PartChange("version of the agent", "1111", "2222"),
    )
    other = KnownTest((), "Desk", "default", Setup("http POST https://a", "", "rules", "", "0.2.0"))
    assert [part.what for part in changes_of([], old, other).parts] == ["agent", "version of evalmeta"]
    assert changes_of([], KnownTest(()), new) == changes_of([], new, KnownTest(())) == ChangesOfTest()
