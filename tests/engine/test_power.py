from __future__ import annotations

import pytest

from evalmeta.engine.power import detectable_fall
from evalmeta.model.statistics import CaseCounts, RunCounts


def cases(number: int, passed: int, failed: int) -> list[CaseCounts]:
    return [CaseCounts(place, f"Question {place}", passed, failed) for place in range(1, number + 1)]


def in_runs(number: int, passed: int, failed: int) -> list[CaseCounts]:
    runs = (RunCounts(1),) * passed + (RunCounts(0, 1),) * failed
    return [CaseCounts.of_runs(place, f"Question {place}", runs) for place in range(1, number + 1)]


@pytest.mark.parametrize(
    ("known", "iterations", "fall"),
    [(in_runs(30, 10, 0), 1, 10), (in_runs(200, 9, 1), 1, 7), (cases(200, 9, 1), 5, 4), (cases(30, 1, 0), 1, 23)],
)
def test_more_cases_runs_and_iterations_find_smaller_falls(known: list[CaseCounts], iterations: int, fall: int) -> None:
    assert detectable_fall(known, iterations=iterations) == fall


def test_iterations_that_never_differ_count_as_one_answer() -> None:
    runs = (RunCounts(5, 0), RunCounts(5, 0), RunCounts(0, 5))
    alike = [CaseCounts.of_runs(number, "Same", runs[number % 3 :] + runs[: number % 3]) for number in range(1, 31)]
    single = [CaseCounts(number, "Same", 2, 1) for number in range(1, 31)]
    assert detectable_fall(alike, iterations=5) == detectable_fall(single, iterations=1)


@pytest.mark.parametrize("known", [[], cases(30, 0, 0), cases(30, 0, 5), cases(1, 1, 0)])
def test_without_passed_answers_no_fall_can_be_found(known: list[CaseCounts]) -> None:
    assert detectable_fall(known) is None
