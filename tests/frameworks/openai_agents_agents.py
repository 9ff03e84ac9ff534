from __future__ import annotations

import json

import pytest
from agents import Agent, Handoff, Model, RunContextWrapper, function_tool, handoff
from agents.items import ModelResponse
from agents.mcp import MCPServerStdio
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from talks import answers, parts, results

from evalmeta.errors import SubjectError


class Fake(Model):
    """Calls the tool that the question names, and then says what it returned, and how many questions there were."""

    async def get_response(self, *, input, tools, handoffs, **others):
        last = input[-1]
        asked = [item for item in input if item.get("role") == "user"]
        text = str(last.get("content") or last.get("output"))
        is_question = last.get("role") == "user"
        if last.get("type") == "function_call_output" and text.startswith('{"assistant"'):
            # After a handoff, the question is still to be answered.
            text, is_question = asked[-1]["content"], True
        name, _, id = text.partition(" ")
        arguments, calls = {"id": id}, is_question and name in {tool.name for tool in tools}
        if is_question and handoffs:
            name, arguments, calls = handoffs[0].tool_name, {}, True
        if calls:
            id = f"c{len(input)}"
            output = ResponseFunctionToolCall(
                id=id, type="function_call", name=name, arguments=json.dumps(arguments), call_id=id
            )
        else:
            said = ResponseOutputText(type="output_text", text=f"{text} in turn {len(asked)}", annotations=[])
            output = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[said])
        usage = Usage(requests=1, input_tokens=10, output_tokens=3, total_tokens=13)
        return ModelResponse(output=[output], usage=usage, response_id=None)

    def stream_response(self, *args, **keywords):
        raise NotImplementedError


@function_tool
def get_order(id: str) -> dict:
    """Order by id."""
    return {"id": id, "state": "sent"}


@function_tool
def refund(id: str) -> dict:
    """Refund."""
    raise ValueError("no such order")


@function_tool(needs_approval=True)
def cancel(id: str) -> dict:
    """Cancel."""
    return {"id": id, "state": "cancelled"}


@function_tool
def get_city(context: RunContextWrapper[dict], id: str) -> str:
    """City."""
    return context.context["city"]


def orders() -> Agent:
    return Agent(name="Orders", tools=[get_order, refund, cancel, get_city], model=Fake())


def test_two_turns_are_one_conversation_with_actions_and_tokens() -> None:
    (result,) = results(orders(), ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert (first.topic, first.tokens.input, first.tokens.output) == ("Orders", 20, 6)
    assert (second.outcome, second.actions, second.handoffs) == ("Thanks in turn 2", (), ())


def test_the_error_of_a_tool_is_the_error_of_its_action() -> None:
    (action,) = answers(*results(orders(), ["refund 1"]))[0].actions
    # The framework keeps the exception's text to itself.
    assert "An error occurred while running the tool" in action.error
    assert action.output is None


def test_a_handoff_is_the_topic_and_the_next_turn_begins_there() -> None:
    triage = Agent(name="Triage", handoffs=[orders()], model=Fake())
    first, second = answers(*results(triage, ["get_order 7", "Bye"]))
    assert (first.topic, first.handoffs) == ("Orders", ("Orders",))
    assert [action.name for action in first.actions] == ["get_order"]
    assert (second.outcome, second.handoffs) == ("Bye in turn 2", ())


def test_cases_at_once_do_not_share_a_conversation() -> None:
    talks = [answers(result) for result in results(orders(), *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]


def test_the_history_and_the_context_of_a_case_are_known() -> None:
    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"input": "get_city now", "conversationHistory": history, "context": {"city": "Bonn"}}
    assert answers(*results(orders(), case))[0].outcome == "Bonn in turn 2"


def test_a_call_that_nobody_approves_is_an_error_with_the_way_to_approve_it() -> None:
    (result,) = results(orders(), ["cancel 7"])
    assert "waits for the approval of cancel" in result.error


def test_a_case_approves_a_call() -> None:
    (result,) = results(orders(), {"turns": [{"input": "cancel 7"}, {"input": "Bye"}], "approve": "cancel"})
    first, second = answers(result)
    assert [(action.name, action.output) for action in first.actions] == [("cancel", {"id": "7", "state": "cancelled"})]
    assert (second.outcome, first.tokens.input) == ("Bye in turn 2", 20)


def test_init_takes_an_agent(project) -> None:
    project("from openai_agents_agents import orders\nthing = orders()\n")


def desk() -> Agent:
    """Returns an agent that hands over to two others, one of which hands back."""
    triage = Agent(name="Triage", tools=[refund], handoffs=[orders()])
    billing = Agent(name="Billing", tools=[orders().as_tool("ask_orders", "Asks about orders")], handoffs=[triage])
    triage.handoffs.append(handoff(billing))
    return triage


def test_agents_reached_by_handoffs_are_topics_and_their_tools_are_actions() -> None:
    assert parts(desk()) == [
        *("Triage", "Orders", "Billing", "Triage.refund"),
        *("Orders.get_order", "Orders.refund", "Orders.cancel", "Orders.get_city", "Billing.ask_orders"),
    ]
    assert parts(orders()) == [".get_order", ".refund", ".cancel", ".get_city"]


def test_tools_of_a_server_that_is_not_connected_are_an_error_and_not_left_out() -> None:
    server = MCPServerStdio({"command": "python"}, name="shop")
    with pytest.raises(SubjectError, match="connect"):
        parts(Agent(name="Orders", tools=[refund], mcp_servers=[server]))


def test_an_agent_that_a_handoff_does_not_refer_to_is_an_error() -> None:
    target = Handoff("transfer", "", {}, lambda context, text: None, agent_name="Gone")
    with pytest.raises(SubjectError, match="the tools of Gone"):
        parts(Agent(name="Triage", handoffs=[target]))


def test_cases_cover_the_topics_and_tools_that_they_expect(coverage) -> None:
    cases = "- {input: a, topic: Orders, actions: [get_order]}\n- {input: b, handoffs: [Billing]}\n"
    covered = coverage("from openai_agents_agents import desk\nthing = desk()\n", cases)
    assert {name for name, is_covered in covered.items() if is_covered} == {"Orders", "Billing", "Orders.get_order"}
    assert len(covered) == 9
