from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.builders import evaluation
from evalmeta.engine.plan import select_cases, work_items
from evalmeta.model.run_options import RunOptions


def _numbers(finished: set[tuple[int, int]]) -> list[tuple[int, int]]:
    items = work_items(evaluation(3), RunOptions(iterations=2), finished)
    return [(item.iteration, item.case.number) for item in items]


def test_every_case_comes_once_in_every_iteration() -> None:
    assert _numbers(set()) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_finished_cases_are_left_out() -> None:
    assert _numbers({(1, 1), (2, 3)}) == [(1, 2), (1, 3), (2, 1), (2, 2)]


def test_cases_are_read_lazily() -> None:
    items = work_items(evaluation(1), RunOptions(iterations=10**9), ())
    assert next(items).iteration == 1


@given(st.integers(1, 9), st.integers(1, 60))
def test_every_case_is_in_exactly_one_shard(parts: int, count: int) -> None:
    shards = [select_cases(evaluation(count), RunOptions(shard=(part, parts))) for part in range(1, parts + 1)]
    assert sorted(case.number for shard in shards for case in shard) == list(range(1, count + 1))


def test_a_case_stays_in_its_shard_when_others_are_added() -> None:
    few, many = ({case.number for case in select_cases(evaluation(n), RunOptions(shard=(2, 3)))} for n in (10, 40))
    assert few == {number for number in many if number <= 10}


def test_only_the_chosen_cases_are_sent() -> None:
    assert [case.number for case in select_cases(evaluation(9), RunOptions(cases=(7, 2, 11)))] == [2, 7]


def _order(seed: int | None) -> list[list[int]]:
    items = work_items(evaluation(20), RunOptions(iterations=2, seed=seed), ())
    numbers = [item.case.number for item in items]
    return [numbers[:20], numbers[20:]]


def test_a_seed_shuffles_each_iteration_differently_and_reproducibly() -> None:
    first, second = _order(7)
    assert _order(7) == [first, second]
    assert first != second
    assert sorted(first) == sorted(second) == list(range(1, 21))
    assert _order(8) != [first, second]
    assert _order(None) == [sorted(first)] * 2
