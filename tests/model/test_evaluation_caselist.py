from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.model.evaluation import CaseList, parse_case_list, parse_shard


@pytest.mark.parametrize(
    ("text", "name", "numbers"),
    [
        ("3", "", {3}),
        (" 1, 4-6 ", "", {1, 4, 5, 6}),
        ("Order_Desk:3", "Order_Desk", {3}),
        ("AiEvaluationDefinition:Order_Desk:1-2", "AiEvaluationDefinition:Order_Desk", {1, 2}),
    ],
)
def test_a_list_gives_its_numbers(text: str, name: str, numbers: set[int]) -> None:
    assert parse_case_list(text) == CaseList(name, frozenset(numbers))


@pytest.mark.parametrize(
    "text", ["", "x", "Order_Desk", "Order_Desk:", ":3", "1,", "3-1", "1-99999", "-1", "1;2", "\u0661"]
)
def test_an_invalid_list_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid list of cases, such as 3, 1,4-7 or Order_Desk:3"):
        parse_case_list(text)


@pytest.mark.parametrize("text", ["greeting", "set.test.json:greeting", "two words", "Order_Desk:"])
def test_a_label_is_accepted_if_labels_are_allowed(text: str) -> None:
    assert parse_case_list(f" {text} ", takes_labels=True) == CaseList("", None, text)
    assert parse_case_list("Order_Desk:3", takes_labels=True) == CaseList("Order_Desk", frozenset({3}))


@pytest.mark.parametrize("text", ["", "3-1", "1,"])
def test_an_invalid_list_of_numbers_is_not_a_label(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid list of cases"):
        parse_case_list(text, takes_labels=True)


@pytest.mark.parametrize("name", ["Order_Desk", "AiTestingDefinition:Visits"])
def test_a_name_alone_can_stand_for_all_cases(name: str) -> None:
    assert parse_case_list(name, is_named=True) == CaseList(name, None)


def test_a_name_with_an_invalid_number_is_refused() -> None:
    with pytest.raises(ValueError, match="'Order_Desk:first' is not a valid list of cases"):
        parse_case_list("Order_Desk:first", is_named=True)


@given(st.sets(st.integers(0, 999_999_999), min_size=1, max_size=20))
def test_any_numbers_can_be_listed(numbers: set[int]) -> None:
    assert parse_case_list(",".join(map(str, numbers))).numbers == numbers


@given(st.text(), st.booleans())
def test_any_text_is_a_list_or_none(text: str, is_named: bool) -> None:  # noqa: FBT001 - drawn
    try:
        assert parse_case_list(text, is_named=is_named).numbers != frozenset()
    except ValueError as error:
        assert "is not a valid list of cases" in str(error)  # noqa: PT017 - not every text raises


@given(st.integers(1, limits.MAX_SHARDS).flatmap(lambda parts: st.tuples(st.integers(1, parts), st.just(parts))))
def test_a_part_is_one_of_so_many(shard: tuple[int, int]) -> None:
    assert parse_shard(f" {shard[0]}/{shard[1]} ") == shard


@pytest.mark.parametrize("text", ["", "2", "0/3", "4/3", "1/0", "1/1001", "1/2/3", "a/b"])
def test_an_invalid_shard_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid shard, such as 2/5"):
        parse_shard(text)
