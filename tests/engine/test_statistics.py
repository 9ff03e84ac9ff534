from __future__ import annotations

import random
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import case_result, result
from evalmeta.engine.statistics import clustered, collect, corrected, observations, pass_at_k, percentile, wilson
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.statistics import CaseCounts, Interval, JudgeCheck, Latency, Measure, PassAtK

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


trials = st.integers(1, 300).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
cases = st.lists(st.builds(lambda p, f: CaseCounts(1, "", p, f), st.integers(0, 6), st.integers(0, 6)), max_size=6)


def counts(*pairs: tuple[int, int]) -> list[CaseCounts]:
    return [CaseCounts(number, "", *pair) for number, pair in enumerate(pairs, 1)]


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


def test_with_one_answer_per_case_the_interval_is_wilsons() -> None:
    assert clustered(counts(*[(1, 0)] * 24, *[(0, 1)] * 6)) == pytest.approx(wilson(24, 30))


def test_one_case_has_the_interval_of_its_answers() -> None:
    assert clustered(counts((7, 3))) == wilson(7, 10)


def test_equal_answers_to_the_same_case_count_once() -> None:
    once, often = counts(*[(1, 0)] * 80, *[(0, 1)] * 20), counts(*[(10, 0)] * 80, *[(0, 10)] * 20)
    low, high = clustered(often)
    assert (low, high) == pytest.approx(clustered(once), abs=0.01)
    assert high - low > 2 * (wilson(800, 1000).high - wilson(800, 1000).low)


def test_independent_answers_count_one_by_one() -> None:
    found, all_answers = clustered(counts(*[(8, 2)] * 100)), wilson(800, 1000)
    assert found == pytest.approx(all_answers, abs=0.001)


def test_nothing_decided_has_no_interval() -> None:
    assert clustered(counts((0, 0))) is None


@given(cases)
def test_the_interval_has_the_pass_rate_and_is_not_narrower_than_that_of_independent_answers(
    found: list[CaseCounts],
) -> None:
    total, passed = sum(each.decided for each in found), sum(each.passed for each in found)
    if total:
        low, high = clustered(found)
        assert 0 <= low <= passed / total <= high <= 1
        assert high - low >= wilson(passed, total).high - wilson(passed, total).low - 1e-9


@given(cases)
def test_pass_at_k_counts_all_choices_of_k_answers(found: list[CaseCounts]) -> None:
    estimates = pass_at_k(found)
    assert [each.k for each in estimates] == list(range(1, 1 + max((each.decided for each in found), default=0)))
    for estimate in estimates:
        chosen = [each for each in found if each.decided >= estimate.k]
        samples = [list(combinations([True] * each.passed + [False] * each.failed, estimate.k)) for each in chosen]
        assert estimate.any_passes == pytest.approx(fmean(fmean(map(any, sample)) for sample in samples))
        assert estimate.all_pass == pytest.approx(fmean(fmean(map(all, sample)) for sample in samples))
        assert estimate.cases == len(chosen)


def test_a_case_that_counts_by_its_mean_has_no_pass_at_k() -> None:
    assert pass_at_k([CaseCounts(1, "", 3, 0, is_averaged=True)]) == ()


@pytest.mark.slow
@pytest.mark.parametrize("number", [5, 30, 100])
@pytest.mark.parametrize("iterations", [1, 3, 5, 10])
@pytest.mark.parametrize("shape", [(80, 20), (4, 1), (1, 1), (0.8, 0.2), (9.5, 0.5), (0.95, 0.05)])
def test_the_interval_covers_the_pass_rate_of_similar_cases(
    number: int, iterations: int, shape: tuple[float, float]
) -> None:
    rng, repeats, covered = random.Random(13), 600, 0  # noqa: S311 - the same draws every time
    for _ in range(repeats):
        rates = [rng.betavariate(*shape) for _ in range(number)]
        passed = [sum(rng.random() < rate for _ in range(iterations)) for rate in rates]
        low, high = clustered(counts(*((each, iterations - each) for each in passed)))
        covered += low <= shape[0] / sum(shape) <= high
    # Of 30 cases with a mean of 95 %, few ever fail: 89 % is the lowest coverage. The standard error is 0.9 points.
    assert covered / repeats >= 0.87


