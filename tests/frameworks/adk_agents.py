from __future__ import annotations

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types
from talks import answers, parts, results


class Fake(BaseLlm):
    """Calls the tool that the question names, and then says what it returned."""

    async def generate_content_async(self, request, stream=False):
        said = [part for content in request.contents for part in content.parts]
        texts = [part.text for content in request.contents if content.role == "user" for part in content.parts]
        # What other agents did stands there as the user's, too.
        asked = [text for text in texts if text and not text.startswith(("For context:", "["))]
        last = said[-1]
        response = last.function_response
        text = str(response.response) if response else asked[-1]
        name, _, id = text.partition(" ")
        is_question = response is None or response.name == "transfer_to_agent"
        if is_question:
            name, _, id = asked[-1].partition(" ")
        tools = request.tools_dict
        if is_question and id and name not in tools and "transfer_to_agent" in tools:
            part = types.Part(function_call=types.FunctionCall(name="transfer_to_agent", args={"agent_name": "orders"}))
        elif is_question and id:
            part = types.Part(function_call=types.FunctionCall(name=name, args={"id": id}))
        else:
            part = types.Part(text=f"{text} in turn {len(asked)}")
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=3)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


def get_order(id: str) -> dict:
    """Order by id."""
    return {"id": id, "state": "sent"}


def refund(id: str) -> dict:
    """Refund."""
    return {"error": "no such order"}


def get_city(id: str, tool_context) -> dict:
    """City."""
    return {"city": tool_context.state["city"]}


def cancel(id: str) -> dict:
    """Cancel."""
    return {"state": "cancelled"}


def orders(name: str = "orders") -> LlmAgent:
    return LlmAgent(
        name=name,
        description="o",
        model=Fake(model="fake"),
        tools=[get_order, refund, get_city, FunctionTool(cancel, require_confirmation=True)],
    )


def triage() -> LlmAgent:
    return LlmAgent(name="triage", model=Fake(model="fake"), sub_agents=[orders()])


@pytest.mark.parametrize(
    "wrap",
    [lambda agent: agent, lambda agent: App(name="shop", root_agent=agent), lambda agent: InMemoryRunner(agent=agent)],
    ids=["agent", "app", "runner"],
)
def test_two_turns_are_one_conversation_with_actions_and_tokens(wrap) -> None:
    (result,) = results(wrap(orders()), ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert (first.topic, first.tokens.input, first.tokens.output) == ("orders", 20, 6)
    assert (second.outcome, second.actions) == ("Thanks in turn 2", ())


def test_the_error_of_a_tool_is_the_error_of_its_action() -> None:
    (action,) = answers(*results(orders(), ["refund 1"]))[0].actions
    assert action.error == "no such order"


def test_a_handoff_is_the_topic_and_the_next_turn_begins_there() -> None:
    first, second = answers(*results(triage(), ["get_order 7", "Bye"]))
    assert (first.topic, first.handoffs) == ("orders", ("orders",))
    assert [action.name for action in first.actions] == ["transfer_to_agent", "get_order"]
    assert (second.topic, second.outcome) == ("orders", "Bye in turn 2")


def test_cases_at_once_do_not_share_a_conversation() -> None:
    talks = [answers(result) for result in results(orders(), *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]


def test_the_history_and_the_context_of_a_case_are_known() -> None:
    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"input": "get_city now", "conversationHistory": history, "context": {"city": "Bonn"}}
    answer = answers(*results(orders(), case))[0]
    assert answer.outcome == "{'city': 'Bonn'} in turn 2"


def test_a_call_that_a_person_must_confirm_is_an_error() -> None:
    (result,) = results(orders(), ["cancel 7"])
    assert result.verdict.name == "ERROR"
    assert "waits for a person to confirm the call of cancel" in result.error


def test_init_takes_an_agent(project) -> None:
    project("from adk_agents import orders\nthing = orders()\n")


class Shop(BaseToolset):
    """Tools that are listed by a call, as those of servers are."""

    closed = 0

    async def get_tools(self, readonly_context=None):
        return [FunctionTool(get_order)]

    async def close(self) -> None:
        self.closed += 1


def office() -> LlmAgent:
    """Returns an agent above one that only calls others, of which one has a toolset with a prefix."""
    clerk = LlmAgent(name="clerk", model="fake", tools=[Shop(tool_name_prefix="shop")])
    steps = SequentialAgent(name="steps", sub_agents=[orders(), clerk])
    return LlmAgent(name="office", model="fake", sub_agents=[steps], tools=[AgentTool(orders("helper")), refund])


@pytest.mark.parametrize(
    "wrap",
    [lambda agent: agent, lambda agent: App(name="shop", root_agent=agent), lambda agent: InMemoryRunner(agent=agent)],
    ids=["agent", "app", "runner"],
)
def test_sub_agents_that_answer_are_topics_and_all_tools_are_actions(wrap) -> None:
    assert parts(wrap(office())) == [
        *("orders", "clerk", "office.helper", "office.refund"),
        *("orders.get_order", "orders.refund", "orders.get_city", "orders.cancel", "clerk.shop_get_order"),
    ]
    assert parts(orders()) == [".get_order", ".refund", ".get_city", ".cancel"]


def test_a_toolset_is_closed_after_it_was_listed() -> None:
    shop = Shop()
    assert parts(LlmAgent(name="clerk", model="fake", tools=[shop])) == [".get_order"]
    assert shop.closed == 1


@pytest.mark.parametrize("adapter", ["python", "adk"])
def test_cases_cover_the_topics_and_tools_that_they_expect(coverage, adapter) -> None:
    source = "from adk_agents import office\nthing = root_agent = office()\n"
    cases = "- {input: a, topic: orders, actions: [refund]}\n"
    target = "desk" if adapter == "adk" else "desk:thing"
    covered = coverage(source, cases, adapter=adapter, target=target)
    assert {name for name, is_covered in covered.items() if is_covered} == {"orders", "orders.refund"}
    assert len(covered) == 9
