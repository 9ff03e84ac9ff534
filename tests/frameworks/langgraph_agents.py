from __future__ import annotations

import operator
from typing import Annotated

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from talks import answers, parts, results
from typing_extensions import TypedDict


class Model(GenericFakeChatModel):
    """Calls the tool that the question names, and then says what it returned."""

    messages: object = None

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        from langchain_core.outputs import ChatGeneration, ChatResult

        last, asked = messages[-1], [message for message in messages if message.type == "human"]
        usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
        text = str(last.content)
        if last.type == "human" and " " in text:
            name, _, id = text.partition(" ")
            reply = AIMessage(
                "", tool_calls=[{"name": name, "args": {"id": id}, "id": f"c{len(messages)}"}], usage_metadata=usage
            )
        else:
            reply = AIMessage(f"{text} in turn {len(asked)}", usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=reply)])


@tool
def get_order(id: str) -> dict:
    """Order by id."""
    return {"id": id, "state": "sent"}


@tool
def refund(id: str) -> str:
    """Refund."""
    raise ToolException("no such order")


refund.handle_tool_error = True


@tool(response_format="content_and_artifact")
def search(id: str):
    """Search."""
    return "found", [Document("Orders are sent.", metadata={"source": "orders.md"})]


TOOLS = [get_order, refund, search]


@pytest.fixture(params=[True, False], ids=["checkpointer", "stateless"])
def agent(request):
    saver = InMemorySaver() if request.param else None
    return create_agent(Model(), tools=TOOLS, name="order_desk", checkpointer=saver)


def test_two_turns_are_one_conversation_with_actions_and_tokens(agent) -> None:
    (result,) = results(agent, ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"id": "7", "state": "sent"})
    ]
    assert (first.topic, first.tokens.input, first.tokens.output) == ("order_desk", 20, 6)
    assert second.outcome == "Thanks in turn 2"
    assert second.actions == ()


def test_the_error_of_a_tool_is_the_error_of_its_action(agent) -> None:
    (result,) = results(agent, ["refund 1"])
    (action,) = answers(result)[0].actions
    assert (action.error, action.output) == ("no such order", None)


def test_documents_of_a_tool_are_retrieved_passages(agent) -> None:
    (result,) = results(agent, ["search orders"])
    (passage,) = answers(result)[0].retrieved
    assert (passage.uri, passage.content) == ("orders.md", "Orders are sent.")


def test_cases_at_once_do_not_share_a_conversation(agent) -> None:
    talks = [answers(result) for result in results(agent, *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]
    assert len({talk[0].session_id for talk in talks}) == 4


def test_the_history_of_a_case_is_known(agent) -> None:
    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    (result,) = results(agent, {"input": "Well", "conversationHistory": history})
    assert answers(result)[0].outcome == "Well in turn 2"


def desk(**compiled):
    orders = create_agent(Model(), tools=TOOLS)
    graph = StateGraph(MessagesState)
    graph.add_node("triage", lambda _: Command(goto="orders"), destinations=("orders",))
    graph.add_node("orders", orders)
    graph.add_edge(START, "triage")
    graph.add_edge("orders", END)
    return graph.compile(name="desk", **compiled)


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
def test_a_graph_in_a_graph_is_the_topic_and_a_handoff(saver) -> None:
    (result,) = results(desk(checkpointer=saver), ["get_order 7", "Bye"])
    first, second = answers(result)
    assert (first.topic, first.handoffs) == ("orders", ("orders",))
    assert [action.name for action in first.actions] == ["get_order"]
    assert second.outcome == "Bye in turn 2"


class Question(TypedDict):
    question: str
    answer: str


def custom():
    graph = StateGraph(Question)
    graph.add_node("say", lambda state: {"answer": state["question"].upper()})
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    return graph.compile()


def test_a_state_of_its_own_is_asked_with_a_mapping() -> None:
    (result,) = results(custom(), {"input": {"question": "where"}})
    assert answers(result)[0].value == {"question": "where", "answer": "WHERE"}


def test_a_state_without_messages_cannot_be_asked_a_text() -> None:
    (result,) = results(custom(), ["where"])
    assert "no messages" in result.error
    assert "question, answer" in result.error


class Customer(MessagesState):
    city: str
    seen: Annotated[list, operator.add]


def test_context_variables_are_in_the_state() -> None:
    graph = StateGraph(Customer)
    graph.add_node("say", lambda state: {"messages": [("ai", f"{state['city']} {len(state['seen'])}")], "seen": [1]})
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    case = {"turns": [{"input": "Hi"}, {"input": "Hi"}], "contextVariables": [{"name": "city", "value": "Bonn"}]}
    (result,) = results(graph.compile(checkpointer=InMemorySaver()), case)
    assert [answer.outcome for answer in answers(result)] == ["Bonn 0", "Bonn 1"]


def guarded():
    middleware = HumanInTheLoopMiddleware(interrupt_on={"get_order": True})
    return create_agent(Model(), tools=TOOLS, middleware=[middleware], checkpointer=InMemorySaver())


def test_a_call_that_nobody_approves_is_an_error_with_the_way_to_approve_it() -> None:
    (result,) = results(guarded(), ["get_order 7"])
    assert result.verdict.name == "ERROR"
    assert "waits for the approval of get_order" in result.error
    assert "approve: [get_order]" in result.error


def test_a_case_approves_a_call() -> None:
    approved, other = results(
        guarded(), {"input": "get_order 7", "approve": ["get_order"]}, {"input": "get_order 7", "approve": ["refund"]}
    )
    assert answers(approved)[0].actions[0].output == {"id": "7", "state": "sent"}
    assert "waits for the approval" in other.error


def test_another_interrupt_is_an_error() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("say", lambda _: {"messages": [("ai", interrupt("Which order?"))]})
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    (result,) = results(graph.compile(checkpointer=InMemorySaver()), ["Hi"])
    assert "waits for a person" in result.error
    assert "Which order?" in result.error


def test_a_factory_makes_one_agent_for_each_case() -> None:
    made = []

    def make():
        made.append(create_agent(Model(), tools=TOOLS))
        return made[-1]

    for result in results(make, ["Hi"], ["Hi"], ["Hi"]):
        assert answers(result)[0].outcome == "Hi in turn 1"
    assert len(made) == 3


def test_an_async_factory_makes_agents() -> None:
    async def make():
        return create_agent(Model(), tools=TOOLS)

    assert answers(results(make, ["Hi"])[0])[0].outcome == "Hi in turn 1"


def test_init_takes_a_graph(project) -> None:
    project("from langgraph_agents import create_agent, Model, TOOLS\nthing = create_agent(Model(), tools=TOOLS)\n")


def test_the_tools_of_an_agent_are_its_actions(agent) -> None:
    assert parts(agent) == [".get_order", ".refund", ".search"]


def test_graphs_in_a_graph_are_topics_with_the_tools_below_them() -> None:
    assert parts(desk()) == ["orders", "orders.get_order", "orders.refund", "orders.search"]


def test_a_graph_without_tools_has_no_parts() -> None:
    assert parts(custom()) == []


def test_cases_cover_the_tools_and_the_inner_graphs_that_they_expect(coverage) -> None:
    cases = "- {input: a, topic: orders, actions: [get_order]}\n- {input: b, actions: [lookup]}\n"
    assert coverage("from langgraph_agents import desk\nthing = desk()\n", cases) == {
        "orders": True,
        "orders.get_order": True,
        "orders.refund": False,
        "orders.search": False,
    }
