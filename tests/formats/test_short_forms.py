from __future__ import annotations

import csv
import json
from importlib import resources
from typing import TYPE_CHECKING

import pytest
import yaml
from jsonschema import Draft202012Validator

from evalmeta.engine.scorers import SCORERS
from evalmeta.errors import FormatError
from evalmeta.formats.files import read_document
from evalmeta.formats.testspec import read_spec
from evalmeta.model.checks import CHECKS, OWN_CHECKS
from evalmeta.model.expectations import expectation_kind
from formats.specs import shown

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.checks import Check
    from evalmeta.model.definition import Expectation

SCHEMA = json.loads((resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_bytes())
HEAD = "testCases:\n- input: Hi\n  "


def expectations(line: str) -> tuple[Expectation, ...]:
    [case] = read_spec(f"{HEAD}{line}\n".encode(), label="t.yaml").cases
    return case.turns[0].expectations


def problem(line: str) -> str:
    with pytest.raises(FormatError) as caught:
        expectations(line)
    return shown(caught.value.problems[0])


LINES: list[tuple[str, list[tuple[str, str | None, str | None]]]] = [
    ("contains: Paris", [("contains", "Paris", 'contains "Paris"')]),
    ("contains: [a, 7]", [("contains", "a", 'contains "a"'), ("contains", "7", 'contains "7"')]),
    ("contains_any: [a, b]", [("contains_any", None, 'contains_any "a", "b"')]),
    ("not_contains: a", [("not_contains", "a", 'not_contains "a"')]),
    ("equals: ''", [("equals", "", 'equals ""')]),
    ("equals: {city: Paris, size: [1]}", [("json", None, 'equals {"city": "Paris", "size": [1]}')]),
    ("starts_with: a", [("starts_with", "a", 'starts_with "a"')]),
    ("ends_with: a", [("ends_with", "a", 'ends_with "a"')]),
    (r"matches: ^\d+$", [("matches", r"^\d+$", r"matches ^\d+$")]),
    ("topic: Orders", [("topic_sequence_match", "Orders", None)]),
    ("actions: [A, B]", [("action_sequence_match", "['A', 'B']", None)]),
    ("actions: A", [("action_sequence_match", "['A']", None)]),
    ("actions: []", [("action_sequence_match", "[]", None)]),
    ("json: {path: $.a, equals: b}", [("json", None, 'json $.a equals "b"')]),
    (
        "json: [{path: $.a, at_least: 1.5}, {path: $.b}, {path: $.c, equals: true}]",
        [
            ("json", None, "json $.a at_least 1.5"),
            ("json", None, "json $.b exists"),
            ("json", None, "json $.c equals true"),
        ],
    ),
    ("rubric: Is polite", [("rubric", None, 'rubric "Is polite"')]),
    ("function: a.b:c", [("function", None, "function a.b:c")]),
    ("latency_ms: 500", [("output_latency_milliseconds", "500", "latency_ms at most 500")]),
    ("first_token_ms: 500", [("first_token_ms", "500", "first_token_ms at most 500")]),
    ("tokens: 20", [("tokens", "20", "tokens at most 20")]),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_short_form_is_an_expectation_with_a_label(
    line: str, expected: list[tuple[str, str | None, str | None]]
) -> None:
    found = expectations(line)
    assert [(each.name, each.expected_value, each.label) for each in found] == expected
    assert all(each.name in OWN_CHECKS or expectation_kind(each.name) for each in found)


def test_every_short_form_has_an_example() -> None:
    assert {line.split(":")[0] for line, _ in LINES} == {*CHECKS}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_example_of_a_check_is_a_valid_value(tmp_path: Path, check: Check) -> None:
    [expectation] = expectations(f"{check.name}: {check.example}")
    value = yaml.safe_load(check.example)
    with (tmp_path / "q.csv").open("w", newline="") as file:
        cell = json.dumps(value) if isinstance(value, list | dict) else value
        csv.writer(file).writerows([["input", check.name], ["Hi", cell]])
    (tmp_path / "spec.yaml").write_text("cases: q.csv\n")
    [case] = read_document(tmp_path / "spec.yaml", label="spec.yaml", name="spec").evaluation.cases

    assert case.turns[0].expectations == (expectation,)
    assert expectation.name == (check.expectation or check.name)
    assert expectation.name in SCORERS or expectation.name == "function"
    Draft202012Validator(SCHEMA).validate({"testCases": [{"input": "Hi", check.name: value}]})
    with pytest.raises(FormatError, match=f"Did you mean '{check.name}'"):
        expectations(f"{check.name}s: {check.example}")


def test_a_long_text_is_cut_in_the_label_only() -> None:
    [found] = expectations(f"contains: {'word ' * 40}end")
    assert (len(found.expected_value or ""), found.label) == (203, f'contains "{("word " * 40)[:59]}…"')


@pytest.mark.parametrize("key", CHECKS)
def test_every_short_form_needs_a_value(key: str) -> None:
    with pytest.raises(FormatError, match=f"'{key}' has no value, so it checks nothing"):
        expectations(f"{key}:")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("contains: []", ("t.yaml:3:13 'contains' is an empty list, which expects nothing [spec-value] Leave it out.")),
        ("contains: [a, ' ']", ("t.yaml:3:17 'contains' has an empty text [spec-value] Write what is expected.")),
        ("matches: (a", "t.yaml:3:12 '(a' is not a valid regular expression: unclosed group [spec-value]"),
        (
            "function: checks.polite",
            (
                "t.yaml:3:13 'checks.polite' is not a valid module:function reference [spec-value]"
                " Write the module and the function: checks:is_polite."
            ),
        ),
        ("latency_ms: 1.5", ("t.yaml:3:15 'latency_ms' of a test case is a number, not a whole number [spec-type]")),
        (
            "tokens: '5'",
            ("t.yaml:3:11 'tokens' of a test case is a text, not a whole number [spec-type] Write 5 without quotes."),
        ),
        ("tokens: 0", ("t.yaml:3:11 'tokens' is 0, which no answer can meet [spec-value] Write a maximum above 0.")),
        ("actions: ['']", "t.yaml:3:13 an action has no name [spec-missing]"),
        (
            "json: {path: $.a, equals: 0x1F}",
            (
                "t.yaml:3:29 'equals' is the number 0x1F, which other programs may write differently [spec-number]"
                ' Put it in quotes: "0x1F".'
            ),
        ),
        ("json: $.a", "t.yaml:3:9 a check of JSON is a text, not a mapping [spec-type]"),
        (
            "json: {path: a, equals: b}",
            ("t.yaml:3:16 the path 'a' does not start with $ [spec-value] Write json: {path: $.city, equals: Paris}."),
        ),
        ("json: {equals: b}", "t.yaml:3:9 a check of JSON needs 'path' [spec-missing]"),
        (
            "json: {path: $.a, equals: b, at_most: 1}",
            "t.yaml:3:41 a check of JSON has 'equals' and 'at_most' [spec-value] Write one check for each.",
        ),
        (
            "json: {path: $.a, at_least: x}",
            ("t.yaml:3:31 'at_least' of a check of JSON is a text, not a number [spec-type]"),
        ),
        ("json: {path: $.a, at_least: }", "t.yaml:3:9 a check of JSON needs 'at_least' [spec-missing]"),
        (
            "json: {path: $.a, equal: b}",
            "t.yaml:3:21 a check of JSON has no key 'equal' [spec-key] Did you mean 'equals'?",
        ),
        ("contian: x", "t.yaml:3:3 a test case has no key 'contian' [spec-key] Did you mean 'contains'?"),
        (
            "not-contains: x",
            ("t.yaml:3:3 a test case has no key 'not-contains' [spec-key] Did you mean 'not_contains'?"),
        ),
        (
            "expected_output: x",
            (
                "t.yaml:3:3 a test case has no key 'expected_output'"
                " [spec-key] Use contains, equals, rubric or expectedOutcome."
            ),
        ),
        ("llm-rubric: x", "t.yaml:3:3 a test case has no key 'llm-rubric' [spec-key] Use rubric."),
        (
            "contains: 1.0",
            (
                "t.yaml:3:13 'contains' is the number 1.0, which other programs may write differently"
                ' [spec-number] Put it in quotes: "1.0".'
            ),
        ),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_a_way_out(line: str, text: str) -> None:
    assert problem(line) == text


@pytest.mark.parametrize("pattern", [".*", "^", "(?s).*", "'|'", "paris|"])
def test_a_pattern_that_matches_every_answer_is_an_error(pattern: str) -> None:
    found = problem(f"matches: {pattern}")
    assert found.startswith("t.yaml:3:12 ")
    assert "matches every answer, so it checks nothing [spec-value]" in found
