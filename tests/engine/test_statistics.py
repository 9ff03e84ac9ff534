from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import case_result, result
from evalmeta.engine.intervals import clustered, wilson
from evalmeta.engine.statistics import collect, observations, percentile
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, RunOptions, TestResult, Verdict
from evalmeta.model.statistics import CaseCounts, Latency, Measure, PassAtK

PASS, FAILURE, ERROR, UNDECIDED = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED


def answered(latency: float | None = None, *, tokens: Tokens | None = None, number: int = 1) -> CaseResult:
    generated = GeneratedData("Understood.", latency_ms=latency, tokens=tokens)
    return CaseResult(number, 1, "Where is it?", PASS, 0.0, 1.0, generated=generated)


# Hyndman and Fan's definition 1: the smallest number whose share of the sample is reached.
@pytest.mark.parametrize(("share", "rank"), [(0.05, 15), (0.3, 20), (0.4, 20), (0.5, 35), (1.0, 50), (0.0, 15)])
def test_a_percentile_is_the_number_of_the_nearest_rank(share: float, rank: int) -> None:
    assert percentile([15, 20, 35, 40, 50], share) == rank


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_one_of_the_numbers(numbers: list[float], share: float) -> None:
    assert percentile(sorted(numbers), share) in numbers


def test_cases_are_counted_over_iterations() -> None:
    verdicts = [(2, PASS), (1, PASS), (1, FAILURE), (1, ERROR), (2, UNDECIDED)]
    found = collect([case_result(each, number=number) for number, each in verdicts], RunOptions(iterations=3))
    assert found.cases == (CaseCounts(1, "Where is it?", 1, 1, 1, 0), CaseCounts(2, "Where is it?", 1, 0, 0, 1))
    assert [each.number for each in found.flaky] == [1]
    assert (found.interval, found.intervals) == (clustered(found.cases), (wilson(1, 2), wilson(1, 1)))
    assert found.pass_at == (PassAtK(1, 0.75, 0.75, 2), PassAtK(2, 1.0, 0.0, 1))


def test_what_nothing_could_judge_fails_where_the_run_is_strict() -> None:
    case = case_result(PASS, result(PASS), result(UNDECIDED, "coherence"))
    assert collect([case], RunOptions(undecided="fail")).cases[0].failed == 1


def test_a_case_that_is_averaged_is_one_observation_and_counted_as_the_summary_does() -> None:
    judged = [
        TestResult("overlap", FAILURE, score=0.4, threshold=0.5),
        TestResult("overlap", PASS, score=1, threshold=0.5),
    ]
    found = collect([case_result(each.verdict, each) for each in judged], RunOptions(iterations=2))
    assert found.cases == (CaseCounts(1, "Where is it?", 2, is_averaged=True),)
    assert (found.interval, found.intervals, found.flaky) == (None, (None,), ())


def test_what_is_measured_has_a_mean() -> None:
    measured = [
        TestResult(name, UNDECIDED, score=score, is_measured=True)
        for name, score in (("recall", 1), ("cost", 3), ("recall", 0))
    ]
    found = collect([case_result(PASS, *measured, result(PASS))], RunOptions())
    assert found.measures == (Measure("recall", 0.5, 2), Measure("cost", 3.0, 1))


def test_answers_of_all_turns_count() -> None:
    case = answered(20.0, tokens=Tokens(1, 2))._replace(
        earlier=(EarlierTurn("Hi", GeneratedData("x", latency_ms=10.0, tokens=Tokens(3, 4))),)
    )
    found = collect([case], RunOptions())
    assert (found.answers, found.timed, found.tokens) == (2, 2, Tokens(4, 6))


def test_a_run_that_decided_nothing_has_no_interval() -> None:
    found = collect([case_result(ERROR)], RunOptions())
    assert (found.interval, found.latency, found.tokens, found.answers) == (None, None, None, 0)
    assert (found.cases[0].pass_rate, found.cases[0].passes, found.intervals) == (None, None, (None,))


@pytest.mark.parametrize(("passed", "failed", "passes"), [(2, 1, True), (1, 1, False), (0, 1, False)])
def test_a_case_passes_by_the_majority_of_its_iterations(passed: int, failed: int, *, passes: bool) -> None:
    assert CaseCounts(1, "", passed, failed).passes is passes


def test_latencies_are_summed_up_by_percentiles() -> None:
    found = collect([answered(float(each), number=each) for each in range(100, 0, -1)], RunOptions())
    assert (found.latency, found.timed) == (Latency(50.0, 90.0, 95.0, 99.0), 100)


def test_unknown_tokens_and_latencies_are_not_zero() -> None:
    tokens = (None, Tokens(), Tokens(input=3), Tokens(input=4, output=0))
    found = collect([answered(tokens=token) for token in tokens], RunOptions())
    assert (found.tokens, found.told_tokens, found.answers) == (Tokens(7, 0), 2, 4)
    assert (found.latency, found.timed) == (None, 0)
    assert collect([answered(tokens=Tokens(input=3))], RunOptions()).tokens == Tokens(3, None)


def test_a_case_of_several_turns_is_known_by_its_label_or_all_that_was_asked() -> None:
    turns = answered()._replace(earlier=(EarlierTurn("Hello!", GeneratedData("Hi.")),))
    cases = [answered(), turns._replace(number=2), turns._replace(number=3, label="greeting")]
    assert [case.utterance for case in collect(cases, RunOptions()).cases] == [
        "Where is it?",
        "Hello! / Where is it?",
        "greeting",
    ]


def test_a_case_has_all_that_was_asked_and_what_it_expects_whichever_iteration_ended_in_an_error() -> None:
    turns = answered()._replace(earlier=(EarlierTurn("Hello!", GeneratedData("Hi.")),), label="greeting", checks="a b")
    broken = CaseResult(1, 1, "Hello!", ERROR, 0.0, 1.0, error="no line", label="greeting", checks="a b")
    for cases in ([broken, turns], [turns, broken]):
        [case] = collect(cases, RunOptions(iterations=2)).cases
        assert (case.utterance, case.asked, case.checks) == ("greeting", "Hello! / Where is it?", "a b")


def judged(iteration: int, words: str, *, answer: str = "It is on its way.", rater: str = "llm:judge") -> CaseResult:
    result = TestResult("factuality", Verdict.PASS, explanation=words, rater=rater)
    generated = GeneratedData(outcome=answer)
    return CaseResult(1, iteration, "Where is it?", Verdict.PASS, 0.0, 1.0, generated=generated, results=(result,))


def test_a_rating_that_iterations_share_is_one_observation() -> None:
    cached = [judged(iteration, "It is right.") for iteration in range(1, 6)]
    anew = [judged(6, "It is correct."), judged(7, "It is right.", answer="On its way.")]
    rules = [judged(iteration, "equal", rater="rules") for iteration in (8, 9)]
    assert [case.iteration for case in observations([*cached, *anew, *rules])] == [1, 6, 7, 8, 9]
