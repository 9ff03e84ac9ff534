from __future__ import annotations

import random
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.intervals import clustered, corrected, pass_at_k, wilson
from evalmeta.model.statistics import CaseCounts, Interval, JudgeCheck

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
