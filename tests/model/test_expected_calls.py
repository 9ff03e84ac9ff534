from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.expected_calls import ExpectedCall, missing_calls, read_call
from evalmeta.model.expected_values import Fault, json_key, read_value
from evalmeta.model.generated_data import Action

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


def call(item: JsonValue) -> ExpectedCall:
    faults: list[Fault] = []
    expected = read_call(item, (), faults)
    assert not faults
    return expected


def differences(item: JsonValue, **made: object) -> tuple[str, ...]:
    expected, action = call(item), Action("A", **made)  # type: ignore[arg-type]
    texts = tuple(expected.differences(action, is_known=True))
    assert expected.fits(action, is_known=True) in ({False} if texts else {True, None})
    return texts


def fits(expected: JsonValue, actual: JsonValue) -> bool:
    faults: list[Fault] = []
    value = read_value(expected, (), faults)
    assert not faults
    assert value.accepts(actual) == (not list(value.differences(actual, "x")))
    return value.accepts(actual)


@pytest.mark.parametrize(
    ("expected", "fitting", "others"),
    [
        (10045, [10045, 10045.0], ["10045", 10046, True, None]),
        (True, [True], [1, "true", False]),
        ({"matches": r"^\d+$"}, ["10"], ["a", 10, None, ["10"]]),
        ({"contains": "ar"}, ["Paris", ["ar"]], ["Pais", ["Paris"], None, {"ar": 1}]),
        ({"contains": 1}, [[0, 1.0]], [[True], "1", 1]),
        ({"at_least": 5}, [5, 5.5], [4.9, "6", True, None]),
        ({"at_least": 5, "at_most": 7}, [5, 7], [4, 8]),
        ({"one_of": ["a", {"at_least": 5}]}, ["a", 6], ["b", 4]),
        ({"type": "integer"}, [1, 1.0], [1.5, True, "1"]),
        ({"type": "null"}, [None], [0, ""]),
        ({"any": True}, [None, {}, 1], []),
        ({"equals": {"type": "x"}}, [{"type": "x"}], [{"type": "x", "id": 1}, "x"]),
        ({"type": "refund", "id": 1}, [{"type": "refund", "id": 1, "more": 2}], [{"type": "other", "id": 1}, "x"]),
        ({"a": {"b": {"at_most": 1}}}, [{"a": {"b": 1, "c": 2}, "d": 3}], [{"a": {"b": 2}}, {"a": {}}]),
        ([1, {"any": True}], [[1, 2]], [[1], [1, 2, 3], [2, 2]]),
        # A mapping without names is an empty one, or `cart: {}` would pass whatever is in the cart.
        ({}, [{}], [{"a": 1}, [], None]),
        ({"filter": {}}, [{"filter": {}, "page": 1}], [{"filter": {"type": "open"}}, {}]),
    ],
)
def test_a_value_fits_what_is_expected_of_it(
    expected: JsonValue, fitting: list[JsonValue], others: list[JsonValue]
) -> None:
    assert [value for value in fitting if not fits(expected, value)] == []
    assert [value for value in others if fits(expected, value)] == []


@pytest.mark.parametrize(
    ("given", "made", "text"),
    [
        ({"id": 10045}, {"id": 10046}, "A.input.id: expected 10045, got 10046"),
        ({"id": 10045}, {"id": "10045"}, 'A.input.id: expected 10045, got "10045"'),
        ({"id": 1}, {}, "A.input.id: expected 1, but it is missing"),
        ({"a": {"b c": 1}}, {"a": {"b c": 2}}, 'A.input.a["b c"]: expected 1, got 2'),
        ({"at": {"at_least": 5, "at_most": 7}}, {"at": 8}, "A.input.at: expected at least 5 and at most 7, got 8"),
        ({"to": {"matches": "@"}}, {"to": "x"}, 'A.input.to: expected a text that matches @, got "x"'),
        ({"to": {"one_of": ["a", 1]}}, {"to": "x"}, 'A.input.to: expected one of "a", 1, got "x"'),
        ({"n": {"type": "integer"}}, {"n": 1.5}, "A.input.n: expected a value of type integer, got 1.5"),
        ({"id": 1}, {"arguments": "id=1"}, 'A.input: expected {"id": 1}, got text that is not JSON: "id=1"'),
    ],
)
def test_a_difference_names_the_argument(given: JsonValue, made: dict[str, JsonValue], text: str) -> None:
    assert differences({"name": "A", "input": given}, input=made) == (text,)


