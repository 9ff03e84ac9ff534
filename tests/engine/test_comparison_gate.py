"""What the gate does in many simulated comparisons: how often it fails an unchanged agent, and finds a worse one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.engine.comparison import compare
from evalmeta.engine.confirmation import answers_needed, confirm
from evalmeta.model.statistics import CaseCounts, Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.model.statistics import Comparison

    Rates = Callable[[random.Random], list[float]]

pytestmark = pytest.mark.slow

ITERATIONS: Final = (1, 3, 5, 10)
# The standard error of a share of 5 % in 600 repeats is 0.9 points.
REPEATS: Final = 600
NOISE: Final = 0.018


def equal(number: int, rate: float) -> Rates:
    return lambda _: [rate] * number


def spread(number: int, passed: float, failed: float) -> Rates:
    return lambda rng: [rng.betavariate(passed, failed) for _ in range(number)]


def run(rates: Sequence[float], iterations: int, rng: random.Random) -> list[CaseCounts]:
    counts = [sum(rng.random() < rate for _ in range(iterations)) for rate in rates]
    return [CaseCounts(number, f"{number}", each, iterations - each) for number, each in enumerate(counts, 1)]


def asked_again(first: Comparison, rates: Sequence[float], answers: int, rng: random.Random) -> Comparison:
    """Ask the suspect cases again, and those that fail most answers as often as needed, as `--confirm` does."""
    found = {}
    for case in first.of(Standing.SUSPECT):
        [counts] = run([rates[case.number - 1]], answers, rng)
        more = answers_needed(first) - answers
        if not counts.passes and more > 0:
            [added] = run([rates[case.number - 1]], more, rng)
            counts = CaseCounts(1, "", counts.passed + added.passed, counts.failed + added.failed)
        found[case.number] = counts
    return confirm(first, found)


def share_of_regressions(
    before: Rates, *, iterations: int, fall: float = 0.0, known: int | None = None, answers: int | None = None
) -> float:
    rng, found = random.Random(13), 0  # noqa: S311 - the same draws every time
    for _ in range(REPEATS):
        rates = before(rng)
        now = [each - fall for each in rates]
        sides = run(rates, known or iterations, rng), run(now, iterations, rng)
        compared = compare(*sides, name="Orders", labels=("a", "b"), will_confirm=answers is not None)
        if answers is not None:
            compared = asked_again(compared, now, answers, rng)
        found += compared.is_regression("significant")
    return found / REPEATS


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize(
    "rates",
    [
        equal(30, 0.8),
        equal(10, 0.8),
        equal(100, 0.8),
        equal(30, 0.5),
        equal(3, 0.8),
        spread(30, 4, 1),
        spread(30, 0.8, 0.2),
        spread(100, 0.8, 0.2),
    ],
)
def test_an_unchanged_agent_fails_at_most_5_percent_of_comparisons(rates: Rates, iterations: int) -> None:
    assert share_of_regressions(rates, iterations=iterations) <= 0.05 + NOISE


@pytest.mark.parametrize(("known", "iterations"), [(10, 1), (10, 3), (3, 10)])
def test_a_baseline_may_have_more_or_fewer_iterations(known: int, iterations: int) -> None:
    assert share_of_regressions(spread(30, 4, 1), known=known, iterations=iterations) <= 0.05 + NOISE


@pytest.mark.parametrize("iterations", [1, 3, 5])
@pytest.mark.parametrize("answers", [3, 5, 10])
@pytest.mark.parametrize("rates", [equal(30, 0.8), spread(30, 4, 1), spread(30, 0.8, 0.2), spread(30, 1, 1)])
def test_asking_again_does_not_fail_more_unchanged_agents(rates: Rates, iterations: int, answers: int) -> None:
    assert share_of_regressions(rates, iterations=iterations, answers=answers) <= 0.05 + NOISE


@pytest.mark.parametrize(("rate", "least"), [(0.9, (0.5, 0.85, 0.9, 0.99)), (0.95, (0.55, 0.94, 0.99, 0.99))])
def test_a_fall_by_20_points_is_found_the_more_often_the_more_iterations(rate: float, least: tuple[float, ...]) -> None:
    found = [share_of_regressions(equal(30, rate), fall=0.2, iterations=each) for each in ITERATIONS]
    assert found == sorted(found)
    assert [share >= needed for share, needed in zip(found, least, strict=True)] == [True] * len(ITERATIONS)
