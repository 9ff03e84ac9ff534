"""Assertions of promptfoo judge as promptfoo documents them, or are undecided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.systems.test_tools.checks import CaseChecks
from evalmeta.systems.test_tools.promptfoo_checks import add_assertions, parse_expected

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.model.json_value import JsonObject

    Judge = Callable[..., dict[str, str]]

CALLS = {"response": "Done.", "actions": [{"name": "find_order", "input": {"id": 10045, "full": True}}, "send_mail"]}


def with_assertions(*assertions: JsonObject) -> list[JsonObject]:
    return [{"vars": {"q": "Hi"}, "assert": list(assertions)}]


@pytest.mark.parametrize(
    ("assertion", "passes", "fails"),
    [
        ({"type": "equals", "value": "Paris"}, "Paris", "Paris."),
        ({"type": "equals", "value": {"a": 1}}, '{"a": 1}', '{"a": 2}'),
        ({"type": "equals", "value": 4}, "4", "5"),
        ({"type": "contains", "value": "Paris"}, "In Paris.", "In paris."),
        ({"type": "contains", "value": "“Paris”"}, "“Paris”", '"Paris"'),
        ({"type": "icontains", "value": "a.b"}, "xA.Bx", "axb"),
        ({"type": "contains-all", "value": ["a", "b"]}, "ab", "a"),
        ({"type": "icontains-all", "value": ["A", "b"]}, "aB", "a"),
        ({"type": "contains-any", "value": ["a", "b"]}, "b", "B"),
        ({"type": "icontains-any", "value": ["a", "b"]}, "B", "c"),
        ({"type": "starts-with", "value": "The"}, "The end", "At the end"),
        ({"type": "regex", "value": r"\d{3}"}, "call 112", "call 11"),
        ({"type": "not-contains", "value": "Error"}, "error", "Error"),
        ({"type": "not-icontains", "value": "Error"}, "fine", "an ERROR"),
        ({"type": "not-contains-any", "value": ["a", "b"]}, "c", "b"),
        ({"type": "not-contains-any", "value": "password, secret"}, "fine", "my secret"),
        ({"type": "not-icontains-any", "value": "password, secret"}, "fine", "my PASSWORD"),
        ({"type": "contains-any", "value": "a, b ,,"}, "b", "B"),
        ({"type": "icontains-any", "value": '"a, b", c'}, "A, B", "a b"),
        ({"type": "contains-all", "value": "a,b"}, "ba", "a,c"),
        ({"type": "icontains-all", "value": "a, b"}, "BA", "a"),
        ({"type": "contains-all", "value": r'"a ""b""", "c\"d", e"f'}, r'a "b" c"d e"f', r'a ""b"" c\"d e"f'),
        ({"type": "is-json"}, "[1]", "[1"),
        ({"type": "is-json", "value": {"type": "object", "required": ["a"]}}, '{"a": 1}', "{}"),
        ({"type": "trajectory:tool-used", "value": "find_order"}, CALLS, {**CALLS, "actions": ["send_mail"]}),
        ({"type": "trajectory:tool-used", "value": ["send_mail", "find_order"]}, CALLS, {**CALLS, "actions": []}),
        ({"type": "not-trajectory:tool-used", "value": "delete_*"}, CALLS, {**CALLS, "actions": ["delete_all"]}),
        (
            {"type": "trajectory:tool-args-match", "value": {"name": "find_order", "args": {"id": 10045}}},
            CALLS,
            {**CALLS, "actions": [{"name": "find_order", "input": {"id": 1}}]},
        ),
        (
            {"type": "trajectory:tool-args-match", "value": {"name": "a", "args": {"id": 1}, "mode": "exact"}},
            {**CALLS, "actions": [{"name": "a", "input": {"id": 1}}]},
            {**CALLS, "actions": [{"name": "a", "input": {"id": 1, "full": True}}]},
        ),
        (
            {"type": "trajectory:tool-sequence", "value": {"mode": "in_order", "steps": ["a", "c"]}},
            {**CALLS, "actions": ["a", "b", "c"]},
            {**CALLS, "actions": ["c", "a"]},
        ),
        (
            {"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["a", "c"]}},
            {**CALLS, "actions": ["a", "c"]},
            {**CALLS, "actions": ["a", "b", "c"]},
        ),
        (
            {"type": "trajectory:step-count", "value": {"type": "tool", "max": 1}},
            {**CALLS, "actions": ["a"]},
            {**CALLS, "actions": ["a", "b"]},
        ),
    ],
)
def test_an_assertion_passes_and_fails_as_in_promptfoo(
    verdicts: Judge, assertion: JsonObject, passes: object, fails: object
) -> None:
    assert set(verdicts("tests.json", with_assertions(assertion), passes).values()) == {"PASS"}
    assert "FAILURE" in verdicts("tests.json", with_assertions(assertion), fails).values()


