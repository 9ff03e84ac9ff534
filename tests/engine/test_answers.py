from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.engine.answers import chat_messages, generated_data
from evalmeta.errors import SubjectError
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.evaluation import Case
from evalmeta.model.generated_data import Action, GeneratedData

FULL = {
    "outcome": "Shipped.",
    "topic": "Orders",
    "actions": ["Find", {"name": "Send", "input": {"to": "a"}, "output": {"ok": True}, "latency_ms": 12}],
    "latency_ms": 40,
    "session_id": "s-1",
    "state": {"order": {"id": 7}},
    "handoffs": ["Triage", "Orders"],
}


def test_a_text_is_the_answer() -> None:
    assert generated_data("Shipped.") == GeneratedData("Shipped.")


def test_a_mapping_tells_everything() -> None:
    actions = (Action("Find"), Action("Send", {"to": "a"}, {"ok": True}, 12.0))
    expected = GeneratedData(
        "Shipped.", "Orders", actions, 40.0, "s-1", state={"order": {"id": 7}}, handoffs=("Triage", "Orders")
    )
    assert generated_data(FULL) == expected


UNREPORTED = dict.fromkeys(("topic", "actions", "state", "handoffs"))


@pytest.mark.parametrize("reply", ["Shipped.", {"outcome": "Shipped."}, {**FULL, **UNREPORTED}])
def test_what_the_agent_does_not_report_is_unknown(reply: object) -> None:
    data = generated_data(reply)
    assert (data.topic, data.actions, data.state, data.handoffs) == (None, None, None, None)


def test_an_empty_state_and_no_handoffs_are_known() -> None:
    data = generated_data({"outcome": "Shipped.", "state": {}, "handoffs": []})
    assert (data.state, data.handoffs) == ({}, ())


@pytest.mark.parametrize(
    "value", [{"state": "CA"}, {"states": ["CA"]}, {"state": "CA", "handoffs": 2}, {"state": "CA", "city": "Davis"}]
)
def test_a_structured_answer_may_have_these_names(value: dict[str, object]) -> None:
    data = generated_data(value)
    assert (data.value, data.state, data.handoffs) == (value, None, None)


def test_an_agent_reports_that_it_chose_no_topic_and_took_no_action() -> None:
    data = generated_data({"outcome": "Shipped.", "topic": "", "actions": []})
    assert (data.topic, data.actions) == ("", ())


@pytest.mark.parametrize("number", [2**64, 2**70 + 1, -(2**63) - 1])
def test_integers_of_more_than_64_bits_are_kept_as_their_digits(number: int) -> None:
    data = generated_data({"outcome": "x", "actions": [{"name": "Pay", "input": {"id": number, "ids": [number, 1]}}]})
    assert data.actions == (Action("Pay", {"id": str(number), "ids": [str(number), 1]}),)


def test_answer_is_another_name_for_outcome() -> None:
    assert generated_data({"answer": "Shipped."}).outcome == "Shipped."


def test_the_names_of_databricks_mean_the_same() -> None:
    reply = {"response": "Shipped.", "retrieved_context": [{"doc_uri": "d", "content": "c"}]}
    assert generated_data(reply) == generated_data({"outcome": "Shipped.", "retrieved": [{"uri": "d", "content": "c"}]})


def test_the_measured_latency_counts_when_the_agent_tells_none() -> None:
    assert generated_data("Shipped.", measured_ms=5.0).latency_ms == 5.0
    assert generated_data(FULL, measured_ms=5.0).latency_ms == 40.0


def test_generated_data_comes_back_equal() -> None:
    data = generated_data(FULL)
    assert generated_data(data) == data


def test_what_the_agent_does_to_its_objects_later_changes_nothing() -> None:
    given_input = {"to": ["a"]}
    data = generated_data({"outcome": "", "actions": [{"name": "Send", "input": given_input}]})
    given_input["to"].append("b")
    assert data.actions[0].input == {"to": ["a"]}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("outcom", "the agent returned a mapping with the unknown key 'outcom'; did you mean 'outcome'? Known keys: "),
        ("wxyz", "the agent returned a mapping with the unknown key 'wxyz'; known keys: 'outcome', 'answer', "),
    ],
)
def test_an_unknown_key_names_the_nearest_one(key: str, message: str) -> None:
    with pytest.raises(SubjectError) as raised:
        generated_data({"answer": "Shipped.", key: "Shipped."})
    assert str(raised.value).startswith(message)
    assert str(raised.value).endswith("'handoffs'")


