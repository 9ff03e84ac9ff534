from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.raters.facts import find_names, find_numbers, with_plain_numbers, without_bounds


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,250 or 1250.00 or 1.250,00", ("1250",)),
        ("2k, 3M and 5 million", ("2000", "3000000", "5000000")),
        ("three of twelve", ("3", "12")),
        ("3:30 pm is 15:30", ("3:30",)),
        ("9 am", ("9:00",)),
        ("March 5, 2024", ("3", "5", "2024")),
        ("the 5th of March", ("5", "3")),
        ("2024-03-05", ("2024", "3", "5")),
        ("ORD-1234 and inv00045", ("ORD-1234", "INV00045")),
        ("5GB, 20%, $7.50", ("5", "20", "7.5")),
        ("case 00001026", ("1026",)),
        ("may I march on", ()),
    ],
)
def test_numbers_have_one_spelling(text: str, numbers: tuple[str, ...]) -> None:
    assert find_numbers(text) == numbers


def test_bounds_need_not_be_met_to_the_digit() -> None:
    assert find_numbers(without_bounds("at least 100 of 200, between 3 and 5")) == ("200",)


def test_a_text_can_be_written_with_plain_numbers() -> None:
    assert with_plain_numbers("It costs 1,250.00 for two") == "It costs 1250 for 2"


def test_names_are_capitalised_words_inside_sentences() -> None:
    assert set(find_names("Today Jane Doe's order ships. Hello! Write to a.b@example.com")) == {
        "today",
        "jane",
        "doe",
        "a.b@example.com",
    }


def test_the_first_word_of_a_sentence_is_a_name_only_before_another() -> None:
    assert set(find_names("Sure, it works. Global Media is here")) == {"global", "media"}


@given(st.text())
def test_any_text_has_facts_or_none(text: str) -> None:
    assert all(find_numbers(text))
    assert all(find_names(text))
