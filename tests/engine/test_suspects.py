from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare, compare_all
from evalmeta.model.comparison import Standing
from evalmeta.model.statistics import CaseCounts, RunCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.comparison import CaseComparison, Comparison

CASES = 30
ALWAYS, NEVER = (1, 0), (0, 1)


def known(number: int, runs: Sequence[tuple[int, int]]) -> CaseCounts:
    return CaseCounts.of_runs(number, f"Question {number}", tuple(RunCounts(*run) for run in runs))


def now(number: int, passed: int, failed: int, **others: int) -> CaseCounts:
    return CaseCounts(number, f"Question {number}", passed, failed, **others)


def flipped(
    runs: Sequence[tuple[int, int]] = (ALWAYS,),
    *,
    again: Mapping[int, tuple[int, int]] | None = None,
    after: CaseCounts | None = None,
    others: Sequence[tuple[int, int]] | None = None,
    failing_runs: int = 0,
) -> Comparison:
    """Compare a test whose first case passed in these runs and fails now; the others pass as they did."""
    iterations = sum(runs[0])
    before = [known(1, runs), *(known(number, others or [(iterations, 0)] * len(runs)) for number in range(2, CASES))]
    rest = [now(number, iterations, 0) for number in range(2, CASES)]
    answers = {number: now(number, *counts) for number, counts in (again or {}).items()}
    first = after or now(1, 0, iterations)
    return compare(
        ComparedTest("Orders", ("a", "b"), before, [first, *rest], again=answers, failing_runs={1: failing_runs})
    )


def first(comparison: Comparison) -> CaseComparison:
    return comparison.cases[0]


def test_one_pass_acquits() -> None:
    assert first(flipped(again={1: (1, 19)})).standing is Standing.BACK
    assert not flipped(again={1: (1, 19)}).is_regression(suspects_fail=True)


def test_a_case_that_fails_all_answers_that_it_needs_is_broken() -> None:
    needed = first(flipped()).needed
    assert needed is not None
    assert first(flipped(again={1: (0, needed - 1)})).standing is Standing.SUSPECT
    assert first(flipped(again={1: (0, needed)})).standing is Standing.BROKEN
    assert flipped(again={1: (0, needed)}).is_regression()


def test_more_failures_never_make_a_broken_case_less_broken() -> None:
    for iterations in (1, 2, 3, 5, 10):
        standings = [first(flipped(again={1: (0, failed)}, runs=[(iterations, 0)])).standing for failed in range(30)]
        broken = [standing is Standing.BROKEN for standing in standings]
        assert broken == sorted(broken)


def test_the_more_is_known_of_a_case_the_fewer_answers_it_needs() -> None:
    needed = [first(flipped([ALWAYS] * number)).needed or 0 for number in (1, 2, 5, 10)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] <= 4


def test_an_agent_whose_answers_never_differ_needs_few() -> None:
    assert first(flipped([(5, 0)] * 3)).needed == 3


def test_a_case_that_passed_rarely_is_not_asked_again() -> None:
    rare = [ALWAYS, *[NEVER] * 5]
    found = first(flipped(rare, again={1: (0, 40)}))
    assert (found.standing, found.needed, found.left_to_ask) == (Standing.SUSPECT, None, 0)


def test_a_case_that_no_rater_judges_any_more_is_broken_only_if_it_is_never_judged() -> None:
    unjudged = now(1, 0, 0, undecided=1)
    assert first(flipped(after=unjudged)).standing is Standing.UNJUDGED
    assert first(flipped(after=unjudged, again={1: (1, 0)})).standing is Standing.BACK
    answers = {1: now(1, 0, 0, undecided=limits.MAX_ANSWERS_AGAIN)}
    test = ComparedTest("Orders", ("a", "b"), [known(1, [ALWAYS])], [unjudged], again=answers)
    assert first(compare(test)).standing is Standing.BROKEN


def test_errors_show_nothing() -> None:
    answers = {1: now(1, 0, 0, errors=20)}
    test = ComparedTest("Orders", ("a", "b"), [known(1, [ALWAYS])], [now(1, 0, 1)], again=answers)
    assert (first(compare(test)).standing, first(compare(test)).is_unconfirmed) == (Standing.SUSPECT, True)


