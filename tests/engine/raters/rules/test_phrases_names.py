from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.raters.rules.phrases import differing_names, find_days, find_names, has_range_of_days


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
    assert differing_names(expected, actual, known="") == (missing, extra)


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
def test_days_may_stand_for_others(text: str) -> None:
    assert has_range_of_days(text)
    assert not has_range_of_days("on Monday")


@given(st.text())
def test_any_text_has_names_or_none(text: str) -> None:
    assert all(find_names(text))
    assert isinstance(find_days(text), dict)
