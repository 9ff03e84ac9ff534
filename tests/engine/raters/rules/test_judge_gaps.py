from __future__ import annotations

import pytest

from evalmeta.engine.raters.rules.rater import counted_nothing, day_gap, name_gap


@pytest.mark.parametrize(
    ("one", "other", "thing"),
    [
        ("There are no open cases.", "You have 3 open cases.", "cases"),
        ("There aren't any fees.", "There are 2 fees.", "fees"),
        ("Are there any fees?", "There are 2 fees.", ""),
        ("There are no fees.", "There are 0 fees.", ""),
        ("There are no fees in 5 years.", "There are 2 fees.", ""),
    ],
)
def test_nothing_is_not_some(one: str, other: str, thing: str) -> None:
    assert counted_nothing(one, other) == thing


@pytest.mark.parametrize(
    ("expected", "actual", "gap"),
    [
        ("On Monday.", "On Tuesday.", (["Monday"], ["Tuesday"])),
        ("On Monday.", "In June.", ([], [])),
        ("On Monday.", "Monday to Friday", ([], [])),
        ("Closed on Sundays.", "Open on Monday and Saturday.", ([], [])),
    ],
)
def test_days_differ_when_both_sides_have_their_own(
    expected: str, actual: str, gap: tuple[list[str], list[str]]
) -> None:
    assert day_gap(expected, actual, "") == gap


def test_names_of_the_question_need_not_be_repeated() -> None:
    assert name_gap("It is Bob and the cat.", "It is Al.", "Is Bob there?", described=False) == ([], ["Al"])


def test_one_name_of_a_description_is_enough() -> None:
    expected = "Summary of the deals of Acme at Globex"
    assert name_gap(expected, "The deals of Acme with Initech", "", described=True) == ([], [])


def test_capital_letters_say_nothing_in_other_languages() -> None:
    assert name_gap("Die Bestellung ist da", "Das Paket ist da", "", described=False) == ([], [])