# The errors of a judge.


def one_each(passed: int, failed: int) -> list[CaseCounts]:
    return counts(*[(1, 0)] * passed, *[(0, 1)] * failed)


# Worked out by hand from the formulas of Rogan and Gladen, and of Lang and Reiczigel, with z = 1.959964.
@pytest.mark.parametrize(
    ("passed", "check", "rate", "low", "high"),
    [(82, JudgeCheck(45, 50, 36, 40), 0.9, 0.7691, 1.0), (50, JudgeCheck(90, 100, 80, 100), 0.42857, 0.26552, 0.58376)],
)
def test_a_rate_without_the_errors_of_the_judge_is_that_of_the_formulas(
    passed: int, check: JudgeCheck, rate: float, low: float, high: float
) -> None:
    found = corrected(one_each(passed, 100 - passed), check)
    assert found is not None
    assert (found.raw, found.answers, found.rate) == (passed / 100, 100, pytest.approx(rate, abs=1e-5))
    assert found.interval == pytest.approx((low, high), abs=1e-4)


def test_the_interval_is_wider_than_that_of_the_judged_rate() -> None:
    answers = one_each(60, 40)
    found, plain = corrected(answers, JudgeCheck(95, 100, 95, 100)), clustered(answers)
    assert found is not None
    assert plain is not None
    assert found.interval.high - found.interval.low > plain.high - plain.low


@pytest.mark.parametrize("check", [JudgeCheck(5, 10, 5, 10), JudgeCheck(2, 10, 3, 10)])
def test_a_judge_that_is_no_better_than_chance_corrects_nothing(check: JudgeCheck) -> None:
    assert corrected(one_each(5, 5), check) is None


def test_without_judged_answers_nothing_is_corrected() -> None:
    assert corrected(counts((0, 0)), JudgeCheck(9, 10, 9, 10)) is None


@given(st.integers(0, 30), st.integers(1, 30), st.integers(1, 20), st.integers(1, 20), st.data())
def test_a_corrected_rate_lies_in_its_interval(
    passed: int, failed: int, right: int, wrong: int, data: st.DataObject
) -> None:
    check = JudgeCheck(data.draw(st.integers(0, right)), right, data.draw(st.integers(0, wrong)), wrong)
    found = corrected(one_each(passed, failed), check)
    if found is not None:
        assert 0 <= found.interval.low <= found.rate <= found.interval.high <= 1


def coverage(rate: float, right_passes: float, wrong_failures: float, *, answers: int, labelled: int) -> float:
    """Return the share of 400 simulated runs whose interval has the true rate."""
    draw, held = random.Random(1), 0  # noqa: S311 - a simulation
    passes = rate * right_passes + (1 - rate) * (1 - wrong_failures)
    for _ in range(400):
        said, of_right, of_wrong = (
            sum(draw.random() < chance for _ in range(number))
            for chance, number in ((passes, answers), (right_passes, labelled), (wrong_failures, labelled))
        )
        found = corrected(one_each(said, answers - said), JudgeCheck(of_right, labelled, of_wrong, labelled))
        held += found is None or found.interval.low <= rate <= found.interval.high
    return held / 400


@pytest.mark.parametrize(
    ("rate", "right_passes", "wrong_failures", "labelled"),
    [
        pytest.param(0.8, 0.9, 0.8, 40),
        *(
            pytest.param(*cell, marks=pytest.mark.slow)
            for cell in [(0.5, 0.9, 0.9, 20), (0.9, 0.95, 0.7, 100), (0.3, 0.8, 0.95, 40), (0.95, 0.85, 0.85, 40)]
        ),
    ],
)
def test_corrected_intervals_have_the_true_rate_in_about_95_of_100_runs(
    rate: float, right_passes: float, wrong_failures: float, labelled: int
) -> None:
    assert coverage(rate, right_passes, wrong_failures, answers=60, labelled=labelled) >= 0.92
