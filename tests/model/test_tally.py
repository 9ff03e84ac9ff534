from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import case_result, result
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.evaluation import Quarantine
from evalmeta.model.run import NEEDS_MODEL, CaseResult, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.tally import detail, summarise

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
    assert summarise([case], RunOptions()).partly_judged == 1
    assert summarise([case], RunOptions(undecided="fail")).failed == 1


def test_an_undecided_result_does_not_turn_an_error_into_a_failure() -> None:
    case = case_result(ERROR, result(UNDECIDED))
    assert summarise([case], RunOptions(undecided="fail")).errors == 1


def test_undecided_results_are_listed_by_name_with_their_counts() -> None:
    case = case_result(PASS, result(UNDECIDED, "coherence"), result(UNDECIDED, "factuality"))
    assert summarise([case, case], RunOptions()).undecided_results == (("coherence", 2), ("factuality", 2))


QUARANTINE = Quarantine("flaky", date(2027, 1, 31))


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("others", [(), (PASS,), (FAILURE,), (ERROR,), (UNDECIDED,), (PASS, FAILURE)])
def test_a_case_in_quarantine_changes_no_number_but_its_own(verdict: Verdict, others: tuple[Verdict, ...]) -> None:
    quarantined = case_result(verdict, result(verdict))._replace(quarantine=QUARANTINE)
    counted = [*map(case_result, others)]
    without, with_it = summarise(counted, RunOptions()), summarise([quarantined, *counted], RunOptions())
    expected = replace(without, total=without.total + 1, quarantined=1, quarantined_passed=int(verdict is PASS))
    assert (with_it, with_it.verdict) == (expected, without.verdict)


def test_a_quarantine_that_has_ended_counts() -> None:
    ended = case_result(FAILURE)._replace(quarantine=QUARANTINE._replace(has_ended=True))
    assert (summarise([ended], RunOptions()).failed, summarise([ended], RunOptions()).quarantined) == (1, 0)


def test_a_case_in_quarantine_has_no_counts_for_comparisons() -> None:
    quarantined = case_result(FAILURE, result(FAILURE))._replace(quarantine=QUARANTINE)
    [counts] = detail([quarantined, quarantined], RunOptions(iterations=2)).cases()
    assert (counts.passed, counts.failed, counts.errors, counts.undecided, counts.quarantined) == (0, 0, 0, 0, 2)


@given(st.lists(st.sampled_from(list(Verdict))))
def test_every_case_is_counted_once(verdicts: list[Verdict]) -> None:
    summary = summarise(map(case_result, verdicts), RunOptions())
    counted = summary.passed + summary.partly_judged + summary.failed + summary.errors + summary.undecided
    assert counted == summary.total == len(verdicts)


def scored(number: int, iteration: int, score: float) -> CaseResult:
    verdict = PASS if score >= 0.5 else FAILURE
    judged = TestResult("overlap", verdict, score=score, threshold=0.5)
    return CaseResult(number, iteration, "Where is it?", verdict, 0.0, 1.0, (judged,))


def test_averaged_results_are_averaged_over_all_iterations() -> None:
    cases = [scored(1, 1, 0.2), scored(2, 1, 1.0), scored(1, 2, 0.9), scored(2, 2, 1.0)]
    summary = summarise(cases, RunOptions(iterations=2))
    assert (summary.passed, summary.failed, summary.succeeded) == (4, 0, True)
    assert [(average.number, average.score, average.count) for average in summary.averages] == [
        (1, 0.55, 2),
        (2, 1.0, 2),
    ]


def test_an_average_below_its_threshold_fails_every_iteration_of_its_case() -> None:
    summary = summarise([scored(1, 1, 0.6), scored(1, 2, 0.2), scored(2, 1, 1.0)], RunOptions(iterations=2))
    assert (summary.passed, summary.failed, summary.succeeded) == (1, 2, False)


def test_what_is_only_measured_is_not_undecided() -> None:
    case = case_result(PASS, result(PASS), TestResult("latency", UNDECIDED, score=12.0, is_measured=True))
    summary = summarise([case], RunOptions(undecided="fail"))
    assert (summary.passed, summary.undecided_results) == (1, ())


NEEDS_JUDGE = result(UNDECIDED, "coherence")._replace(explanation=f"{NEEDS_MODEL}judge this")


