from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import case_result, result
from evalmeta.engine.statistics import collect, fisher, mcnemar, percentile, wilson
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, RunOptions, TestResult, Verdict
from evalmeta.model.statistics import CaseCounts, Interval, Latency, Measure

PASS, FAILURE, ERROR, UNDECIDED = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED

counts = st.integers(0, 60)
trials = st.integers(1, 300).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


def answered(latency: float | None = None, *, tokens: Tokens | None = None, number: int = 1) -> CaseResult:
    generated = GeneratedData("Understood.", latency_ms=latency, tokens=tokens)
    return CaseResult(number, 1, "Where is it?", PASS, 0.0, 1.0, generated=generated)


# R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17
# (1998), table I, method 3.
@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_the_literature(passed: int, total: int, low: float, high: float) -> None:
    assert wilson(passed, total) == pytest.approx((low, high), abs=5e-5)


def test_of_no_trial_nothing_is_known() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0)


@given(trials)
def test_an_interval_holds_the_share_and_stays_within_0_and_1(trial: tuple[int, int]) -> None:
    low, high = wilson(*trial)
    assert 0.0 <= low <= trial[0] / trial[1] <= high <= 1.0


@given(trials)
def test_the_interval_of_failures_mirrors_that_of_passes(trial: tuple[int, int]) -> None:
    passed, total = trial
    low, high = wilson(passed, total)
    assert wilson(total - passed, total) == pytest.approx((1 - high, 1 - low))


@given(trials)
def test_more_confidence_is_a_wider_interval(trial: tuple[int, int]) -> None:
    (low, high), (wider_low, wider_high) = wilson(*trial), wilson(*trial, confidence=0.99)
    assert wider_low <= low
    assert high <= wider_high


# S. Siegel, "Nonparametric Statistics" (1956), table D, has the one-sided tails: 0.011 for 1 of 10, 0.004 for 0 of 8.
# A. Agresti, "Categorical Data Analysis" (1990), p. 350, has 86 against 150, exact p by scipy (binomtest).
@pytest.mark.parametrize(
    ("fixed", "broken", "p"),
    [(1, 9, 0.021484375), (0, 8, 0.0078125), (86, 150, 3.71593614e-5), (5, 5, 1.0), (0, 0, 1.0)],
)
def test_mcnemars_exact_test_is_the_sign_test_of_pairs_that_changed(fixed: int, broken: int, p: float) -> None:
    assert mcnemar(fixed, broken) == pytest.approx(p, rel=1e-8)


@given(counts, counts)
def test_mcnemars_p_is_a_probability_and_knows_no_direction(fixed: int, broken: int) -> None:
    assert 0.0 < mcnemar(fixed, broken) <= 1.0
    assert mcnemar(fixed, broken) == mcnemar(broken, fixed)


@given(counts, counts)
def test_mcnemars_p_is_the_sum_of_exact_binomials(fixed: int, broken: int) -> None:
    total = fixed + broken
    exact = 2 * sum(math.comb(total, each) for each in range(min(fixed, broken) + 1)) / 2**total
    assert mcnemar(fixed, broken) == pytest.approx(min(1.0, exact))


# R. A. Fisher, "The Design of Experiments" (1935), the lady who tastes tea: 17/70 on one side, twice that on two.
# The second is Fisher's of convictions among twins of criminals (1962), as in R; p by scipy (fisher_exact).
@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ((3, 1), (1, 3), 34 / 70),
        ((10, 2), (3, 15), 0.0005367241191),
        ((8, 2), (1, 5), 0.03496503497),
        ((0, 0), (3, 1), 1.0),
    ],
)
def test_fishers_exact_test_is_that_of_the_literature(
    first: tuple[int, int], second: tuple[int, int], p: float
) -> None:
    assert fisher(first, second) == pytest.approx(p, rel=1e-9)


@given(counts, counts, counts, counts)
def test_fishers_p_is_a_probability_and_knows_no_order(a: int, b: int, c: int, d: int) -> None:
    p = fisher((a, b), (c, d))
    assert 0.0 < p <= 1.0
    assert fisher((c, d), (a, b)) == pytest.approx(p)
    assert fisher((b, a), (d, c)) == pytest.approx(p)


@given(counts, counts)
def test_the_same_counts_differ_by_noise_alone(passed: int, failed: int) -> None:
    assert fisher((passed, failed), (passed, failed)) == pytest.approx(1.0)


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
    assert (found.interval, found.intervals) == (wilson(2, 3), (wilson(1, 2), wilson(1, 1)))


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
    case = replace(
        answered(20.0, tokens=Tokens(1, 2)),
        earlier=(EarlierTurn("Hi", GeneratedData("x", latency_ms=10.0, tokens=Tokens(3, 4))),),
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
    found = collect([answered(tokens=each) for each in tokens], RunOptions())
    assert (found.tokens, found.told_tokens, found.answers) == (Tokens(7, 0), 2, 4)
    assert (found.latency, found.timed) == (None, 0)
    assert collect([answered(tokens=Tokens(input=3))], RunOptions()).tokens == Tokens(3, None)


def test_a_case_of_several_turns_is_known_by_its_label_or_all_that_was_asked() -> None:
    turns = replace(answered(), earlier=(EarlierTurn("Hello!", GeneratedData("Hi.")),))
    cases = [answered(), replace(turns, number=2), replace(turns, number=3, label="greeting")]
    assert [each.utterance for each in collect(cases, RunOptions()).cases] == [
        "Where is it?",
        "Hello! / Where is it?",
        "greeting",
    ]
