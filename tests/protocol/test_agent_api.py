from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.errors import MessageUnreadable
from evalmeta.model.definition import ContextVariable
from evalmeta.model.generated_data import Action
from evalmeta.protocol.agent_api import (
    AgentReply,
    Plan,
    end_path,
    messages_path,
    plan_path,
    read_plan,
    read_reply,
    read_session_id,
    read_token,
    start_body,
    start_path,
    text_body,
    variables,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "type", "plan", "topic", "function", "name", "planId"]), inner, max_size=4
        )
    ),
)
OBJECTS = st.dictionaries(st.sampled_from(["messages", "plan", "topic", "sessionId", "access_token"]), JSON)
TRACE = {
    "type": "PlanSuccessResponse",
    "planId": "p1",
    "sessionId": "s1",
    "intent": "Weather",
    "topic": "Weather",
    "plan": [
        {"type": "UserInputStep", "message": "Rain?"},
        {"type": "LLMExecutionStep", "promptName": "P", "promptContent": "Choose", "promptResponse": "Weather"},
        {"type": "UpdateTopicStep", "topic": "Weather", "availableFunctions": ["Check_Weather"]},
        {
            "type": "FunctionStep",
            "function": {"name": "Check_Weather", "input": {"day": "2026-11-22"}, "output": {"max": 9}},
            "executionLatency": 781,
        },
        {"type": "FunctionStep", "function": {"name": "Tell", "input": None, "output": "told"}},
        {"type": "FunctionStep", "function": {}},
        {"type": "PlannerResponseStep", "message": "No rain.", "isContentSafe": True},
    ],
}


def sent(*given: tuple[str, str], **types: str) -> list[tuple[object, ...]]:
    made = variables([ContextVariable(name, value) for name, value in given], types)
    return [tuple(message.values()) for message in made]


def message(kind: str, text: object = None, plan_id: str = "") -> dict[str, object]:
    return {"type": kind, "message": text, "planId": plan_id, "isContentSafe": True}


def test_ids_in_paths_are_quoted() -> None:
    assert start_path("0Xx1") == "/v1/agents/0Xx1/sessions"
    assert (messages_path("a/b"), end_path("a b")) == ("/v1/sessions/a%2Fb/messages", "/v1/sessions/a%20b")
    assert plan_path("s", "p?") == "/v1.1/preview/sessions/s/plans/p%3F"


def test_bodies_are_those_of_the_guide() -> None:
    body = start_body(key="k", instance_url="https://o.my.salesforce.com", bypass_user=False, variables=[{"name": "a"}])
    assert body == {
        "externalSessionKey": "k",
        "instanceConfig": {"endpoint": "https://o.my.salesforce.com"},
        "streamingCapabilities": {"chunkTypes": ["Text"]},
        "variables": [{"name": "a"}],
        "bypassUser": False,
    }
    assert text_body(3, "Hi") == {"message": {"sequenceId": 3, "type": "Text", "text": "Hi"}, "variables": []}


def test_true_and_false_are_booleans_and_everything_else_is_text() -> None:
    given = (("Is_VIP", "True"), ("Gone", " false "), ("City", "Bonn"), ("Count", "3"), ("Empty", ""))
    assert sent(*given) == [
        ("Is_VIP", "Boolean", True),
        ("Gone", "Boolean", False),
        ("City", "Text", "Bonn"),
        ("Count", "Text", "3"),
        ("Empty", "Text", ""),
    ]


def test_standard_variables_get_their_prefix_and_custom_fields_lose_their_suffix() -> None:
    given = (("RoutableId", "0Mw1"), ("$Context.EndUserLanguage", "de"), ("$Context.Key__c", "1"), ("Key__c", "2"))
    names = [name for name, _, _ in sent(*given)]
    assert names == ["$Context.RoutableId", "$Context.EndUserLanguage", "$Context.Key", "Key__c"]


def test_settings_decide_the_type() -> None:
    given = (("Flag", "true"), ("Count", "3.5"), ("Ids", "[1]"), ("Box", "{}"), ("Any", '"x"'), ("Day", "2026-11-22"))
    types = {"Flag": "Text", "Count": "Number", "Ids": "List", "Box": "Object", "Any": "Json", "Day": "Date"}
    assert [value for _, _, value in sent(*given, **types)] == ["true", 3.5, [1], {}, "x", "2026-11-22"]


