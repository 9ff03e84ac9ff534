from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare, compare_all
from evalmeta.model.fingerprints import ChangesOfTest, PartChange
from evalmeta.model.statistics import CaseCounts
from evalmeta.report.comparison import (
    change_texts,
    comparison_json,
    comparison_lines,
    is_unchanged,
    p_text,
    suite_lines,
)
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.comparison import Comparison


def case(number: int, passed: int = 1, failed: int = 0, errors: int = 0, undecided: int = 0) -> CaseCounts:
    return CaseCounts(number, f"Question {number}", passed, failed, errors, undecided)


def other(number: int, passed: int, failed: int) -> CaseCounts:
    return CaseCounts(number, "Another question", passed, failed)


BEFORE = [case(1), case(2, 0, 1), case(3, 10), case(4), case(5), case(6), case(7), case(9)]
AFTER = [case(1, 0, 1), case(2), case(3, 8, 2), case(4, 0, 0, 1), case(5, 0, 0, 0, 1), other(6, 0, 1), case(7)]


def orders(
    before: list[CaseCounts], after: list[CaseCounts], again: Mapping[int, CaseCounts] | None = None
) -> Comparison:
    return compare(ComparedTest("Orders", ("4KB1", "4KB2"), before, after, again=again or {}))


def lines(
    before: list[CaseCounts],
    after: list[CaseCounts],
    *,
    suspects_fail: bool = False,
    again: Mapping[int, CaseCounts] | None = None,
) -> list[str]:
    found = comparison_lines(orders(before, after, again), suspects_fail=suspects_fail)
    return [line.text for line in found]


def test_what_changed_in_the_test_itself_is_said_in_sentences() -> None:
    parts = (PartChange("rater", "rules", "llm m"), PartChange("options of judging", "default", "threshold=4"))
    assert list(change_texts(ChangesOfTest(3, 2, 1, 4, parts))) == [
        "3 cases were removed.",
        "2 expectations are weaker, 1 is changed, 4 are new or stricter.",
        "Another rater: rules before, llm m now.",
        "Other options of judging: default before, threshold=4 now.",
    ]
    assert list(change_texts(ChangesOfTest(1, changed=1))) == ["1 case was removed.", "1 expectation is changed."]
    assert list(change_texts(ChangesOfTest())) == []


def test_a_test_with_changes_is_shown_although_its_results_are_the_same() -> None:
    same = orders([case(1)], [case(1)])
    assert is_unchanged(same)
    assert not is_unchanged(replace(same, changes=ChangesOfTest(weaker=1)))


def test_the_verdict_comes_first_then_what_changed() -> None:
    judged, still = "the 4 of 6 cases that both runs judged", "0 still failing, 1 still passing"
    assert lines(BEFORE, AFTER) == [
        "Orders: WORSE, 2 suspect, 1 passed before and ended in errors; 1 new case fails (4KB2 against 4KB1)",
        f"  pass rate 75 % before, 70 % now: chance could explain it (permutation test of {judged}, p = 0.34)",
        "  error               4  1/1 -> error     Question 4",
        "  suspect             1  1/1 -> 0/1       Question 1",
        "  no longer judged    5  1/1 -> undecided  Question 5",
        "  flaky now           3  10/10 -> 8/10    (p = 1)  Question 3",
        "  maybe fixed         2  0/1 -> 1/1       Question 2",
        "  new                 6  - -> 0/1         Another question",
        "  gone                6  1/1 -> -         Question 6",
        "  gone                9  1/1 -> -         Question 9",
        f"  0 broken, 1 suspect, 1 no longer judged, 1 flaky now, 1 maybe fixed, {still}, 1 new, 2 gone, 1 error",
        "  A suspect case passed before and does not pass now, but chance could explain it.",
    ]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([case(1), case(2, 0, 1)], [case(1), case(2, 0, 1)], "no change"),
        ([case(1, 5)], [case(1, 4, 1)], "no significant change"),
        ([case(1, 0, 1), case(2)], [case(1), case(2)], "no significant change"),
        ([case(1), case(2)], [case(1), case(2, 0, 1)], "not significantly worse, but 1 suspect"),
        ([case(1, 9), case(2, 9, 1)], [case(1, 0, 9), case(2, 9)], "WORSE, 1 broken"),
        ([case(n) for n in range(9)], [case(n, 0, 1) for n in range(9)], "WORSE, 9 suspect"),
        ([case(n, 0, 1) for n in range(9)], [case(n) for n in range(9)], "better"),
        ([case(1)], [], "nothing to compare"),
    ],
)
def test_the_verdict_is_short(before: list[CaseCounts], after: list[CaseCounts], verdict: str) -> None:
    assert lines(before, after)[0] == f"Orders: {verdict} (4KB2 against 4KB1)"


def test_a_strict_gate_calls_every_flip_worse() -> None:
    assert lines([case(1)], [case(1, 0, 1)], suspects_fail=True)[0] == "Orders: WORSE, 1 suspect (4KB2 against 4KB1)"


def test_significant_changes_are_named_significant() -> None:
    numbers = range(1, 21)
    found = lines([case(number) for number in numbers], [other(number, 0, 1) for number in numbers])
    assert found[1] == "  pass rate 100 % before, 0 % now: significant (Fisher's exact test of 40 cases, p < 0.001)"


def test_unchanged_runs_do_not_mention_noise() -> None:
    assert lines([case(1), case(2, 0, 1)], [case(1), case(2, 0, 1)])[1:] == [
        "  pass rate 50 %, as before (2 cases)",
        "  0 broken, 0 suspect, 1 still failing, 1 still passing",
    ]


