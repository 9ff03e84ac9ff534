from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.definition import ContextVariable, Definition, Expectation, HistoryMessage, Inputs, TestCase
from evalmeta.model.evaluation import Case, Evaluation, Turn, evaluation_of

unique_or_none = st.lists(st.none() | st.integers(1, 9), max_size=8).filter(
    lambda numbers: len({number for number in numbers if number}) == sum(number is not None for number in numbers)
)


def numbered(*numbers: int | None) -> list[int]:
    cases = tuple(TestCase(Inputs("u"), number=number) for number in numbers)
    return [case.number for case in evaluation_of(Definition("n", "s", test_cases=cases), name="N").cases]


@pytest.mark.parametrize(
    ("given_numbers", "numbers"),
    [
        ((), []),
        ((None, None, None), [1, 2, 3]),
        ((9, 14), [9, 14]),
        ((None, 1), [2, 1]),
        ((None, None, 2), [1, 3, 2]),
        ((None, 1, 2, 3), [4, 1, 2, 3]),
        ((5, None, None), [5, 2, 3]),
        ((-1, 0, None), [-1, 0, 3]),
    ],
)
def test_a_case_without_number_gets_the_next_free_one(
    given_numbers: tuple[int | None, ...], numbers: list[int]
) -> None:
    assert numbered(*given_numbers) == numbers


@given(unique_or_none)
def test_numbers_are_unique_and_those_given_are_kept(numbers: list[int | None]) -> None:
    found = numbered(*numbers)
    assert len(set(found)) == len(numbers)
    assert all(number in {None, kept} for number, kept in zip(numbers, found, strict=True))


def test_a_definition_becomes_what_the_engine_runs() -> None:
    history = (HistoryMessage("user", "Hello"), HistoryMessage("agent", "Hi"))
    variables, expectations = (ContextVariable("Tier", "Gold"),), (Expectation("coherence"),)
    case = TestCase(Inputs("And then?", variables, history), expectations, 3)
    assert evaluation_of(Definition("A label", "Agent", subject_version="v2", test_cases=(case,)), name="Api_Name") == (
        Evaluation("Api_Name", "Agent", (Case(3, (Turn("And then?", expectations),), history, variables),), "v2")
    )