def test_an_exact_call_has_no_other_arguments() -> None:
    item: dict[str, JsonValue] = {"name": "A", "input": {"a": {"b": {"at_least": 1}}}}
    assert differences(item, input={"a": {"b": 2, "c": 1}}) == ()
    exact = item | {"exact": True}
    assert differences(exact, input={"a": {"b": 2}}) == ()
    assert differences(exact, input={"a": {"b": 2, "c": 1}}) == ("A.input.a.c: not expected, got 1",)


def test_outputs_and_errors_are_compared() -> None:
    assert differences({"name": "A", "output": {"ok": True}}, output={"ok": False}) == (
        "A.output.ok: expected true, got false",
    )
    assert differences({"name": "A", "error": False}, error="timed out") == (
        'A.error: expected no error, got "timed out"',
    )
    assert differences({"name": "A", "error": True}, output=1) == ("A.error: expected an error, but there is none",)
    assert differences({"name": "A", "error": {"contains": "out"}}, error="timed out") == ()
    assert differences({"name": "A", "error": "timed out"}, output=1) == (
        'A.error: expected "timed out", but there is no error',
    )


@pytest.mark.parametrize(
    ("item", "unknown"),
    [
        ({"name": "A", "input": {"id": 1}}, ("A.input",)),
        ({"name": "A", "output": 1}, ("A.output",)),
        ({"name": "A", "error": False}, ("A.error",)),
        ({"name": "A"}, ()),
    ],
)
def test_what_an_agent_does_not_report_is_unknown(item: JsonValue, unknown: tuple[str, ...]) -> None:
    expected, action = call(item), Action("A")
    assert expected.unknown(action, is_known=False) == unknown
    assert list(expected.differences(action, is_known=False)) == []
    assert expected.fits(action, is_known=False) is (None if unknown else True)


def test_a_known_difference_decides_whatever_is_unknown() -> None:
    expected = call({"name": "A", "input": {"id": 1}, "output": 1})
    assert expected.fits(Action("A", {"id": 2}), is_known=False) is False
    assert expected.fits(Action("A", {"id": 1}), is_known=False) is None
    assert expected.fits(Action("A", {"id": 1}, 1), is_known=False) is True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, "1", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


@given(wanted=JSON, actual=JSON, exact=st.booleans(), literal=st.booleans())
def test_a_value_accepts_what_does_not_differ(
    wanted: JsonValue, actual: JsonValue, *, exact: bool, literal: bool
) -> None:
    value = read_value(wanted, (), [], exact=exact, literal=literal)
    assert value.accepts(wanted)
    assert value.accepts(actual) == (not list(value.differences(actual, "x")))