def test_flaky_cases_are_shown_when_their_rate_changed() -> None:
    assert lines([case(1, 3, 2), case(2, 3, 2)], [case(1, 2, 3), case(2, 3, 2)])[2:] == [
        "  flaky               1  3/5 -> 2/5       (p = 1)  Question 1",
        "  0 broken, 0 suspect, 0 still failing, 0 still passing, 2 flaky",
    ]


def test_the_answers_of_cases_that_were_asked_again_are_shown() -> None:
    sides = [case(n) for n in range(1, 4)], [case(n, 0, 1) for n in range(1, 4)]
    found = lines(*sides, again={1: case(1, 0, 20), 2: case(2, 1), 3: case(3, 0, 2)})
    assert found[0] == "Orders: WORSE, 1 broken, 1 suspect (4KB2 against 4KB1)"
    assert found[2:5] == [
        "  broken              1  1/1 -> 0/1, again 0/20  Question 1",
        "  suspect             3  1/1 -> 0/1, again 0/2  Question 3",
        "  back                2  1/1 -> 0/1, again 1/1  Question 2",
    ]
    assert found[-1] == "  A suspect case did not pass again, but was asked too rarely to show that it broke."


def test_a_rare_pass_cannot_be_told_from_a_broken_case() -> None:
    assert "passed rarely before" in lines([case(1, 1, 9), case(2)], [case(1, 0, 1), case(2)])[-1]


def test_noise_between_runs_is_named_where_a_baseline_of_one_run_cannot_show_it() -> None:
    found = lines(
        [case(n, 3) for n in range(1, 9)],
        [case(1, 0, 3), *[case(n, 3) for n in range(2, 9)]],
        again={1: case(1, 0, 20)},
    )
    assert found[-1].startswith("  The baseline has one run, and no answers differed within a run")


def test_all_tests_of_a_command_are_compared_together() -> None:
    same = [case(n) for n in range(1, 5)]
    worse = [case(1, 0, 1), *same[1:]]
    tests = [ComparedTest(f"Test{number}", ("a", f"{number}"), same, worse) for number in range(12)]
    [first, *others] = suite_lines(compare_all(tests))
    assert [line.text for line in first] == [
        "12 tests together: pass rate 100 % before, 75 % now: significant (permutation test of 48 cases, p < 0.001)"
    ]
    assert len(others) == 12


def test_errors_beside_results_are_shown() -> None:
    assert "1/1 + 2 errors" in lines([case(1)], [case(1, 1, 0, 2)])[2]


def test_cases_that_were_not_asked_are_counted() -> None:
    whole, part = [case(number) for number in range(1, 4)], [case(1)]
    after = compare(ComparedTest("Orders", ("a", "b"), whole, part, partial=(False, True)))
    before = compare(ComparedTest("Orders", ("a", "b"), part, whole[:2], partial=(True, False)))
    assert [line.text for line in comparison_lines(after)][-1] == "  2 cases were not run"
    assert [line.text for line in comparison_lines(before)][-1] == "  1 case was not run before"
    assert comparison_json(after, suspects_fail=True)["notAsked"] == {"before": 0, "after": 2}


def test_colours_tell_worse_from_better() -> None:
    compared = orders(BEFORE, AFTER)
    styles = {line.text.split()[0]: line.style for line in comparison_lines(compared)}
    assert [styles[word] for word in ("suspect", "maybe", "error", "new", "gone")] == [
        *("worse", "better", "worse", "worse", "plain")
    ]


def test_a_case_that_was_asked_again_shows_no_p_value_of_its_first_answers() -> None:
    found = lines([case(1)], [case(1, 0, 5)], again={1: case(1, 0, 20)})
    assert "  broken              1  1/1 -> 0/5, again 0/20  Question 1" in found


@pytest.mark.parametrize(("p", "text"), [(0.0004, "p < 0.001"), (0.0313, "p = 0.031"), (1.0, "p = 1")])
def test_p_values_are_short(p: float, text: str) -> None:
    assert p_text(p) == text


@given(st.text(), st.text())
def test_texts_of_a_comparison_are_cleaned(name: str, utterance: str) -> None:
    found = compare(ComparedTest(name, (name, name), [], [CaseCounts(1, utterance, 1, 0)]))
    for line in comparison_lines(found):
        assert clean(line.text) == line.text
        assert "\n" not in line.text


def test_json_has_every_case_with_its_counts() -> None:
    compared = orders(BEFORE, AFTER)
    found = comparison_json(compared, suspects_fail=True)
    assert found["regression"] is True
    assert found["significance"] == {
        "test": "permutation",
        "change": "worse",
        "passRate": {"before": 0.75, "after": 0.7},
        "pValue": pytest.approx(0.34, abs=0.01),
        "cases": 4,
        "significant": False,
    }
    assert (found["counts"]["gone"], found["counts"]["suspect"]) == (2, 1)
    assert found["cases"][0] == {
        "testNumber": 1,
        "utterance": "Question 1",
        "standing": "suspect",
        "before": {"passed": 1, "failed": 0, "errors": 0, "undecided": 0},
        "after": {"passed": 0, "failed": 1, "errors": 0, "undecided": 0},
        "askedAgain": None,
        "leftToAsk": 7,
        "pValue": None,
    }
    assert found["cases"][-1]["after"] is None
    nothing = comparison_json(orders([], []), suspects_fail=False)
    assert (nothing["regression"], nothing["significance"], nothing["baselineRuns"]) == (False, None, 1)


def test_errors_are_counted_in_plain_words() -> None:
    broken = [case(number, 0, 0, 1) for number in (1, 2)]
    counts = "  0 broken, 0 suspect, 0 still failing, 0 still passing, 2 errors"
    assert counts in lines([case(1), case(2)], broken)
