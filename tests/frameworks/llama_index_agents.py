from __future__ import annotations

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.workflow import (
    Context,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from talks import answers, parts, results

from evalmeta.errors import NotFound


def say(messages, **others):
    """Call the tool that the question names, and then say what it returned."""
    last = messages[-1]
    asked = [message for message in messages if message.role == "user"]
    text = str(last.content)
    if last.role == "user" and text.startswith("orders: "):
        arguments = {"to_agent": "Orders", "reason": "r"}
        return ChatMessage(
            role="assistant", blocks=[ToolCallBlock(tool_call_id="h", tool_name="handoff", tool_kwargs=arguments)]
        )
    if last.role == "tool" and "now handling the request" in text:
        text = str(asked[-1].content).removeprefix("orders: ")
    elif last.role != "user" or " " not in text:
        return ChatMessage(role="assistant", content=f"{text} in turn {len(asked)}")
    name, _, id = text.partition(" ")
    return ChatMessage(
        role="assistant",
        blocks=[ToolCallBlock(tool_call_id=f"c{len(messages)}", tool_name=name, tool_kwargs={"id": id})],
    )


def get_order(id: str) -> dict:
    """Order by id."""
    return {"id": id, "state": "sent"}


def refund(id: str) -> dict:
    """Refund."""
    raise ValueError("no such order")


async def cancel(ctx: Context, id: str) -> str:
    """Cancel."""
    await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Cancel it?"))
    return "cancelled"


# The framework reads annotations that are classes.
cancel.__annotations__["ctx"] = Context


def orders(**options) -> FunctionAgent:
    llm = MockFunctionCallingLLM(response_generator=say)
    return FunctionAgent(
        name="Orders", description="o", llm=llm, tools=[get_order, refund, cancel], streaming=False, **options
    )


def desk() -> AgentWorkflow:
    llm = MockFunctionCallingLLM(response_generator=say)
    triage = FunctionAgent(name="Triage", description="t", llm=llm, can_handoff_to=["Orders"], streaming=False)
    return AgentWorkflow(agents=[triage, orders()], root_agent="Triage")


def test_two_turns_are_one_conversation_with_actions() -> None:
    (result,) = results(orders(), ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert first.topic == "Orders"
    assert (second.outcome, second.actions) == ("Thanks in turn 2", ())


def test_the_error_of_a_tool_is_the_error_of_its_action() -> None:
    (action,) = answers(*results(orders(), ["refund 1"]))[0].actions
    assert "no such order" in action.error
    assert action.output is None


def test_a_handoff_is_the_topic_and_no_action() -> None:
    first, second = answers(*results(desk(), ["orders: get_order 7", "Bye"]))
    assert (first.topic, first.handoffs) == ("Orders", ("Orders",))
    assert [action.name for action in first.actions] == ["get_order"]
    assert (second.outcome, second.handoffs) == ("Bye in turn 2", ())


def test_cases_at_once_do_not_share_a_conversation() -> None:
    talks = [answers(result) for result in results(desk(), *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]


def test_the_history_of_a_case_is_known() -> None:
    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"turns": [{"input": "Well"}, {"input": "Bye"}], "conversationHistory": history}
    assert [answer.outcome for answer in answers(*results(orders(), case))] == ["Well in turn 2", "Bye in turn 3"]


def test_a_question_to_a_person_is_an_error() -> None:
    (result,) = results(orders(), ["cancel 7"])
    assert "waits for a person" in result.error
    assert "Cancel it?" in result.error


class Shout(Workflow):
    @step
    async def say(self, event: StartEvent) -> StopEvent:
        return StopEvent(result={"said": event.question.upper()})


def test_a_workflow_is_asked_with_its_arguments() -> None:
    asked, text = results(Shout(), {"input": {"question": "where"}}, ["where"])
    assert answers(asked)[0].value == {"said": "WHERE"}
    assert "is not an agent, so it cannot be asked a text" in text.error


def test_init_takes_a_workflow(project) -> None:
    project("from llama_index_agents import desk\nthing = desk()\n")


def test_agents_reached_by_handoffs_are_topics_and_their_tools_are_actions() -> None:
    assert parts(desk()) == ["Triage", "Orders", "Orders.get_order", "Orders.refund", "Orders.cancel"]
    assert parts(orders()) == [".get_order", ".refund", ".cancel"]


def test_a_workflow_that_is_no_agent_does_not_list_tools() -> None:
    with pytest.raises(NotFound, match="Shout does not list its tools"):
        parts(Shout())
