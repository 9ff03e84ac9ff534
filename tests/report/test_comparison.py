from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.comparison import compare
from evalmeta.model.statistics import CaseCounts
from evalmeta.report.comparison import comparison_json, comparison_lines, p_text
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.model.statistics import FailOn


def case(number: int, passed: int = 1, failed: int = 0, errors: int = 0, undecided: int = 0) -> CaseCounts:
    return CaseCounts(number, f"Question {number}", passed, failed, errors, undecided)


def other(number: int, passed: int, failed: int) -> CaseCounts:
    return CaseCounts(number, "Another question", passed, failed)


BEFORE = [case(1), case(2, 0, 1), case(3, 10), case(4), case(5), case(6), case(7), case(9)]
AFTER = [case(1, 0, 1), case(2), case(3, 8, 2), case(4, 0, 0, 1), case(5, 0, 0, 0, 1), other(6, 0, 1), case(7)]


def lines(before: list[CaseCounts], after: list[CaseCounts], *, fail_on: FailOn = "broken") -> list[str]:
    compared = compare(before, after, name="Orders", labels=("4KB1", "4KB2"))
    return [each.text for each in comparison_lines(compared, fail_on=fail_on)]


def test_regressions_come_first_and_unchanged_cases_are_counted() -> None:
    assert lines(BEFORE, AFTER) == [
        "Orders: 4KB2 against 4KB1",
        "  broken           1  1/1 -> 0/1       Question 1",
        "  fixed            2  0/1 -> 1/1       Question 2",
        "  error            4  1/1 -> error     Question 4",
        "  undecided        5  1/1 -> undecided  Question 5",
        "  new              6  - -> 0/1         Another question",
        "  gone             6  1/1 -> -         Question 6",
        "  gone             9  1/1 -> -         Question 9",
        "  still passing    3  10/10 -> 8/10    (p = 0.47)  Question 3",
        "  1 broken, 1 fixed, 0 still failing, 2 still passing, 1 new, 2 gone, 1 error, 1 undecided",
        "  pass rate: 87.5 % before, 60 % now: could be noise (McNemar's exact test of 4 cases, p = 1)",
    ]


def test_significant_changes_are_named_significant() -> None:
    numbers = range(1, 21)
    found = lines([case(number) for number in numbers], [other(number, 0, 1) for number in numbers])
    assert found[-1].endswith("0 % now: significant at p < 0.05 (Fisher's exact test of 40 cases, p < 0.001)")


def test_one_significant_case_is_named_at_the_end() -> None:
    others = [case(number, 20) for number in range(2, 6)]
    found = lines([case(1, 20), *others], [case(1, 0, 20), *others])
    assert found[-1] == (
        "  pass rate: 100 % before, 80 % now: case 1 changed significantly, "
        "but the cases together did not (McNemar's exact test of 5 cases, p = 1)"
    )
    found = lines(
        [case(number, 190, 10) for number in range(1, 13)], [case(number, 110, 90) for number in range(1, 13)]
    )
    numbers = ", ".join(map(str, range(1, 11)))
    told = f"but cases {numbers} and 2 more changed significantly"
    assert found[-1] == f"  100 % of the cases pass, as before, {told}"


def test_flaky_cases_are_shown_when_their_rate_changed() -> None:
    assert lines([case(1, 3, 2), case(2, 3, 2)], [case(1, 2, 3), case(2, 3, 2)])[1:] == [
        "  flaky            1  3/5 -> 2/5       (p = 1)  Question 1",
        "  0 broken, 0 fixed, 0 still failing, 0 still passing, 2 flaky",
        "  pass rate: 100 % before, 50 % now: could be noise (McNemar's exact test of 2 cases, p = 1)",
    ]


def test_too_few_iterations_are_reported_if_only_significant_changes_fail() -> None:
    several, one = [case(number, 4) for number in range(1, 11)], [case(1)]
    assert "  4 iterations cannot show that one case of 10 broke; run both with at least 6" in lines(
        several, several, fail_on="significant"
    )
    assert "  1 iteration cannot show that a case broke; run both with at least 4" in lines(
        one, one, fail_on="significant"
    )
    assert "cannot show" not in "".join(lines(several, several))
    compared = compare(one, one, name="Orders", labels=("a", "b"))
    assert comparison_json(compared, fail_on="broken")["iterationsNeeded"] == 4


def test_cases_that_were_not_asked_are_counted() -> None:
    whole, part = [case(number) for number in range(1, 4)], [case(1)]
    after = compare(whole, part, name="Orders", labels=("a", "b"), partial=(False, True))
    before = compare(part, whole[:2], name="Orders", labels=("a", "b"), partial=(True, False))
    assert [line.text for line in comparison_lines(after)][2] == "  2 cases were not asked"
    assert [line.text for line in comparison_lines(before)][2] == "  1 case was not asked before"
    assert comparison_json(after, fail_on="broken")["notAsked"] == {"before": 0, "after": 2}


def test_unchanged_runs_do_not_mention_noise() -> None:
    assert lines([case(1), case(2, 0, 1)], [case(1), case(2, 0, 1)])[1:] == [
        "  0 broken, 0 fixed, 1 still failing, 1 still passing",
        "  50 % of the cases pass, as before",
    ]


def test_a_run_without_judged_cases_cannot_be_compared() -> None:
    assert lines([case(1)], [])[-1] == "  no case was judged in both runs, so there is nothing to compare"


def test_colours_tell_worse_from_better() -> None:
    compared = compare(BEFORE, AFTER, name="Orders", labels=("a", "b"))
    styles = {line.text.split()[0]: line.style for line in comparison_lines(compared)}
    assert [styles[word] for word in ("broken", "fixed", "new", "gone")] == ["worse", "better", "worse", "plain"]


@pytest.mark.parametrize(("p", "text"), [(0.0004, "p < 0.001"), (0.0313, "p = 0.031"), (1.0, "p = 1")])
def test_p_values_are_short(p: float, text: str) -> None:
    assert p_text(p) == text


@given(st.text(), st.text())
def test_texts_of_a_comparison_are_cleaned(name: str, utterance: str) -> None:
    found = compare([], [CaseCounts(1, utterance, 1, 0)], name=name, labels=(name, name))
    for line in comparison_lines(found):
        assert clean(line.text) == line.text
        assert "\n" not in line.text


def test_json_has_every_case_with_its_counts() -> None:
    compared = compare(BEFORE, AFTER, name="Orders", labels=("4KB1", "4KB2"))
    found = comparison_json(compared, fail_on="broken")
    assert found["regression"] is True
    assert found["passingShare"] == {"before": 0.875, "after": 0.6}
    assert found["significance"] == {"test": "mcnemar", "pValue": 1.0, "cases": 4, "significant": False}
    assert found["counts"]["gone"] == 2
    assert found["cases"][0] == {
        "testNumber": 1,
        "utterance": "Question 1",
        "standing": "broken",
        "before": {"passed": 1, "failed": 0, "errors": 0, "undecided": 0},
        "after": {"passed": 0, "failed": 1, "errors": 0, "undecided": 0},
        "pValue": None,
    }
    assert found["cases"][-1]["after"] is None
    nothing = comparison_json(compare([], [], name="", labels=("", "")), fail_on="significant")
    assert (nothing["regression"], nothing["significance"], nothing["iterationsNeeded"]) == (False, None, None)
