from __future__ import annotations

import pytest

from engine.builders import result
from evalmeta.model.aggregation import case_verdict, coverage_of, means_of
from evalmeta.model.run import NEEDS_MODEL, CaseResult, TestResult, Verdict

PASS, FAILURE, ERROR, UNDECIDED = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], UNDECIDED),
        ([UNDECIDED], UNDECIDED),
        ([UNDECIDED, PASS], PASS),
        ([PASS, ERROR, UNDECIDED], ERROR),
        ([PASS, ERROR, FAILURE], FAILURE),
    ],
)
def test_the_worst_result_is_the_verdict_of_the_case(verdicts: list[Verdict], expected: Verdict) -> None:
    assert case_verdict(result(verdict) for verdict in verdicts) is expected


@pytest.mark.parametrize("verdict", [PASS, FAILURE, UNDECIDED])
def test_a_measured_result_never_decides_a_case(verdict: Verdict) -> None:
    measured = result(verdict)._replace(is_measured=True)
    assert case_verdict([measured]) is UNDECIDED
    assert case_verdict([measured, result(UNDECIDED)]) is UNDECIDED
    assert case_verdict([measured, result(PASS)]) is PASS


def averaged(score: float | None, verdict: Verdict, *, threshold: float = 0.5, name: str = "overlap") -> TestResult:
    return TestResult(name, verdict, score=score, threshold=threshold)


def test_results_with_a_threshold_count_by_their_mean() -> None:
    turns = [averaged(0.2, FAILURE), averaged(0.8, PASS)]
    assert case_verdict(turns) is PASS
    assert case_verdict([*turns, averaged(0.2, FAILURE)]) is FAILURE


def test_each_name_has_a_mean_of_its_own() -> None:
    assert case_verdict([averaged(1.0, PASS), averaged(0.0, FAILURE, name="calls")]) is FAILURE


def test_a_mean_that_misses_its_threshold_by_rounding_alone_reaches_it() -> None:
    assert (
        case_verdict([averaged(score, verdict, threshold=0.2) for score, verdict in [(0.1, FAILURE), (0.3, PASS)]])
        is PASS
    )


def test_a_mean_with_an_unjudged_result_cannot_pass() -> None:
    assert case_verdict([averaged(None, UNDECIDED), averaged(0.6, PASS)]) is UNDECIDED
    assert case_verdict([averaged(None, UNDECIDED), averaged(0.2, FAILURE)]) is FAILURE


def test_a_mean_without_any_score_fails_if_a_result_could_not_be_judged() -> None:
    assert case_verdict([averaged(None, UNDECIDED)]) is FAILURE
    assert case_verdict([averaged(None, UNDECIDED), averaged(1.0, PASS, name="calls")]) is FAILURE
    assert case_verdict([averaged(None, ERROR)]) is ERROR
    assert case_verdict([averaged(None, UNDECIDED), averaged(None, ERROR)]) is FAILURE


def test_a_result_without_data_does_not_count_in_the_mean() -> None:
    untold = averaged(None, UNDECIDED)._replace(threshold=None)
    assert case_verdict([untold, averaged(0.6, PASS)]) is PASS


def test_an_error_is_not_averaged_away() -> None:
    assert case_verdict([averaged(1.0, PASS), averaged(None, ERROR)]) is ERROR


def test_less_is_better_where_a_result_has_shown_it() -> None:
    [mean] = means_of([averaged(0.1, PASS), averaged(0.8, FAILURE)]).values()
    assert (mean.score, mean.verdict) == (pytest.approx(0.45), PASS)
    assert case_verdict([averaged(0.4, PASS), averaged(0.8, FAILURE)]) is FAILURE


def test_a_pass_just_below_its_threshold_turns_nothing_round() -> None:
    assert case_verdict([averaged(0.5 - 1e-12, PASS), averaged(0.9, PASS), averaged(0.1, FAILURE)]) is PASS


@pytest.mark.parametrize(
    ("results", "error", "verdict", "coverage"),
    [
        ([result(PASS), result(FAILURE), result(UNDECIDED)], None, FAILURE, (2, 3, 0)),
        ([result(PASS), result(UNDECIDED)._replace(is_measured=True)], None, PASS, (1, 1, 0)),
        ([result(UNDECIDED)._replace(is_measured=True)], None, UNDECIDED, (0, 1, 0)),
        ([result(UNDECIDED)._replace(explanation=f"{NEEDS_MODEL}judge this")], None, UNDECIDED, (0, 1, 1)),
        ([result(PASS), result(ERROR)], None, ERROR, (1, 2, 1)),
        ([result(PASS)], "the agent is down", ERROR, (1, 2, 1)),
        ([], "the agent is down", ERROR, (0, 1, 1)),
        ([], None, UNDECIDED, (0, 1, 0)),
        ([], None, PASS, (1, 1, 0)),
    ],
)
def test_coverage_counts_every_result_that_should_be_judged(
    results: list[TestResult], error: str | None, verdict: Verdict, coverage: tuple[int, int, int]
) -> None:
    case = CaseResult(1, 1, "Hi", verdict, started=0, ended=0, results=tuple(results), error=error)
    assert coverage_of(case) == coverage