@pytest.mark.parametrize(
    ("value", "steps", "message"),
    [
        ({"a": {"matches": "(x"}}, ("input", "a", "matches"), "'(x' is not a valid regular expression: unclosed group"),
        ({"a": {"matches": ".*"}}, ("input", "a", "matches"), "'.*' matches every text, so it checks nothing"),
        ({"a": {"matches": 5}}, ("input", "a", "matches"), "'matches' is 5, not a text"),
        ({"a": {"at_least": "5"}}, ("input", "a", "at_least"), "'at_least' is \"5\", not a number"),
        ({"a": {"at_least": 5, "at_most": 4}}, ("input", "a"), "'at_least' is 5, more than 'at_most', 4"),
        ({"a": [{"one_of": []}]}, ("input", "a", 0, "one_of"), "'one_of' is an empty list, which no value meets"),
        ({"a": {"one_of": "b"}}, ("input", "a", "one_of"), "'one_of' is \"b\", not a list"),
        ({"a": {"one_of": [{"type": "x"}]}}, ("input", "a", "one_of", 0, "type"), '"x" is not a type of JSON'),
        ({"a": {"type": "strin"}}, ("input", "a", "type"), '"strin" is not a type of JSON'),
        ({"a": {"type": "string", "at_most": 4}}, ("input", "a"), "no value meets 'at_most' and 'type'"),
        ({"a": {"any": False}}, ("input", "a", "any"), "'any' is false"),
        ({"a": {"contains": ""}}, ("input", "a", "contains"), "'contains' is empty, so it checks nothing"),
        ([1], ("input",), "the input of A is [1], not a mapping"),
    ],
)
def test_an_expected_value_that_nothing_can_meet_is_a_fault(
    value: JsonValue, steps: tuple[str | int, ...], message: str
) -> None:
    faults: list[Fault] = []
    read_call({"name": "A", "input": value}, (), faults)
    assert [(fault.steps, fault.message) for fault in faults] == [(steps, message)]


def test_an_unknown_type_has_a_hint() -> None:
    faults: list[Fault] = []
    read_value({"type": "strin"}, (), faults)
    assert faults[0].hint.startswith("Did you mean 'string'?")
    assert "{equals: {...}}" in faults[0].hint


def test_equal_json_has_equal_keys() -> None:
    assert json_key({"a": [1, 2]}) == json_key({"a": [1.0, 2]})
    assert json_key(True) != json_key(1)
    assert json_key([]) != json_key({})


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"name": "A", "input": {"n": {"at_least": 1, "atmost": 5}}}, "'atmost' is not a matcher"),
        ({"name": "A", "input": {"n": {"atleast": 1}}}, "'atleast' is not a matcher"),
        ({"name": "A", "input": {"n": {"at_least": 1, "at_mosst": 5}}}, "'at_mosst' is not a matcher"),
        ({"name": "A", "output": None}, "'output' of A has no value, so it checks nothing"),
        ({"name": "A", "error": None}, "'error' of A has no value, so it checks nothing"),
        ({"name": "A", "input": None}, "'input' of A has no value, so it checks nothing"),
    ],
)
def test_a_mistyped_matcher_and_a_value_that_is_missing_are_faults(item: JsonValue, said: str) -> None:
    faults: list[Fault] = []
    read_call(item, (), faults)

    assert [fault.message for fault in faults] == [said]


def test_names_of_arguments_that_resemble_matchers_are_literal() -> None:
    for literal in ({"types": ["a"], "type": "b"}, {"equal": 1}, {"contain": "a", "size": 1}, {"matched": True}):
        assert fits(literal, literal)


def test_an_empty_input_accepts_any_arguments_and_an_empty_output_is_empty() -> None:
    assert differences({"name": "A", "input": {}}, input={"id": 1}) == ()
    assert differences({"name": "A", "output": {}}, output={"id": 1}) == ("A.output.id: not expected, got 1",)


@pytest.mark.parametrize(
    ("expected", "actual", "missing"),
    [
        ("['A', 'B', 'C']", "['A', 'C']", [("B", 1)]),
        ("['A', 'A']", "['A']", [("A", 1)]),
        ("['A', 'B']", "['B', 'A']", []),
        ("find(id=1)\ntrack(id=2)", "find(id=1)\n-", [("track", 1)]),
        ("['A']", "[]", [("A", 0)]),
    ],
)
def test_missing_calls_have_their_places(expected: str, actual: str, missing: list[tuple[str, int]]) -> None:
    assert missing_calls(expected, actual, "") == missing


def test_calls_that_may_be_missing_are_not_missing() -> None:
    assert missing_calls("['A', 'B']", "['A', 'C']", "missing (allowed): B; extra: C") == []
