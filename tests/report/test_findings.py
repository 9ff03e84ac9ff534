from __future__ import annotations

from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest

import report_runs as make
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.report.findings import Limits, find, limits_of
from evalmeta.report.human import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.run import CaseResult
    from evalmeta.report.report import Report


def failing(number: int, *, first: int = 1) -> Report:
    cases = [make.case(each, Verdict.FAILURE, make.TOPIC_FAILED) for each in range(first, first + number)]
    return make.report(*cases)


def undecided(number: int, **options: object) -> Report:
    cases = [make.case(each, Verdict.UNDECIDED, make.COHERENCE_UNDECIDED) for each in range(1, number + 1)]
    return make.report(make.case(number + 1, Verdict.PASS, make.TOPIC_PASSED), *cases, options=RunOptions(**options))


def test_many_failures_are_shown_in_part_and_named_by_number() -> None:
    text = render([failing(1_000)])
    assert text.count("\nFAILED ") == 50 + 50
    assert "... and 950 more cases (51-1000) did not pass; -v or the html report shows them in full\n" in text
    assert "\n... and 950 more cases (51-1000) of Returns_Desk\n" in text
    assert "1,000 cases: 0 passed, 1,000 failed" in text


def test_all_failures_are_shown_in_full_on_request() -> None:
    text = render([failing(1_000)], detail="all")
    assert text.count("topic_sequence_match): FAILURE") == 1_000
    assert "shows them in full" not in text


def test_a_few_failures_are_all_shown() -> None:
    text = render([failing(30)])
    assert text.count("topic_sequence_match): FAILURE") == 30
    assert " more case" not in text


def test_the_runs_of_a_suite_share_the_limit_by_their_needs() -> None:
    suite = [failing(1_000), failing(3), make.report(make.PASSED), failing(1_000)]
    assert [limit.failing for limit in limits_of(suite)] == [23, 3, 0, 24]


@pytest.mark.parametrize("numbers", [[1, 2, 3, 7], [7]])
def test_numbers_that_are_not_shown_are_joined_to_ranges(numbers: list[int]) -> None:
    report = make.report(*(make.case(number, Verdict.FAILURE, make.TOPIC_FAILED) for number in numbers))
    assert find(report, Limits(0, 0)).failing == numbers


def test_a_list_names_a_case_once_with_the_iterations_in_which_it_failed() -> None:
    cases = [make.case(1, Verdict.FAILURE, make.TOPIC_FAILED, iteration=each) for each in (1, 3)]
    passed = make.case(1, Verdict.PASS, make.TOPIC_PASSED, iteration=2)
    report = make.report(cases[0], passed, cases[1], options=RunOptions(iterations=3))
    [line] = find(report, Limits()).lines
    assert line.startswith("FAILED Returns_Desk  case 1 (in 2 of 3 iterations: 1, 3)  topic_sequence_match")


def test_undecided_cases_are_listed_only_if_they_fail_the_run() -> None:
    assert not find(undecided(2), Limits()).lines
    [first, _] = find(undecided(2, undecided="fail"), Limits()).lines
    assert first.startswith("FAILED Returns_Desk  case 1  undecided: coherence: ")
    [first, _] = find(undecided(2, min_decided=0.9), Limits()).lines
    assert first.startswith("undecided Returns_Desk  case 1  coherence: ")


def test_undecided_cases_are_shown_in_part() -> None:
    text = render([undecided(25)])
    assert text.count("coherence): UNDECIDED") == 10
    assert "... and 15 more cases (11-25) undecided; -v or the html report shows them in full\n" in text


def test_a_case_that_passed_in_part_fails_a_run_that_must_judge_more() -> None:
    report = make.report(make.MIXED_CASES[0], options=RunOptions(min_decided=1))
    [line] = find(report, Limits()).lines
    assert line.startswith("undecided Returns_Desk  case 1  coherence: ")


def test_results_are_read_once_and_not_kept() -> None:
    class Stream(tuple[()]):
        __slots__ = ()
        read = 0

        def __iter__(self) -> Iterator[CaseResult]:  # type: ignore[override]
            Stream.read += 1
            return islice((make.case(each, Verdict.PASS, make.TOPIC_PASSED) for each in count(1)), 10_000)

    report = make.report(make.PASSED)
    found = find(replace(report, run=replace(report.run, cases=Stream())), Limits())
    assert (Stream.read, found.groups, found.failing) == (1, [], [])
