from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.builders import case_result, result
from evalmeta.engine.summary import summarise
from evalmeta.model.run import CaseResult, RunOptions, TestResult, Verdict

PASS, FAILURE, ERROR, UNDECIDED = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED


def test_errors_and_undecided_cases_are_no_part_of_the_pass_rate() -> None:
    summary = summarise(map(case_result, [PASS, PASS, PASS, FAILURE, ERROR, UNDECIDED]), RunOptions())
    assert summary.pass_rate == 0.75
    assert (summary.total, summary.passed, summary.failed, summary.errors, summary.undecided) == (6, 3, 1, 1, 1)


def test_a_run_with_an_error_does_not_succeed() -> None:
    assert not summarise(map(case_result, [PASS, ERROR]), RunOptions()).succeeded


def test_a_pass_rate_that_is_reached_succeeds() -> None:
    cases = [PASS] * 7 + [FAILURE] * 3
    assert summarise(map(case_result, cases), RunOptions(min_pass_rate=0.7)).succeeded
    assert not summarise(map(case_result, cases), RunOptions(min_pass_rate=0.71)).succeeded


def test_a_run_in_which_nothing_was_decided_has_shown_nothing() -> None:
    summary = summarise([case_result(UNDECIDED)], RunOptions())
    assert summary.pass_rate is None
    assert not summary.succeeded


def test_undecided_results_fail_a_case_when_the_options_say_so() -> None:
    case = case_result(PASS, result(PASS), result(UNDECIDED))
    assert summarise([case], RunOptions()).passed == 1
    assert summarise([case], RunOptions(undecided="fail")).failed == 1


def test_an_undecided_result_does_not_turn_an_error_into_a_failure() -> None:
    case = case_result(ERROR, result(UNDECIDED))
    assert summarise([case], RunOptions(undecided="fail")).errors == 1


def test_undecided_results_are_listed_by_name_with_their_counts() -> None:
    case = case_result(PASS, result(UNDECIDED, "coherence"), result(UNDECIDED, "factuality"))
    assert summarise([case, case], RunOptions()).undecided_results == (("coherence", 2), ("factuality", 2))


@given(st.lists(st.sampled_from(list(Verdict))))
def test_every_case_is_counted_once(verdicts: list[Verdict]) -> None:
    summary = summarise(map(case_result, verdicts), RunOptions())
    counted = summary.passed + summary.failed + summary.errors + summary.undecided
    assert counted == summary.total == len(verdicts)


def scored(number: int, iteration: int, score: float) -> CaseResult:
    verdict = PASS if score >= 0.5 else FAILURE
    judged = TestResult("overlap", verdict, score=score, threshold=0.5)
    return CaseResult(number, iteration, "Where is it?", verdict, 0.0, 1.0, (judged,))


def test_averaged_results_are_averaged_over_all_iterations() -> None:
    cases = [scored(1, 1, 0.2), scored(2, 1, 1.0), scored(1, 2, 0.9), scored(2, 2, 1.0)]
    summary = summarise(cases, RunOptions(iterations=2))
    assert (summary.passed, summary.failed, summary.succeeded) == (4, 0, True)
    assert [(each.number, each.score, each.count) for each in summary.averages] == [(1, 0.55, 2), (2, 1.0, 2)]


def test_an_average_below_its_threshold_fails_every_iteration_of_its_case() -> None:
    summary = summarise([scored(1, 1, 0.6), scored(1, 2, 0.2), scored(2, 1, 1.0)], RunOptions(iterations=2))
    assert (summary.passed, summary.failed, summary.succeeded) == (1, 2, False)


def test_what_is_only_measured_is_not_undecided() -> None:
    case = case_result(PASS, result(PASS), TestResult("latency", UNDECIDED, score=12.0, is_measured=True))
    summary = summarise([case], RunOptions(undecided="fail"))
    assert (summary.passed, summary.undecided_results) == (1, ())
