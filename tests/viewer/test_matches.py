"""Where an answer has what a check looks for."""

from __future__ import annotations

import pytest

from evalmeta.model.run import TestResult, Verdict
from evalmeta.report.text import SHOWN_CHARS
from evalmeta.viewer.matches import place_of_match


@pytest.mark.parametrize(
    ("name", "expected", "actual", "marked"),
    [
        ("contains", "Friday", "It comes on Friday.", "Friday"),
        ("contains", "friday", "It comes on FRIDAY.", "FRIDAY"),
        ("contains", "it\u2019s", "Now it's so.", "it's"),
        ("contains", "Friday", "It comes on Monday.", None),
        ("starts_with", "It", "It is It.", "It"),
        ("starts_with", "is", "It is.", None),
        ("ends_with", "It", "It is It", "It"),
        ("not_contains", 'an answer without "sorry"', "I am sorry.", "sorry"),
        ("contains_any", '"Rome" or "Paris"', "To Paris.", "Paris"),
        ("matches", r"\d+ EUR", "It costs 25 EUR now.", "25 EUR"),
        ("matches", "(a+)+$", "b" + "a" * 30, "a" * 30),
        ("matches", "(?i)paris|rome", "To PARIS.", "PARIS"),
        ("matches", "(", "x", None),
        ("bot_response_rating", "Friday", "Friday", None),
    ],
)
def test_the_place_is_marked(name: str, expected: str, actual: str, marked: str | None) -> None:
    place = place_of_match(TestResult(name, Verdict.PASS, expected, actual))

    assert (place and place.marked) == marked
    assert place is None or place.start + place.marked + place.end == actual


def test_a_match_far_into_a_long_answer_is_shown() -> None:
    actual = "x" * 20_000 + "Friday" + "y" * 20_000
    place = place_of_match(TestResult("contains", Verdict.PASS, "Friday", actual))

    assert place is not None
    assert place.marked == "Friday"
    shown = place.start + place.marked + place.end
    assert len(shown) == SHOWN_CHARS
    assert place.before + len(shown) + place.after == len(actual)


def test_an_undecided_result_has_no_place() -> None:
    assert place_of_match(TestResult("contains", Verdict.UNDECIDED, "a", "a")) is None