def _action(**parts: object) -> dict[str, object]:
    return {"outcome": "x", "actions": [{"name": "A", **parts}]}


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "returned nothing (None); expected its answer as text"),
        (42j, "a value of type complex"),
        (b"bytes", "a value of type bytes"),
        ({"topic": "Orders"}, "expected 'outcome'"),
        ({"outcome": "x", "topc": "Orders"}, "'topc'; did you mean 'topic'"),
        ({"outcome": {1}}, "which is not valid JSON (Object of type set"),
        ({"outcome": "x", "topic": ["Orders"]}, "topic is a value of type list"),
        ({"outcome": "x", "actions": "Find"}, "actions are a value of type str"),
        ({"outcome": "x", "state": ["a"]}, "the agent's state is a value of type list; expected a mapping"),
        ({"outcome": "x", "state": {"a": {1}}}, "the state is not valid JSON"),
        ({"outcome": "x", "handoffs": "Orders"}, "handoffs are a value of type str; expected a list of names"),
        ({"outcome": "x", "handoffs": ["Orders", None]}, "handoff is nothing"),
        ({"outcome": "x", "actions": [1]}, "actions hold a value of type int"),
        ({"outcome": "x", "latency_ms": float("nan")}, "latency_ms is nan; expected a finite number"),
        ({"outcome": "x", "latency_ms": float("inf")}, "latency_ms is inf"),
        ({"outcome": "x", "latency_ms": -1}, "latency_ms is -1"),
        ({"outcome": "x", "latency_ms": "3"}, "latency_ms is a value of type str"),
        ({"outcome": "x", "latency_ms": 10**400}, "expected a finite number"),
        (_action(name=""), None),
        (_action(name=None), "action's name is nothing"),
        (_action(speed=1), "'speed'; known keys"),
        (_action(input=[1]), "the input of A is a value of type list"),
        (_action(input={"a": {1, 2}}), "the input of A is not valid JSON"),
        (_action(output=object()), "the output of A is not valid JSON"),
        (_action(output=float("inf")), "the output of A is not valid JSON"),
        (_action(output=10**5_000), "the output of A is not valid JSON"),
        (_action(output="\ud800"), "the output of A is not valid JSON"),
        (_action(latency_ms=float("nan")), "latency_ms is nan"),
        ("\ud800", "answer is not valid Unicode"),
        (GeneratedData("x", latency_ms=float("nan")), "latency_ms is nan"),
        (GeneratedData("x", actions=(Action("A", output=float("nan")),)), "the output of A is not valid JSON"),
    ],
)
def test_anything_else_is_refused_by_name(answer: object, complaint: str | None) -> None:
    if complaint is None:
        assert generated_data(answer)
        return
    with pytest.raises(SubjectError) as caught:
        generated_data(answer)
    assert complaint in str(caught.value)


LONG = "x" * (limits.MAX_ANSWER_CHARS + 1)


@pytest.mark.parametrize(
    "answer",
    [LONG, {"outcome": "x", "state": {"a": LONG}}, {"outcome": "x", "handoffs": [LONG[:-2], "two"]}],
    ids=["answer", "state", "handoffs"],
)
def test_an_answer_over_the_limit_is_refused(answer: object) -> None:
    with pytest.raises(SubjectError, match="the maximum is 1000000"):
        generated_data(answer)


def test_a_state_that_could_not_be_kept_is_refused() -> None:
    levels = "[" * limits.MAX_JSON_DEPTH + "]" * limits.MAX_JSON_DEPTH
    with pytest.raises(SubjectError, match="the state is nested more than 100 levels deep"):
        generated_data({"outcome": "x", "state": {"a": json.loads(levels)}})


def test_an_output_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(SubjectError, match="is not valid JSON"):
        generated_data(_action(output=loop))


@pytest.mark.parametrize("levels", [limits.MAX_JSON_DEPTH + 1, 252])
def test_an_output_that_could_not_be_kept_is_refused(levels: int) -> None:
    with pytest.raises(SubjectError, match="the output of A is nested more than 100 levels deep"):
        generated_data(_action(output=json.loads("[" * levels + "]" * levels)))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_any_json_output_is_kept_as_it_is(output: object) -> None:
    assert generated_data(_action(output=output)).actions[0].output == output


@pytest.mark.parametrize(
    ("given", "read"),
    [('{"id": 7}', {"id": 7}), ("", {}), ("id=7", {"arguments": "id=7"}), ("[7]", {"arguments": "[7]"})],
)
def test_an_input_that_is_text_is_read_as_json_or_kept(given: str, read: object) -> None:
    answer = generated_data({"outcome": "", "actions": [{"name": "A", "input": given, "error": "timed out"}]})
    assert answer.actions == (Action("A", read, error="timed out"),)  # type: ignore[arg-type]


def test_the_error_of_an_action_is_text() -> None:
    with pytest.raises(SubjectError, match="error of A is a value of type int; expected text"):
        generated_data({"outcome": "", "actions": [{"name": "A", "error": 7}]})


def test_messages_of_the_agent_reach_models_as_the_assistants_whatever_their_role_is_called() -> None:
    roles = ("user", "agent", "Assistant", "system", "tool", None)
    messages = chat_messages(Case(1, (), tuple(HistoryMessage(role, "Hello") for role in roles)))
    assert [message["role"] for message in messages] == ["user", "assistant", "assistant", "system", "user", "user"]
