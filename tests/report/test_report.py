from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

import report_runs as make
from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare
from evalmeta.model.run import CaseResult, Run, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.statistics import CaseCounts
from evalmeta.report.report import BaselineVerdict, decision, why_incomplete


@given(make.runs)
def test_cases_are_counted_as_the_policy_counts_them(run: Run) -> None:
    report = make.report_of(run)
    verdicts, summary = [report.verdict_of(case) for case in run.cases], report.summary
    counts = tuple(map(verdicts.count, (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED)))
    assert counts == (summary.passed + summary.partly_judged, summary.failed, summary.errors, summary.undecided)


def test_a_complete_run_is_not_incomplete() -> None:
    assert why_incomplete(make.mixed().run) is None


def test_a_run_with_missing_cases_has_not_passed() -> None:
    cut = replace(make.run(make.MIXED_CASES[0]), total=3)
    assert why_incomplete(cut) == "the run is COMPLETED with 1 of 3 case results"
    assert not make.report_of(cut).has_passed


def test_an_incomplete_run_says_why() -> None:
    assert decision(make.broken_off()) == "not passed: the run is ERROR with 1 of 5 case results: the disk is full"


def test_a_run_in_progress_says_how_far_it_is() -> None:
    for status, word in ((RunStatus.IN_PROGRESS, "in progress"), (RunStatus.NEW, "waiting")):
        going_on = replace(make.run(make.MIXED_CASES[0]), total=3, status=status)
        assert decision(make.report_of(going_on)) == f"{word}: 1 of 3 case results so far"


def test_a_pass_by_rate_says_that_cases_failed() -> None:
    reached = "passed: the pass rate of 75 % meets the required 70 %, although 1 case failed in 1 of 2 iterations"
    assert decision(make.rated(0.7)) == reached


def test_cases_and_their_failures_are_counted_separately() -> None:
    failed = [make.case(number, Verdict.FAILURE, make.TOPIC_FAILED, iteration=i) for number, i in ((1, 1), (1, 2))]
    options = RunOptions(iterations=2)
    assert decision(make.report(*failed, options=options)) == "not passed: 1 case failed in 2 of 2 iterations"
    failed += [make.case(2, Verdict.FAILURE, make.TOPIC_FAILED), make.case(2, Verdict.PASS, iteration=2)]
    some = "not passed: 2 cases failed in at least one iteration (3 of their 4 case results)"
    assert decision(make.report(*failed, options=options)) == some
    failed[-1] = failed[-1]._replace(verdict=Verdict.FAILURE)
    uneven = make.report(*failed[:3], options=RunOptions(most_iterations=2))
    assert decision(uneven) == "not passed: 2 cases failed in all their iterations"
    assert (decision(make.report(failed[2], options=uneven.run.options)), uneven.case_count) == (
        "not passed: 1 case failed in 1 of 1 iteration",
        2,
    )
    assert decision(make.report(*failed, options=options)) == "not passed: 2 cases failed in all 2 iterations"


def test_cases_without_expectations_need_no_rater() -> None:
    assert decision(make.report(make.case(1, Verdict.UNDECIDED))) == "not passed: the cases have no expectations"


def test_a_missed_pass_rate_shows_both_rates() -> None:
    assert decision(make.rated(0.8)) == "not passed: the pass rate of 75 % is below the required 80 %"


def test_a_run_that_passed_says_so() -> None:
    assert decision(make.report(make.case(1, Verdict.PASS, make.TOPIC_PASSED))) == "passed: all judged cases passed"


def test_a_run_without_decisions_says_so() -> None:
    assert (
        decision(make.report(make.MIXED_CASES[3]))
        == "not passed: no case was judged: only an LLM rater can judge this, and this run has none"
    )


def test_undecided_cases_fail_when_asked_to() -> None:
    strict = make.report(make.MIXED_CASES[3], options=RunOptions(undecided="fail"))
    assert decision(strict) == "not passed: 1 case failed"


def test_a_run_without_an_end_lasts_until_its_last_case() -> None:
    assert make.report_of(replace(make.run(*make.MIXED_CASES), ended=None)).duration == 5.25
    assert make.report_of(replace(make.run(), ended=None, status=RunStatus.NEW)).duration == 0


def test_a_place_is_as_exact_as_what_is_known() -> None:
    report, case = make.mixed(), make.MIXED_CASES[1]
    assert report.location(case) == f"{make.FILE}:20"
    assert replace(report, lines={}).location(case) == make.FILE
    assert replace(report, file=None).location(case) is None


def unjudged(number: int, *explanations: str) -> CaseResult:
    results = (
        TestResult("bot_response_rating", Verdict.UNDECIDED, explanation=explanation) for explanation in explanations
    )
    return make.case(number, Verdict.UNDECIDED, *results)


def test_reasons_are_counted_by_expectation_and_not_by_their_details() -> None:
    found = make.report(
        unjudged(1, "the words do not decide: similarity 0.41", "the words do not decide: similarity 0.52"),
        unjudged(2, "the words do not decide: similarity 0.60; missing: 7", "no rater"),
        make.MIXED_CASES[3],
    ).undecided_reasons
    assert found == {
        "bot_response_rating": {"the words do not decide": 3, "no rater": 1},
        "coherence": {"only an LLM rater can judge this, and this run has none": 1},
    }


def test_a_reason_that_is_always_the_same_is_shown_in_full() -> None:
    found = make.report(unjudged(1, "refused; perhaps", "refused; perhaps")).undecided_reasons
    assert found == {"bot_response_rating": {"refused; perhaps": 2}}


def test_an_undecided_result_without_a_reason_gets_one() -> None:
    assert make.report(unjudged(1, "")).undecided_reasons == {"bot_response_rating": {"no rater could judge it": 1}}


def test_a_run_that_passed_says_how_many_results_were_judged() -> None:
    report = make.report(make.MIXED_CASES[0], make.MIXED_CASES[3])
    assert report.decision() == "passed: all judged cases passed; 1 of 3 results were judged (33.33 %)"


@pytest.mark.parametrize("min_decided", [0.3, 1 / 3, None])
def test_a_run_that_judged_enough_passes(min_decided: float | None) -> None:
    options = RunOptions(min_decided=min_decided)
    assert make.report(make.MIXED_CASES[0], make.MIXED_CASES[3], options=options).has_passed


def test_a_run_that_judged_too_little_has_not_passed() -> None:
    report = make.report(make.MIXED_CASES[0], make.MIXED_CASES[3], options=RunOptions(min_decided=0.8))
    assert report.decision() == "not passed: only 1 of 3 results were judged (33.33 %; required: at least 80 %)"


def test_a_new_case_with_the_number_of_a_removed_known_failure_is_not_forgiven() -> None:
    before, after = [CaseCounts(2, "Old", 0, 1)], [CaseCounts(2, "New", 0, 1)]
    comparison = compare(ComparedTest("Orders", ("a", "b"), before, after))
    assert BaselineVerdict(comparison, passed=False, text="").known == frozenset()
    same = compare(ComparedTest("Orders", ("a", "b"), before, before))
    assert BaselineVerdict(same, passed=False, text="").known == {2}