def test_an_error_among_the_new_answers_of_a_suspect_case_is_not_ignored() -> None:
    answers = {1: now(1, 0, 2, errors=1)}
    found = first(compare(ComparedTest("Orders", ("a", "b"), [known(1, [ALWAYS])], [now(1, 0, 1)], again=answers)))
    assert (found.standing, found.is_unconfirmed, found.has_only_errors) == (Standing.SUSPECT, True, False)


def test_a_test_without_any_judged_answer_before_needs_no_prior() -> None:
    broken = ComparedTest("A", ("a", "b"), [known(1, [ALWAYS])], [now(1, 0, 1)])
    errors = ComparedTest("B", ("a", "c"), [now(1, 0, 0, errors=1)], [now(1, 0, 1)])
    assert [len(test.suspects) for test in compare_all([broken, errors]).tests] == [1, 0]


MIXED = [(5, 0)] * 8 + [(0, 5)] * 2
"""Answers that are alike within a run: 8 of 10 runs passed, each with all its answers."""


def test_answers_that_are_alike_within_a_run_are_not_asked_again() -> None:
    found = flipped([(5, 0)] * 10, others=MIXED)
    assert (found.is_alike, first(found).standing, first(found).left_to_ask) == (True, Standing.SUSPECT, 0)


@pytest.mark.parametrize(("failing_runs", "standing"), [(0, Standing.SUSPECT), (4, Standing.BROKEN)])
def test_then_failing_in_several_runs_counts(failing_runs: int, standing: Standing) -> None:
    found = flipped([(5, 0)] * 10, others=MIXED, failing_runs=failing_runs)
    assert first(found).standing is standing


def test_with_a_baseline_of_one_run_such_noise_is_red() -> None:
    found = flipped([(5, 0)], again={1: (0, 20)})
    assert (first(found).standing, found.is_uniform, found.runs) == (Standing.BROKEN, True, 1)


ONE_ANSWER = [ALWAYS] * 8 + [NEVER] * 2


def test_where_one_answer_a_run_cannot_tell_passing_cases_are_asked_again() -> None:
    found = flipped([ALWAYS] * 10, others=ONE_ANSWER, again={1: (0, 20)})
    assert first(found).standing is Standing.BROKEN
    assert 10 <= sum(times for _, times in found.probes) <= 180
    same = {number: (times, 0) for number, times in found.probes}
    alike = flipped([ALWAYS] * 10, others=ONE_ANSWER, again={1: (0, 20), **same})
    assert (alike.is_alike, first(alike).standing, alike.probes) == (True, Standing.SUSPECT, ())
    differing = flipped([ALWAYS] * 10, others=ONE_ANSWER, again={1: (0, 20), **same, 2: (3, 1)})
    assert (differing.is_alike, first(differing).standing, differing.probes) == (False, Standing.BROKEN, ())


def test_one_agent_is_judged_by_the_answers_to_all_its_tests() -> None:
    broken = ComparedTest(
        "A", ("a", "b"), [known(1, [ALWAYS] * 10)], [now(1, 0, 1)], again={1: now(1, 0, 20)}, subject="Shop"
    )
    cases = [known(number, ONE_ANSWER) for number in range(1, 20)]
    other = ComparedTest("B", ("a", "c"), cases, [now(number, 1, 0) for number in range(1, 20)], subject="Shop")
    assert sum(times for _, times in compare_all([broken, other]).tests[1].probes) > 0
    assert compare_all([broken]).tests[0].probes == ()


@pytest.mark.parametrize(("broken", "subjects"), [(0, "AB"), (1, "AB"), (0, "ABA"), (1, "ABA"), (2, "ABA")])
def test_every_test_of_a_command_is_judged_whatever_agent_it_asks(broken: int, subjects: str) -> None:
    cases, fine = [known(1, [ALWAYS]), known(2, [ALWAYS])], now(2, 1, 0)
    tests = [
        ComparedTest(
            f"Test_{place}",
            ("a", "b"),
            cases,
            [now(1, 0, 1) if place == broken else now(1, 1, 0), fine],
            again={1: now(1, 0, 20)} if place == broken else {},
            subject=subject,
        )
        for place, subject in enumerate(subjects)
    ]

    compared = compare_all(tests).tests

    assert [comparison.name for comparison in compared] == [test.name for test in tests]
    standings = [comparison.cases[0].standing for comparison in compared]
    assert [place for place, standing in enumerate(standings) if standing is Standing.BROKEN] == [broken]