@pytest.mark.parametrize(
    ("value", "kind"), [("three", "Number"), ("[]", "Money"), ("yes", "Boolean"), ("{", "Json"), ("1", "List")]
)
def test_a_value_of_another_type_is_refused_by_name(value: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"the context variable Count is .*, which is not a valid {kind}"):
        sent(("Count", value), Count=kind)


def test_a_session_has_an_id() -> None:
    assert read_session_id({"sessionId": "s1", "messages": []}) == "s1"
    with pytest.raises(MessageUnreadable, match="no sessionId"):
        read_session_id({})


def test_messages_of_an_agent_are_joined_and_others_are_ignored() -> None:
    messages = [
        message("ProgressIndicator", "Working"),
        message("Inform", "One.", "p1"),
        message("Inquire", "Two?", "p2"),
        message("Confirm", "Three?"),
        message("Escalate"),
        message("SessionEnded"),
    ]
    assert read_reply({"messages": messages}) == AgentReply("One.\nTwo?\nThree?", "p1", is_handed_off=True)
    assert read_reply({"messages": []}) == AgentReply("")


def test_failures_are_separate_from_answers() -> None:
    reply = read_reply({"messages": [message("Failure", "No flow."), message("Error"), message("Inform", "Sorry")]})
    assert reply == AgentReply("Sorry", failure="No flow.; no reason given")


def test_a_reply_without_messages_is_unreadable() -> None:
    with pytest.raises(MessageUnreadable, match="no list of messages"):
        read_reply({"messages": "none"})


def test_a_plan_has_topic_and_actions() -> None:
    actions = (Action("Check_Weather", {"day": "2026-11-22"}, {"max": 9}, 781.0), Action("Tell", {}, "told"))
    assert read_plan(TRACE) == Plan("Weather", actions, TRACE)


def test_without_a_topic_of_its_own_a_plan_has_the_last_one_that_it_went_to() -> None:
    steps = [{"type": "UpdateTopicStep", "topic": topic} for topic in ("First", "Last", "")]
    assert read_plan({"plan": steps}).topic == "Last"


def test_a_plan_that_does_not_name_its_topic_has_the_one_of_its_steps() -> None:
    steps = [{"type": "UpdateTopicStep", "topic": "Orders"}]
    assert read_plan({"topic": "DefaultTopic", "plan": steps}).topic == "Orders"
    assert read_plan({"topic": "DefaultTopic", "plan": []}).topic is None


def test_a_plan_of_a_script_has_its_transitions() -> None:
    moves = [{"type": "TransitionStep", "data": {"from_agent": "A", "to_agent": name}} for name in ("B", "", "C")]
    assert read_plan({"topic": "C", "plan": moves}).transitions == ("B", "C")


def test_an_action_that_failed_has_the_messages_of_its_errors() -> None:
    errors = [{"statusCode": "X", "message": "No flow"}, {"message": "Locked"}]
    steps = [
        {"type": "FunctionStep", "function": {"name": name, "errors": of}} for name, of in (("A", errors), ("B", None))
    ]
    assert [action.error for action in read_plan({"plan": steps}).actions or ()] == ["No flow; Locked", None]


def test_an_empty_plan_has_no_topic_and_no_actions() -> None:
    assert read_plan({}) == Plan()


def test_a_large_trace_loses_its_prompts_and_a_larger_one_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ANSWER_CHARS", 800)
    step = {"type": "LLMExecutionStep", "promptName": "P", "promptContent": "x" * 900, "promptResponse": "y"}
    assert read_plan({"topic": "T", "plan": [step]}).trace == {
        "topic": "T",
        "plan": [{"type": "LLMExecutionStep", "promptName": "P"}],
    }
    assert read_plan({"topic": "T", "intent": "x" * 900}) == Plan("T")


def test_a_trace_that_is_too_deep_is_not_kept() -> None:
    deep: object = 1
    for _ in range(limits.MAX_JSON_DEPTH + 1):
        deep = [deep]
    assert read_plan({"topic": "T", "plan": [], "deep": deep}) == Plan("T", ())


def test_only_a_jwt_is_a_token_for_the_api() -> None:
    assert read_token({"access_token": "eyJh.eyJz.sig"}) == "eyJh.eyJz.sig"
    assert [read_token(reply) for reply in ({}, {"access_token": "00D!x"}, {"access_token": "eyJh.eyJz"})] == [
        "",
        "",
        "",
    ]


@given(OBJECTS)
def test_whatever_comes_is_read_or_refused(reply: dict[str, object]) -> None:
    read_plan(reply)
    read_token(reply)
    for read in (read_reply, read_session_id):
        try:
            read(reply)
        except MessageUnreadable:
            continue