@pytest.mark.parametrize(
    "assertion",
    [
        {"type": "javascript", "value": "true"},
        {"type": "contains", "value": "file://paris.txt"},
        {"type": "contains", "value": "Paris", "transform": "output.trim()"},
        {"type": "not-equals", "value": "Paris"},
        {"type": "regex", "value": "(?=x)"},
        {"type": "regex", "value": ".*"},
        {"type": "contains", "value": ""},
        {"type": "contains-any", "value": []},
        {"type": "not-contains-any", "value": []},
        {"type": "not-contains-any", "value": " , "},
        {"type": "contains-any", "value": 'Paris, "Rome'},
        {"type": "contains-any", "value": '"Paris" or, Rome'},
        {"type": "not-contains-all", "value": "a, b"},
        {"type": "cost", "threshold": 0.01},
        {"type": "trajectory:tool-used", "value": {"pattern": "find_*"}},
        {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "contains", "value": "Paris"}]},
        {"type": "llm-rubric", "value": " "},
        {"type": "similar", "value": ["Paris"]},
        {"type": "factuality", "value": ""},
        {"type": "trajectory:tool-args-match", "value": {"name": "a", "args": "id"}},
        {"type": "trajectory:tool-args-match", "value": "a"},
        {"type": "trajectory:tool-sequence", "value": {"mode": "any_order", "steps": ["a"]}},
        {"type": "trajectory:step-count", "value": {"type": "tool", "min": 1}},
        {"type": "trajectory:step-count", "value": {"type": "llm", "max": 1}},
        {"type": "latency", "threshold": 0.5},
        {"type": 3},
        "contains: Paris",
    ],
)
def test_an_assertion_that_evalmeta_cannot_make_is_undecided_and_hides_no_failure(
    verdicts: Judge, assertion: JsonObject
) -> None:
    known = {"type": "contains", "value": "Rome"}
    judged = verdicts("tests.json", with_assertions(known, assertion), "Paris")
    assert sorted(judged.values()) == ["FAILURE", "UNDECIDED"]


def test_checks_of_one_kind_that_one_key_cannot_hold_are_undecided(verdicts: Judge) -> None:
    any_of = [{"type": "contains-any", "value": [text]} for text in "ab"]
    assert sorted(verdicts("tests.json", with_assertions(*any_of), "a b").values()) == ["PASS", "UNDECIDED"]
    mixed = [{"type": "not-contains", "value": "A"}, {"type": "not-icontains", "value": "B"}]
    assert sorted(verdicts("tests.json", with_assertions(*mixed), "c").values()) == ["PASS", "UNDECIDED"]
    equal = [{"type": "equals", "value": text} for text in "ab"]
    assert sorted(verdicts("tests.json", with_assertions(*equal), "a").values()) == ["PASS", "UNDECIDED"]


def test_the_assertions_of_a_set_of_which_all_must_pass_are_checks(verdicts: Judge) -> None:
    inner = [{"type": "contains", "value": "Paris"}, {"type": "latency", "threshold": 60000}]
    judged = verdicts("tests.json", with_assertions({"type": "assert-set", "assert": inner}), "Paris")
    assert list(judged.values()) == ["PASS", "PASS"]


@pytest.mark.parametrize(
    ("cell", "assertion"),
    [
        ("Paris", {"type": "equals", "value": "Paris"}),
        ("contains: Paris", {"type": "contains", "value": "Paris"}),
        ("not-contains:error", {"type": "not-contains", "value": "error"}),
        ("contains-any: <b>,</span>", {"type": "contains-any", "value": "<b>,</span>"}),
        ("is-json", {"type": "is-json"}),
        ("similar(0.8):Hello", {"type": "similar", "value": "Hello", "threshold": 0.8}),
        ("latency(500)", {"type": "latency", "threshold": 500.0}),
        ("grade: polite", {"type": "llm-rubric", "value": "polite"}),
        ("fn:output.length", {"type": "javascript", "value": "output.length"}),
        ("Note: this is a sentence", {"type": "equals", "value": "Note: this is a sentence"}),
        ("contains", {"type": "equals", "value": "contains"}),
    ],
)
def test_a_cell_with_an_expected_answer_is_an_assertion(cell: str, assertion: JsonObject) -> None:
    assert parse_expected(cell) == assertion


@pytest.mark.parametrize(
    ("assertion", "keys", "left_out"),
    [
        ({"type": "contains", "value": "x", "weight": 0}, {}, "the assertion contains of weight 0, which cannot fail"),
        (
            {"type": "llm-rubric", "value": ["Is kind", "Is short"], "threshold": 0.8},
            {"rubric": ["Is kind", "Is short"]},
            "the threshold 0.8 of llm-rubric",
        ),
        (
            {"type": "similar", "value": "At 9."},
            {"expectedOutcome": "At 9."},
            "how similar compares; the project's rater compares with the expected answer",
        ),
    ],
)
def test_what_an_assertion_says_and_evalmeta_does_not_use_is_named(
    assertion: JsonObject, keys: JsonObject, left_out: str
) -> None:
    checks = CaseChecks()
    add_assertions([assertion], checks)
    assert (checks.keys(), checks.left_out, checks.unjudged) == (keys, [left_out], ())
