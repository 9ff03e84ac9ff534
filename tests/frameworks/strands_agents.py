from __future__ import annotations

import json

import pytest
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent, HookProvider
from strands.models.model import Model
from strands.multiagent import GraphBuilder, Swarm
from talks import answers, parts, results

from evalmeta.errors import SettingsError


class Fake(Model):
    """Calls the tool that the question names, and then says what it returned."""

    def update_config(self, **others):
        pass

    def get_config(self):
        return {"model_id": "fake"}

    async def structured_output(self, *arguments, **others):
        yield {}

    async def stream(self, messages, *arguments, **others):
        last = messages[-1]["content"][-1]
        asked = [message for message in messages if message["role"] == "user" and "text" in message["content"][0]]
        text = last["text"] if "text" in last else last["toolResult"]["content"][0]["text"]
        name, _, id = text.partition(" ")
        yield {"messageStart": {"role": "assistant"}}
        if "text" in last and id:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": f"c{len(messages)}"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"id": id})}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": f"{text} in turn {len(asked)}"}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
        yield {
            "metadata": {
                "usage": {"inputTokens": 10, "outputTokens": 3, "totalTokens": 13},
                "metrics": {"latencyMs": 5},
            }
        }


@tool
def get_order(id: str) -> str:
    """Order by id."""
    return json.dumps({"id": id, "state": "sent"})


@tool
def refund(id: str) -> str:
    """Refund."""
    raise ValueError("no such order")


@tool
def cancel(id: str) -> str:
    """Cancel."""
    return "cancelled"


@tool(context=True)
def get_city(id: str, tool_context: ToolContext) -> str:
    """City."""
    return tool_context.invocation_state["city"]


class Approval(HookProvider):
    def register_hooks(self, registry, **others):
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event):
        name = event.tool_use["name"]
        if name == "cancel" and event.interrupt(name, reason="May I?").lower() != "y":
            event.cancel_tool = "denied"


def orders() -> Agent:
    return Agent(
        model=Fake(),
        tools=[get_order, refund, cancel, get_city],
        name="Orders",
        callback_handler=None,
        hooks=[Approval()],
    )


def test_two_turns_are_one_conversation_with_actions_and_tokens() -> None:
    (result,) = results(orders, ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert (first.topic, first.tokens.input, first.tokens.output) == ("Orders", 20, 6)
    assert (second.outcome, second.actions, second.tokens.input) == ("Thanks in turn 2", (), 10)


def test_the_error_of_a_tool_is_the_error_of_its_action() -> None:
    (action,) = answers(*results(orders, ["refund 1"]))[0].actions
    assert "no such order" in action.error
    assert action.output is None


def test_cases_at_once_do_not_share_a_conversation() -> None:
    talks = [answers(result) for result in results(orders, *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]


def test_the_history_and_the_context_of_a_case_are_known() -> None:
    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"input": "get_city now", "conversationHistory": history, "context": {"city": "Bonn"}}
    assert answers(*results(orders, case))[0].outcome == "Bonn in turn 2"


def test_a_call_that_nobody_approves_is_an_error_with_the_way_to_approve_it() -> None:
    (result,) = results(orders, ["cancel 7"])
    assert "waits for the approval of cancel" in result.error


def test_a_case_approves_a_call() -> None:
    (result,) = results(orders, {"turns": [{"input": "cancel 7"}, {"input": "Bye"}], "approve": "cancel"})
    first, second = answers(result)
    assert [(action.name, action.output) for action in first.actions] == [("cancel", "cancelled")]
    assert second.outcome == "Bye in turn 2"


def test_an_agent_itself_is_refused_with_the_function_to_write() -> None:
    with pytest.raises(SettingsError, match="holds one conversation") as caught:
        results(orders(), ["Hi"])
    assert "def make_agent(): return Agent(" in caught.value.actions[0]


def test_init_takes_a_factory(project) -> None:
    project("from strands_agents import orders\ndef thing():\n    return orders()\n")


class Sorter(Fake):
    """Hands every conversation over to Orders."""

    async def stream(self, messages, *arguments, **others):
        if "toolResult" in messages[-1]["content"][-1]:
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Handed over."}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
            return
        given = json.dumps({"agent_name": "Orders", "message": "An order."})
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {"toolUse": {"name": "handoff_to_agent", "toolUseId": "h1"}}}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}


class Caller(Fake):
    """Calls the tool that the user's task names, whatever a swarm or a graph writes around it."""

    async def stream(self, messages, *arguments, **others):
        last = messages[-1]["content"]
        if "toolResult" not in last[-1]:
            written = " ".join(part.get("text", "") for part in last)
            task = next((name for name in ("get_order 7", "refund 1", "cancel 7") if name in written), "Hello")
            messages = [{"role": "user", "content": [{"text": task}]}]
        async for event in super().stream(messages):
            yield event


def clerk() -> Agent:
    return Agent(
        model=Caller(), tools=[get_order, refund, cancel], name="Orders", callback_handler=None, hooks=[Approval()]
    )


def swarm() -> Swarm:
    triage = Agent(model=Sorter(), name="Triage", callback_handler=None)
    return Swarm([triage, clerk()], entry_point=triage)


def graph():
    builder = GraphBuilder()
    builder.add_node(Agent(model=Caller(), name="Greeter", callback_handler=None), "Greeter")
    builder.add_node(clerk(), "Orders")
    builder.add_edge("Greeter", "Orders")
    builder.set_entry_point("Greeter")
    return builder.build()


@pytest.mark.filterwarnings("ignore:graph has no max_node_executions")
@pytest.mark.parametrize("make", [swarm, graph])
def test_several_agents_answer_with_their_actions_and_handoffs(make) -> None:
    (result,) = results(make, ["get_order 7", "refund 1"])
    found, failed = answers(result)
    calls = [action for action in found.actions if action.error is None]
    assert [(action.name, action.input, action.output) for action in calls] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert (found.topic, found.handoffs) == ("Orders", ("Orders",))
    assert "sent" in found.outcome
    assert found.tokens.input > 0
    assert "no such order" in failed.actions[-1].error


def test_cases_of_several_agents_at_once_are_kept_apart() -> None:
    found = results(swarm, ["get_order 7"], ["refund 1"], ["Hi"], ["get_order 7"])
    assert [[action.name for action in answers(result)[0].actions] for result in found] == [
        ["get_order"], ["refund"], [], ["get_order"],
    ]  # fmt: skip


def test_a_case_approves_a_call_of_several_agents() -> None:
    (refused,) = results(swarm, ["cancel 7"])
    assert "waits for the approval of cancel" in refused.error
    (result,) = results(swarm, {"turns": [{"input": "cancel 7"}], "approve": "cancel"})
    assert [(action.name, action.output) for action in answers(result)[0].actions] == [("cancel", "cancelled")]


def test_several_agents_need_a_factory_and_no_history() -> None:
    with pytest.raises(SettingsError, match="holds one conversation"):
        results(swarm(), ["Hi"])
    history = [{"role": "user", "message": "Hi"}]
    assert (
        "cannot begin with a conversation history"
        in results(swarm, {"input": "Hi", "conversationHistory": history})[0].error
    )


def test_the_tools_of_an_agent_are_its_actions() -> None:
    assert sorted(parts(orders)) == [".cancel", ".get_city", ".get_order", ".refund"]


@pytest.mark.parametrize("make", [swarm, graph])
def test_nodes_after_the_first_are_topics_and_handoffs_are_not_actions(make) -> None:
    assert parts(make)[:1] == ["Orders"]
    assert all(name.startswith("Orders.") for name in parts(make)[1:])
    assert len(parts(make)) > 1
