from __future__ import annotations

import pytest

from evalmeta import limits
from evalmeta.engine.scorers import SCORERS
from evalmeta.model.checks import OWN_CHECKS, Check, Pattern, PatternSyntax, comparison_of, is_blank, reference_of
from evalmeta.model.definition import Expectation


def test_every_check_has_a_scorer() -> None:
    assert OWN_CHECKS - {"function"} <= set(SCORERS)


@pytest.mark.parametrize(
    ("check", "comparison"),
    [
        (Expectation("contains", "x"), ("string_comparison", "contains", "$.generatedData.outcome", "x")),
        (Expectation("ends_with", "x"), ("string_comparison", "endswith", "$.generatedData.outcome", "x")),
        (
            Expectation("json", terms={"path": "$.a[0]", "operator": "equals", "expected": 5}),
            ("numeric_comparison", "equals", "$.generatedData.outcome.a[0]", "5"),
        ),
        (
            Expectation("json", terms={"path": "$.generatedData.topic", "operator": "equals", "expected": True}),
            ("string_comparison", "equals", "$.generatedData.topic", "true"),
        ),
        (
            Expectation("json", terms={"path": "$.a", "operator": "at_most", "expected": 5}),
            ("numeric_comparison", "less_than_or_equal", "$.generatedData.outcome.a", "5"),
        ),
    ],
)
def test_a_check_that_definitions_can_hold_becomes_a_comparison(
    check: Expectation, comparison: tuple[str, ...]
) -> None:
    found = comparison_of(check)
    assert found is not None
    assert (found.name, *(parameter.value for parameter in found.parameters)) == (
        comparison[0], comparison[1], comparison[2], comparison[3],
    )  # fmt: skip
    assert [parameter.is_reference for parameter in found.parameters] == [False, True, False]


@pytest.mark.parametrize(
    "check",
    [
        Expectation("not_contains", "x"),
        Expectation("matches", "x"),
        Expectation("json", terms={"path": "$.a"}),
        Expectation("json", terms={"path": "$.a", "operator": "equals", "expected": None}),
    ],
)
def test_definitions_cannot_hold_the_others(check: Expectation) -> None:
    assert comparison_of(check) is None


def test_a_check_of_a_package_can_have_a_comparison() -> None:
    row = Check("mentions", "texts", "Words.", "it has the word", "Paris", operator="contains")
    found = comparison_of(Expectation("mentions", "x"), {"mentions": row})
    assert found is not None
    assert [parameter.value for parameter in found.parameters] == ["contains", "$.generatedData.outcome", "x"]


def test_a_path_leads_into_the_answer_unless_it_begins_with_generated_data() -> None:
    paths = ("$", "$.a", " $[0] ", "$.generatedData.topic", "$.generatedDataX")
    assert [reference_of(path) for path in paths] == [
        "$.generatedData.outcome",
        "$.generatedData.outcome.a",
        "$.generatedData.outcome[0]",
        "$.generatedData.topic",
        "$.generatedData.outcome.generatedDataX",
    ]


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
