from __future__ import annotations

import pytest

from evalmeta import limits
from evalmeta.model.texts import Pattern, PatternSyntax, is_blank


@pytest.mark.parametrize(
    "text",
    ["", " \n\t\u00a0", "\u200b\ufeff\u2060\u00ad", "\x00\x1b", "\u3164\u115f\u1160\uffa0\u2800", "\ufe0f\u034f\u0301"],
)
def test_a_text_that_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "\u200b0", "\U0001f44d", "\u4f60", " \u0301e"])
def test_a_text_with_a_visible_sign_is_not(text: str) -> None:
    assert not is_blank(text)


def test_a_part_of_the_text_is_enough() -> None:
    assert Pattern(r"\d{4}").is_in("order 1234.")
    assert not Pattern(r"^\d{4}$").is_in("order 1234.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a", "unclosed group"),
        ("(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
        (r"(a)\1", "backreferences are not supported"),
        (r"(?:(?:\pL{1,20}){1,20}){1,20}", "exceeds size limit"),
        ("a" * (limits.MAX_PATTERN_CHARS + 1), "it has 1,001 characters; at most 1,000 are allowed"),
    ],
)
def test_a_pattern_that_is_not_supported_says_why(text: str, message: str) -> None:
    with pytest.raises(PatternSyntax, match=message):
        Pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".*",
        ".*?",
        "(?s).*",
        "(?s)^.*$",
        "^",
        "$",
        "|",
        "a|",
        "|a",
        "(a|b|)",
        r"\s*",
        "x?",
        r"(?i).{0,5}",
        "(?m)^",
        "()",
    ],
)
def test_a_pattern_that_accepts_everything_is_known(text: str) -> None:
    assert Pattern(text).accepts_everything


@pytest.mark.parametrize(
    "text",
    ["a", ".+", ".", "^$", "^[^#]*$", r"^\P{Cyrillic}*$", r"(?s)^.{0,500}$", r"\S", "(?i)paris", "^(?:[^s]|s[^o])*s?$"],
)
def test_a_pattern_that_refuses_something_is_kept(text: str) -> None:
    assert not Pattern(text).accepts_everything
