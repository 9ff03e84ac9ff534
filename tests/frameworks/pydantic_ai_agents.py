from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import DynamicToolset
from talks import answers, parts, results


@dataclass
class Customer:
    city: str = ""


def say(messages, info):
    """Call the tool that the question names, and then say what it returned."""
    last = messages[-1].parts[-1]
    asked = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    text = str(last.content)
    if isinstance(last, UserPromptPart) and info.output_tools:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"text": text, "turn": len(asked)})])
    if isinstance(last, UserPromptPart) and " " in text:
        name, _, id = text.partition(" ")
        return ModelResponse(parts=[ToolCallPart(name, {"id": id})])
    return ModelResponse(parts=[TextPart(f"{text} in turn {len(asked)}")])


def orders(**options) -> Agent:
    agent = Agent(FunctionModel(say), name="Orders", **options)

    @agent.tool_plain
    def get_order(id: str) -> dict:
        return {"id": id, "state": "sent"}

    @agent.tool_plain
    def refund(id: str) -> dict:
        raise ModelRetry("no such order")

    return agent


def test_two_turns_are_one_conversation_with_actions_and_tokens() -> None:
    (result,) = results(orders(), ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert first.topic == "Orders"
    assert first.tokens.input > 0
    assert (second.outcome, second.actions) == ("Thanks in turn 2", ())


def test_the_error_of_a_tool_is_the_error_of_its_action() -> None:
    (action,) = answers(*results(orders(), ["refund 1"]))[0].actions
    assert (action.error, action.output) == ("no such order", None)


def test_a_structured_answer_is_no_action() -> None:
    class Said(BaseModel):
        text: str
        turn: int

    first, second = answers(*results(orders(output_type=Said), ["Hi", "Bye"]))
    assert (first.value, first.actions) == ({"text": "Hi", "turn": 1}, ())
    assert second.value == {"text": "Bye", "turn": 2}


def test_cases_at_once_do_not_share_a_conversation() -> None:
    talks = [answers(result) for result in results(orders(), *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]
    assert len({talk[0].session_id for talk in talks}) == 4


def test_the_history_and_the_context_of_a_case_are_known() -> None:
    agent = orders(deps_type=Customer)

    @agent.tool
    def get_city(context: RunContext[Customer], id: str) -> str:
        return context.deps.city

    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"input": "get_city now", "conversationHistory": history, "context": {"city": "Bonn"}}
    assert answers(*results(agent, case))[0].outcome == "Bonn in turn 2"


def test_dependencies_that_cannot_be_made_are_an_error() -> None:
    class Connection:
        def __init__(self, url) -> None:
            raise AssertionError

    (result,) = results(orders(deps_type=Connection), ["Hi"])
    assert "the agent's dependencies, Connection, cannot be made" in result.error


def guarded() -> Agent:
    agent = orders(output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def cancel(id: str) -> dict:
        return {"id": id, "state": "cancelled"}

    return agent


def test_a_call_that_nobody_approves_is_an_error_with_the_way_to_approve_it() -> None:
    (result,) = results(guarded(), ["cancel 7"])
    assert "waits for the approval of cancel" in result.error


def test_a_case_approves_a_call() -> None:
    (result,) = results(guarded(), {"turns": [{"input": "cancel 7"}, {"input": "Bye"}], "approve": "cancel"})
    first, second = answers(result)
    assert [(action.name, action.output) for action in first.actions] == [("cancel", {"id": "7", "state": "cancelled"})]
    assert second.outcome == "Bye in turn 2"


def test_init_takes_an_agent(project) -> None:
    project("from pydantic_ai_agents import orders\nthing = orders()\n")


def equipped() -> Agent:
    """Returns an agent whose tools come from itself, from a toolset with a prefix, and from one made for each run."""
    shop = FunctionToolset(tools=[lookup], id="shop")

    def of_the_run(context: RunContext[Customer]) -> FunctionToolset:
        return FunctionToolset(tools=[lookup]).prefixed(context.deps.city or "anywhere")

    agent = orders(toolsets=[shop.prefixed("shop"), DynamicToolset(of_the_run)], deps_type=Customer)

    @agent.tool(prepare=lambda context, tool: tool if context.deps.city else None)
    def only_in_a_city(context: RunContext[Customer]) -> str:
        return context.deps.city

    return agent


def lookup(id: str) -> str:
    """Looks an order up."""
    return id


def test_tools_of_all_toolsets_are_actions_under_the_names_that_answers_have() -> None:
    assert parts(equipped()) == [".get_order", ".refund", ".shop_lookup", ".anywhere_lookup"]


def test_tools_are_listed_although_the_dependencies_cannot_be_made() -> None:
    class Connection:
        def __init__(self, url) -> None:
            raise AssertionError

    assert parts(orders(deps_type=Connection)) == [".get_order", ".refund"]


def test_cases_cover_the_tools_that_they_expect(coverage) -> None:
    source = "from pydantic_ai_agents import equipped\nthing = equipped()\n"
    assert coverage(source, "- {input: a, actions: [shop_lookup]}\n- {input: b, not_actions: [refund]}\n") == {
        "get_order": False,
        "refund": False,
        "shop_lookup": True,
        "anywhere_lookup": False,
    }
