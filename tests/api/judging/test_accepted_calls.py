from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.api.judging.accepted_calls import AcceptedCall, accepting_calls, new_call
from evalmeta.model.expected_calls import read_call
from evalmeta.model.expected_values import MATCHERS, Fault
from evalmeta.model.generated_data import Action
from evalmeta.model.redaction import HIDDEN

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue

NAMES = st.sampled_from(["a", "b", *MATCHERS])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "yes", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
ACTIONS = st.builds(
    Action,
    st.sampled_from(["Find", "Send"]),
    st.dictionaries(NAMES, VALUES, max_size=3),
    VALUES,
    st.none(),
    st.sampled_from([None, "down"]),
)
CALLS = st.fixed_dictionaries(
    {"name": st.sampled_from(["Find", "Send"])},
    optional={
        "input": st.dictionaries(NAMES, VALUES),
        "output": VALUES,
        "error": st.booleans(),
        "exact": st.booleans(),
    },
)


def is_valid(call: JsonObject) -> bool:
    faults: list[Fault] = []
    read_call(call, (), faults)
    return not faults


@given(st.lists(CALLS.filter(is_valid), max_size=4), st.lists(ACTIONS, max_size=4))
def test_what_was_done_is_accepted_whatever_was_expected(expected: list[JsonObject], made: list[Action]) -> None:
    accepted = accepting_calls(expected, made, [])
    assert len(accepted) == len(made)
    for (call, kept), action in zip(accepted, made, strict=True):
        faults: list[Fault] = []
        assert read_call(call, (), faults).fits(action, is_known=False) is not False
        assert not faults
        assert kept is None or expected[kept] == call
    places = [kept for _, kept in accepted if kept is not None]
    assert len(places) == len({*places})


@pytest.mark.parametrize(
    ("expected", "action", "accepted"),
    [
        ({"input": {"id": 1}}, Action("F", {"id": 2, "trace": "t"}), {"input": {"id": 2}}),
        (
            {"input": {"id": 1, "to": {"matches": "^a"}}},
            Action("F", {"id": 2, "to": "ann"}),
            {"input": {"id": 2, "to": {"matches": "^a"}}},
        ),
        ({"input": {"o": {"a": {"any": True}, "b": 1}}}, Action("F", {"o": {"a": 1, "b": 2}}), None),
        (
            {"input": {"id": 1}, "exact": True},
            Action("F", {"id": 1, "n": 2}),
            {"input": {"id": 1, "n": 2}, "exact": True},
        ),
        ({"input": {"id": 1}}, Action("F", {"key": 2}), {"input": {"key": 2}}),
        ({"input": {"id": 1}}, Action("F", {"id": {"type": "x"}}), {"input": {"id": {"equals": {"type": "x"}}}}),
        ({"output": "old"}, Action("F", {}, "new"), {"output": "new"}),
        ({"error": True}, Action("F", {}, "fine"), {"error": False}),
        ({"error": {"contains": "a"}}, Action("F", {}, None, None, "b"), {"error": "b"}),
    ],
)
def test_only_what_differs_is_changed(expected: JsonObject, action: Action, accepted: JsonObject | None) -> None:
    wanted = accepted or {"input": {"o": {"a": {"any": True}, "b": 2}}}
    assert accepting_calls([{"name": "F", **expected}], [action], []) == [AcceptedCall({"name": "F", **wanted})]


def test_calls_are_in_the_order_in_which_they_were_made_and_each_keeps_its_own() -> None:
    expected: list[JsonObject] = [{"name": "F", "input": {"id": 1}}, {"name": "F", "input": {"id": {"at_least": 5}}}]
    made = [Action("F", {"id": 7}), Action("F", {"id": 2}), Action("G"), Action("F", {"id": 3})]
    assert accepting_calls(expected, made, []) == [
        AcceptedCall(expected[1], 1),
        AcceptedCall({"name": "F", "input": {"id": 2}}),
        AcceptedCall("G"),
        AcceptedCall({"name": "F", "input": {"id": 3}}),
    ]


@pytest.mark.parametrize(
    ("value", "why"), [(f"Bearer {HIDDEN}", "has a hidden secret"), (0.123456789, "has a number of many digits")]
)
def test_what_a_test_cannot_compare_is_named_and_not_expected(value: JsonValue, why: str) -> None:
    notes: list[str] = []
    assert new_call(Action("F", {"key": value, "id": 1}), notes) == {"name": "F", "input": {"id": 1}}
    assert notes == [f"the argument key of F {why} and is not expected"]
    earlier: JsonObject = {"name": "F", "input": {"key": "x", "id": 2}, "exact": True}
    [(call, _)] = accepting_calls([earlier], [Action("F", {"key": value, "id": 1})], notes)
    assert (call, len(notes)) == ({"name": "F", "input": {"id": 1}}, 2)
