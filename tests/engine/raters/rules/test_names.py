from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.raters.rules.decisions import rate
from evalmeta.engine.raters.rules.names import (
    compare_names,
    contradicted_none,
    contradicting_days,
    contradicting_names,
    find_days,
    find_names,
    has_range_of_days,
)
from evalmeta.model.run import Verdict


def test_names_are_capitalised_words_inside_sentences() -> None:
    text = "Today Jane Doe's order ships, says Dr. Who. Hello! Write to a.b@example.com on Monday."
    assert find_names(text) == (("a.b@example.com",), ("today", "jane", "doe"))


def test_the_first_word_of_a_sentence_is_a_name_only_before_another() -> None:
    assert find_names("Sure, it works. Global Media is here") == (("global", "media"),)


@pytest.mark.parametrize(
    ("expected", "actual", "missing", "extra"),
    [
        ("It is Maria Lopez.", "It is Mario Lopez.", [("maria", "lopez")], [("mario", "lopez")]),
        ("It is Anders Holm.", "It is Anders.", [], []),
        ("It is Anders Holm.", "It is Sofia.", [("anders", "holm")], [("sofia",)]),
        ("It is in the United States.", "It is in the US.", [], []),
        ("It is in the UK.", "It is in the United Kingdom.", [], [("united", "kingdom")]),
        ("It is in New York.", "It is in NYC.", [], []),
        ("It is free in the EU.", "It is free in the European Union.", [], [("european", "union")]),
        ("It is in Memphis, Tennessee.", "It is in Memphis, TN.", [], [("tn",)]),
        ("It is in Memphis, Tennessee.", "It is in Memphis, MO.", [("tennessee",)], [("mo",)]),
        ("You see Dr. Patel.", "Dr. Garcia sees you.", [("patel",)], [("garcia",)]),
    ],
)
def test_names_differ_when_none_of_their_parts_is_said(
    expected: str, actual: str, missing: list[str], extra: list[str]
) -> None:
    assert compare_names(expected, actual, known="") == (missing, extra)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on Monday and Tuesdays", {"day 1", "day 2"}),
        ("am Montag im Januar", {"day 1", "month 1"}),
        ("in May", {"month 5"}),
        ("May I march on 3 July", set()),
        ("en enero", {"month 1"}),
        ("5 July", set()),
        ("no day", set()),
    ],
)
def test_days_are_one_in_all_languages(text: str, days: set[str]) -> None:
    assert set(find_days(text)) == days


@pytest.mark.parametrize("text", ["Monday to Friday", "on weekdays", "every day"])
def test_ranges_of_days_are_recognised(text: str) -> None:
    assert has_range_of_days(text)
    assert not has_range_of_days("on Monday")


@given(st.text())
def test_any_text_has_names_or_none(text: str) -> None:
    assert all(find_names(text))
    assert isinstance(find_days(text), dict)


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
def test_none_contradicts_some(one: str, other: str, thing: str) -> None:
    assert contradicted_none(one, other) == thing


@pytest.mark.parametrize(
    ("expected", "actual", "days"),
    [
        ("On Monday.", "On Tuesday.", (["Monday"], ["Tuesday"])),
        ("On Monday.", "In June.", ([], [])),
        ("On Monday.", "Monday to Friday", ([], [])),
        ("Closed on Sundays.", "Open on Monday and Saturday.", ([], [])),
    ],
)
def test_days_differ_if_each_text_has_others(expected: str, actual: str, days: tuple[list[str], list[str]]) -> None:
    assert contradicting_days(expected, actual, "") == days


def test_names_of_the_question_need_not_be_repeated() -> None:
    assert contradicting_names("It is Bob and the cat.", "It is Al.", "Is Bob there?", described=False) == ([], ["Al"])


def test_one_name_of_a_description_is_enough() -> None:
    expected = "Summary of the deals of Acme at Globex"
    assert contradicting_names(expected, "The deals of Acme with Initech", "", described=True) == ([], [])


def test_capital_letters_say_nothing_in_other_languages() -> None:
    assert contradicting_names("Die Bestellung ist da", "Das Paket ist da", "", described=False) == ([], [])


@pytest.mark.parametrize(
    "text",
    [
        "Then click Save.",
        "Press the Reset Password button.",
        "Go to Settings > Billing.",
        "First open Settings and choose Payment Methods.",
        "In the File menu, select Export As.",
        "Order Status: it is on its way.",
        "Refund Policy\nYou get it back.",
    ],
)
def test_button_labels_and_titles_are_not_names(text: str) -> None:
    assert find_names(text) == ()


def test_another_button_is_not_another_name() -> None:
    answer = "Open your Account, tap Payment Methods and add the new card."
    rating = rate("Go to Settings > Billing and enter the new card.", answer, utterance="How do I change my card?")
    assert rating.verdict is Verdict.UNDECIDED


def test_a_date_is_not_off_topic_because_the_month_is_spelled_elsewhere() -> None:
    rating = rate("The event takes place March 3.", "In March.", utterance="When is it?")
    assert rating.verdict is Verdict.UNDECIDED
