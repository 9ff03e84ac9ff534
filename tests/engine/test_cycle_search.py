from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta.engine.cycle_search import rare_searches

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_searches_are_rare_while_cases_run_and_as_before_afterwards() -> None:
    seen: list[int] = []

    def answer(utterance: str) -> str:
        seen.append(gc.get_threshold()[0])
        return utterance

    evalmeta.evaluate([{"input": "Hello", "contains": "Hello"}], answer)
    assert (seen, gc.get_threshold()) == ([50_000], (700, 10, 10))


def test_blocks_may_overlap() -> None:
    first, second = rare_searches(), rare_searches()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 50_000
    second.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 700


@pytest.mark.parametrize("objects", [0, 1_000_000])
def test_a_program_that_searches_less_keeps_its_thresholds(objects: int) -> None:
    gc.set_threshold(objects, 5, 5)
    with rare_searches():
        assert gc.get_threshold() == (objects, 5, 5)
    assert gc.get_threshold() == (objects, 5, 5)


def test_thresholds_that_the_agent_sets_stay() -> None:
    with rare_searches():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)
