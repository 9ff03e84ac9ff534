from __future__ import annotations

import json

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    WorkflowBuilder,
    tool,
)
from agent_framework_orchestrations import HandoffBuilder
from talks import answers, parts, results

from evalmeta.errors import SettingsError


class Fake(FunctionInvocationLayer, BaseChatClient):
    """Calls the tool that the question names, and then says what it returned."""

    def _inner_get_response(self, *, messages, stream, options, **others):
        async def go():
            last = messages[-1]
            asked = [message for message in messages if message.role == "user" and message.text]
            result = last.contents[-1].to_dict()
            text = str(result.get("text") or result.get("result") or result.get("exception"))
            name, _, id = text.partition(" ")
            if last.role == "user" and last.text and " " in text:
                said = Content.from_function_call(f"c{len(messages)}", name, arguments=json.dumps({"id": id}))
            else:
                said = Content.from_text(f"{text} in turn {len(asked)}")
            usage = {"input_token_count": 10, "output_token_count": 3, "total_token_count": 13}
            return ChatResponse(messages=[Message("assistant", [said])], usage_details=usage)

        return go()


def get_order(id: str) -> dict:
    """Order by id."""
    return {"id": id, "state": "sent"}


def refund(id: str) -> dict:
    """Refund."""
    raise ValueError("no such order")


@tool(approval_mode="always_require")
def cancel(id: str) -> dict:
    """Cancel."""
    return {"id": id, "state": "cancelled"}


def orders() -> Agent:
    return Agent(Fake(), name="Orders", tools=[get_order, refund, cancel])


def test_two_turns_are_one_conversation_with_actions_and_tokens() -> None:
    (result,) = results(orders(), ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert (first.topic, first.tokens.input, first.tokens.output) == ("Orders", 20, 6)
    assert (second.outcome, second.actions) == ("Thanks in turn 2", ())


def test_the_error_of_a_tool_is_the_error_of_its_action() -> None:
    (action,) = answers(*results(orders(), ["refund 1"]))[0].actions
    # The framework keeps the exception's text to itself, unless it is asked for details.
    assert action.error == "FunctionInvocationError"
    assert action.output is None


def test_cases_at_once_do_not_share_a_conversation() -> None:
    talks = [answers(result) for result in results(orders(), *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]


def test_the_history_of_a_case_is_known() -> None:
    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"turns": [{"input": "Well"}, {"input": "Bye"}], "conversationHistory": history}
    assert [answer.outcome for answer in answers(*results(orders(), case))] == ["Well in turn 2", "Bye in turn 3"]


def test_a_call_that_nobody_approves_is_an_error_with_the_way_to_approve_it() -> None:
    (result,) = results(orders(), ["cancel 7"])
    assert "waits for the approval of cancel" in result.error


def test_a_case_approves_a_call() -> None:
    (result,) = results(orders(), {"turns": [{"input": "cancel 7"}, {"input": "Bye"}], "approve": "cancel"})
    first, second = answers(result)
    assert [(action.name, action.output) for action in first.actions] == [("cancel", {"id": "7", "state": "cancelled"})]
    assert second.outcome == "Bye in turn 2"


def test_init_takes_an_agent(project) -> None:
    project("from agent_framework_agents import orders\nthing = orders()\n")


class Sorter(FunctionInvocationLayer, BaseChatClient):
    """Hands every conversation over to Orders."""

    def _inner_get_response(self, *, messages, stream, options, **others):
        async def go():
            said = Content.from_function_call("h1", "handoff_to_Orders", arguments="{}")
            return ChatResponse(messages=[Message("assistant", [said])])

        return go()


def handoffs():
    keeps = {"require_per_service_call_history_persistence": True}
    triage = Agent(Sorter(), name="Triage", **keeps)
    clerk = Agent(Fake(), name="Orders", tools=[get_order, refund, cancel], **keeps)
    builder = HandoffBuilder(participants=[triage, clerk]).add_handoff(triage, [clerk]).add_handoff(clerk, [triage])
    return builder.with_start_agent(triage).build()


def handoffs_as_agent():
    return handoffs().as_agent(name="Team")


def two():
    writer = Agent(Fake(), name="Writer")
    return WorkflowBuilder(start_executor=writer).add_edge(writer, orders()).build()


@pytest.mark.parametrize("make", [handoffs, handoffs_as_agent])
def test_a_handoff_is_not_an_action_and_the_next_turn_answers_its_question(make) -> None:
    (result,) = results(make, ["get_order 7", "refund 1", "Thanks"])
    first, second, third = answers(result)
    assert [(action.name, action.output) for action in first.actions] == [("get_order", {"id": "7", "state": "sent"})]
    assert (first.topic, first.handoffs) == ("Orders", ("Orders",))
    assert [action.error for action in second.actions] == ["FunctionInvocationError"]
    assert third.outcome.startswith("Thanks in turn ")


def test_cases_of_a_workflow_at_once_are_kept_apart() -> None:
    found = [answers(result)[0] for result in results(two, *([f"Bye{number}"] for number in range(4)))]
    assert [answer.outcome for answer in found] == [f"Bye{number} in turn 1 in turn 1" for number in range(4)]
    assert {(answer.topic, answer.handoffs) for answer in found} == {("Orders", ("Orders",))}


@pytest.mark.parametrize("thing", [two(), two().as_agent()])
def test_a_workflow_itself_is_refused_with_the_function_to_write(thing) -> None:
    with pytest.raises(SettingsError, match="holds one conversation") as caught:
        results(thing, ["Hi"])
    assert "def make_agent(): return WorkflowBuilder(" in caught.value.actions[0]


def test_the_tools_of_an_agent_are_its_actions() -> None:
    assert parts(orders()) == [".get_order", ".refund", ".cancel"]


@pytest.mark.parametrize("make", [handoffs, handoffs_as_agent])
def test_agents_of_a_handoff_are_topics_and_handoffs_are_not_actions(make) -> None:
    assert parts(make) == ["Orders", "Orders.get_order", "Orders.refund", "Orders.cancel"]


def test_agents_of_a_workflow_after_the_first_are_topics() -> None:
    assert parts(two) == ["Orders", "Orders.get_order", "Orders.refund", "Orders.cancel"]