def test_a_partly_judged_case_is_counted_apart_and_counts_in_the_pass_rate() -> None:
    partly = case_result(PASS, result(PASS), result(UNDECIDED))
    summary = summarise([case_result(PASS, result(PASS)), partly, case_result(FAILURE, result(FAILURE))], RunOptions())
    assert (summary.passed, summary.partly_judged, summary.failed, summary.undecided) == (1, 1, 1, 0)
    assert summary.pass_rate == 2 / 3


def test_a_partly_judged_case_that_is_averaged_is_counted_apart() -> None:
    cases = [scored(1, 1, 1.0), scored(1, 2, 1.0), scored(2, 1, 0.2)]
    cases[1] = cases[1]._replace(results=(*cases[1].results, result(UNDECIDED)))
    summary = summarise(cases, RunOptions(iterations=2))
    assert (summary.passed, summary.partly_judged, summary.failed) == (1, 1, 1)


@pytest.mark.parametrize(
    ("judged", "undecided", "verdict"), [(1, 1, PASS), (1, 2, UNDECIDED), (3, 3, PASS), (0, 2, UNDECIDED)]
)
def test_half_of_the_results_must_be_judged_by_default(judged: int, undecided: int, verdict: Verdict) -> None:
    results = (*[result(PASS)] * judged, *[result(UNDECIDED)] * undecided)
    summary = summarise([case_result(PASS if judged else UNDECIDED, *results)], RunOptions())
    assert summary.verdict is verdict


@pytest.mark.parametrize(("min_decided", "verdict"), [(None, PASS), (0.0, PASS), (0.25, PASS), (0.5, UNDECIDED)])
def test_what_only_a_model_can_judge_is_outside_the_default_share_and_no_other(
    min_decided: float | None, verdict: Verdict
) -> None:
    case = case_result(PASS, result(PASS), *[NEEDS_JUDGE] * 3)
    summary = summarise([case], RunOptions(min_decided=min_decided))
    assert summary.verdict is verdict
    assert summary.coverage == (1, 4, 3)
    assert summary.undecided_results == (("coherence", 3),)


def test_a_run_with_nothing_but_what_needs_a_model_is_not_passed() -> None:
    assert summarise([case_result(UNDECIDED, NEEDS_JUDGE)], RunOptions()).verdict is UNDECIDED


def test_errors_do_not_hide_that_enough_was_judged() -> None:
    broken = case_result(ERROR)._replace(error="the agent is down")
    summary = summarise([case_result(PASS, result(PASS)), *[broken] * 3], RunOptions())
    assert (summary.verdict, summary.judges_enough) == (ERROR, True)


def test_means_of_functions_are_per_function() -> None:
    one, hundred = (
        TestResult("function", UNDECIDED, score=score, label=f"function checks:{name}", is_measured=True)
        for name, score in (("one", 1.0), ("hundred", 100.0))
    )
    measures = detail([case_result(PASS, result(PASS), one, hundred)], RunOptions()).measures()
    assert [(measure.name, measure.mean) for measure in measures] == [
        ("function checks:one", 1.0),
        ("function checks:hundred", 100.0),
    ]


def test_means_with_thresholds_are_per_function() -> None:
    results = [
        TestResult("function", PASS if score else FAILURE, score=score, label=f"function checks:{name}", threshold=0.5)
        for name, score in (("bad", 0.0), ("good", 1.0))
    ]
    summary = summarise([case_result(FAILURE, *results)], RunOptions())
    assert [(average.name, average.score, average.verdict) for average in summary.averages] == [
        ("function checks:bad", 0.0, FAILURE),
        ("function checks:good", 1.0, PASS),
    ]
    assert summary.failed == 1


@given(st.lists(st.tuples(st.integers(1, 3), st.lists(st.sampled_from([PASS, FAILURE, UNDECIDED]), max_size=3))))
def test_the_detailed_tally_counts_cases_as_the_summary_does(drawn: list[tuple[int, list[Verdict]]]) -> None:
    cases = [
        case_result(case_verdict(map(result, verdicts)), *map(result, verdicts))._replace(
            number=number, iteration=place
        )
        for place, (number, verdicts) in enumerate(drawn)
    ]
    tally = detail(cases, RunOptions())
    summary, counts = tally.summary(), list(tally.cases())
    assert sum(count.passed for count in counts) == summary.passed + summary.partly_judged
    assert sum(count.partly_judged for count in counts) == summary.partly_judged
    assert sum(count.undecided for count in counts) == summary.undecided
