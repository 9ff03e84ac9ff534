from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.rules_rater.text import (
    content_words,
    is_negative,
    is_question,
    plain,
    sentences,
    with_digits,
    without_courtesy,
    words,
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("٤٥٢٧٨", "45278"),
        ("１２", "12"),
        ("२०", "20"),
        ("๑,๒๙๐", "1,290"),
        ("٣٫٥", "3.5"),
        ("it\u2019s 5\u20137", "it's 5-7"),
    ],
)
def test_characters_that_mean_the_same_are_one(text: str, same: str) -> None:
    assert plain(text) == same


def test_emphasis_and_citations_are_left_out() -> None:
    assert plain("It lasts **24** months[1].") == "It lasts 24 months."


def test_words_come_in_lower_case() -> None:
    assert words("The Agent's orders: e-mail, 3.5!") == ["the", "agent's", "orders", "e-mail", "3.5"]
    assert content_words("The item is out of stock") == ["item", "is", "out", "of", "stock"]
    assert content_words("The") == ["the"]


@pytest.mark.parametrize(
    "text", ["It is not here", "I can't", "Das ist kein Problem", "No hay", "できません", "不可以", "없습니다", "नहीं है"]
)
def test_negations_are_found_in_many_languages(text: str) -> None:
    assert is_negative(text)


def test_a_statement_is_not_negative() -> None:
    assert not is_negative("Now it is open")


def test_courtesy_is_left_out() -> None:
    assert without_courtesy("Hello! It is 5 km. Anything else I can do for you?") == "It is 5 km."


def test_a_question_has_only_questions() -> None:
    assert is_question("Sure! What is your name?")
    assert not is_question("It is here. Do you see it?")
    assert not is_question("")


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert plain(plain(text)) is not None
    assert all(sentence.strip() for sentence in sentences(text))


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("three of twelve", "3 of 12"),
        ("twenty-five seats", "25 seats"),
        ("eight hundred and fifty euros", "850 euros"),
        ("two thousand three hundred", "2300"),
        ("two three", "2 3"),
        ("one of us in one month", "one of us in 1 month"),
        ("our second customer", "our 2 customer"),
        ("half an hour before noon", "30 minutes before 12:00 pm"),
        ("2 hours and 30 minutes", "150 minutes "),
        ("Wir haben drei Filialen", "Wir haben 3 Filialen"),
        ("Cuesta treinta euros", "Cuesta 30 euros"),
        ("Il reste deux places", "Il reste 2 places"),
        ("nothing to count", "nothing to count"),
    ],
)
def test_numbers_are_put_into_digits(text: str, digits: str) -> None:
    assert with_digits(text) == digits
