from __future__ import annotations

from engine.builders import evaluation
from evalmeta.engine.plan import plan
from evalmeta.model.run import RunOptions


def _numbers(finished: set[tuple[int, int]]) -> list[tuple[int, int]]:
    items = plan(evaluation(3), RunOptions(iterations=2), finished)
    return [(item.iteration, item.case.number) for item in items]


def test_every_case_comes_once_in_every_iteration() -> None:
    assert _numbers(set()) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_finished_cases_are_left_out() -> None:
    assert _numbers({(1, 1), (2, 3)}) == [(1, 2), (1, 3), (2, 1), (2, 2)]


def test_a_plan_is_made_as_it_is_used() -> None:
    items = plan(evaluation(1), RunOptions(iterations=10**9), ())
    assert next(items).iteration == 1
