from __future__ import annotations

import pytest

from evalmeta.engine.power import detectable_fall
from evalmeta.model.statistics import CaseCounts


def cases(number: int, passed: int, failed: int) -> list[CaseCounts]:
    return [CaseCounts(place, f"Question {place}", passed, failed) for place in range(1, number + 1)]


@pytest.mark.parametrize(
    ("known", "iterations", "fall"),
    [(cases(30, 10, 0), 1, 10), (cases(200, 9, 1), 1, 7), (cases(200, 9, 1), 5, 4), (cases(30, 1, 0), 1, 23)],
)
def test_more_cases_runs_and_iterations_find_smaller_falls(known: list[CaseCounts], iterations: int, fall: int) -> None:
    assert detectable_fall(known, iterations=iterations) == fall


@pytest.mark.parametrize("known", [[], cases(30, 0, 0), cases(30, 0, 5), cases(1, 1, 0)])
def test_without_passed_answers_no_fall_can_be_found(known: list[CaseCounts]) -> None:
    assert detectable_fall(known) is None
