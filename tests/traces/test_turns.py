from __future__ import annotations

from pathlib import Path

import pytest

from evalmeta.traces.otlp import read_file
from evalmeta.traces.spans import Span, Telemetry, Trace, traces_of
from evalmeta.traces.turns import TracedTurn, read_turn

RECORDINGS = Path(__file__).parent / "recordings"
ORDER = "Your order 10045 is on its way."
GET_ORDER = ("get_order", {"id": "10045"}, {"id": "10045", "state": "sent"})

LANGCHAIN = ("langchain_openinference", "langchain_openllmetry")
FAILED_TOOL = ("cancel_order", {"id": "1"}, "Error: no such order: 1")


def turns_of(name: str) -> list[TracedTurn]:
    traces = traces_of(read_file((RECORDINGS / f"{name}.jsonl").read_bytes(), label=name))
    return [turn for trace in traces if (turn := read_turn(trace))]


@pytest.mark.parametrize(
    ("name", "topic", "tokens", "session"),
    [
        ("pydantic_ai_2", "order_desk", (114, 18), "conversation-1"),
        ("pydantic_ai_3", "order_desk", (114, 18), "conversation-1"),
        ("pydantic_ai_5", "order_desk", (114, 18), "conversation-1"),
        ("langchain_openinference", "order_desk", (30, 11), "conversation-1"),
        ("langchain_openllmetry", "order_desk", (30, 11), "conversation-1"),
        ("openai_agents", "Orders", (30, 9), ""),
        ("strands", "Orders", (30, 9), "conversation-1"),
        ("strands_latest", "Orders", (30, 9), "conversation-1"),
        ("agent_framework_content", "Orders", (20, 6), ""),
        ("adk_2_content", "orders", (30, 9), "5c3e5eb8-0a24-4c9f-859b-8ec5ecbd67f8"),
        ("adk_1", "orders", (30, 9), "92997037-8e66-40c6-9878-4e2dbc0c7bf1"),
        ("mlflow", "order_desk", (30, 11), ""),
    ],
)
def test_a_trace_of_a_real_library_says_what_the_agent_did(
    name: str, topic: str, tokens: tuple[int, int], session: str
) -> None:
    turn = turns_of(name)[0]

    assert (turn.utterance, turn.answer, turn.topic) == ("Where is order 10045?", ORDER, topic)
    called = [(action.name, action.input, action.output) for action in turn.actions or ()]
    assert called == [GET_ORDER, *([FAILED_TOOL] if name.startswith("strands") else [])]
    assert turn.tokens is not None
    assert (turn.tokens.input, turn.tokens.output) == tokens
    assert (turn.session, turn.error, turn.findings) == (session, None, ())
    assert {"utterance", "answer", "actions", "topic", "tokens"} <= turn.rules.keys()


@pytest.mark.parametrize("name", ["pydantic_ai_2", "pydantic_ai_3", "pydantic_ai_5"])
def test_a_tool_that_raises_ends_the_turn_in_an_error_and_is_still_an_action(name: str) -> None:
    turn = turns_of(name)[1]

    assert (turn.utterance, turn.answer, turn.error) == ("Cancel order 1", None, "ValueError: no such order: 1")
    (action,) = turn.actions or ()
    assert (action.name, action.input) == ("cancel_order", {"id": "1"})
    assert action.error == "ValueError: no such order: 1"
    assert turn.findings == ()


@pytest.mark.parametrize(
    "name",
    [
        "langchain_openinference",
        "langchain_openllmetry",
        "strands",
        "strands_latest",
        "adk_1",
        "adk_2_content",
        "mlflow",
    ],
)
def test_the_second_turn_of_a_conversation_is_not_mixed_with_the_first(name: str) -> None:
    turn = turns_of(name)[1]

    assert (turn.utterance, turn.answer, turn.actions) == ("Thanks", "You are welcome.", ())
    assert turn.session == turns_of(name)[0].session


@pytest.mark.parametrize("name", ["openai_agents", "adk_1", "adk_2", "adk_2_content"])
def test_a_handoff_is_the_topic_and_not_an_action(name: str) -> None:
    turn = turns_of(name)[0]

    assert [agent.lower() for agent in turn.agents] == ["triage", "orders"]
    assert [action.name for action in turn.actions or ()] == ["get_order"]


def test_adk_without_content_says_topic_tools_and_tokens_and_which_setting_brings_the_rest() -> None:
    first, second = turns_of("adk_2")

    assert (first.utterance, first.answer, first.topic) == (None, None, "orders")
    assert [(action.name, action.has_details) for action in first.actions or ()] == [("get_order", False)]
    assert second.actions is None
    assert first.tokens
    assert (first.tokens.input, first.tokens.output) == (30, 9)
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT" in first.findings[0]


def test_agent_framework_without_content_says_topic_tools_and_tokens_and_which_call_brings_the_rest() -> None:
    (turn,) = turns_of("agent_framework")

    assert (turn.utterance, turn.answer, turn.topic) == (None, None, "Orders")
    assert [action.name for action in turn.actions or ()] == ["get_order"]
    assert "call enable_instrumentation(enable_sensitive_data=True)" in turn.findings[0]


def test_the_model_in_quotes_of_mlflow_is_known() -> None:
    tokens = turns_of("mlflow")[0].tokens

    assert tokens
    assert tokens.model == "small"


@pytest.mark.parametrize("name", ["langchain_openinference", "mlflow"])
def test_passages_come_from_spans_of_retrievals(name: str) -> None:
    turn = turns_of(name)[0]

    assert turn.retrieved
    assert [(passage.uri, passage.content) for passage in turn.retrieved] == [
        ("docs/orders.md", "Orders are sent within a day.")
    ]


def span(name: str, span_id: str, parent: str = "", *, start: int = 1, end: int = 2, **attributes: object) -> Span:
    keys = {key.replace("__", "."): value for key, value in attributes.items()}
    return Span("t" * 32, span_id, parent, name, start, end, keys)  # type: ignore[arg-type]


def chat(span_id: str, parent: str, *, asked: str, answered: str = "", call: str = "", start: int = 1) -> Span:
    """Return a call of a model that got a message, and that returned an answer or a call of a tool."""
    parts = [{"type": "tool_call", "id": call, "name": call, "arguments": {}}] if call else []
    parts += [{"type": "text", "content": answered}] if answered else []
    messages = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": asked}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": parts}],
    }
    return span("chat", span_id, parent, start=start)._replace(attributes=messages)


def turn_of(*spans: Span) -> TracedTurn:
    (trace,) = traces_of([Telemetry(spans)])
    turn = read_turn(trace)
    assert turn is not None
    return turn


ROOT = span("invoke_agent desk", "a", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="desk")


def test_children_may_arrive_before_their_parents_and_exports_may_be_repeated() -> None:
    call = chat("b", "a", asked="Hello", answered="Good day")

    assert turn_of(call, ROOT, call) == turn_of(ROOT, call)
    assert turn_of(call, ROOT).answer == "Good day"


def test_what_is_absent_is_unknown_and_a_finding_says_what_would_bring_it() -> None:
    model = span("generate_content", "b", "a", gen_ai__operation__name="generate_content")._replace(
        scope="gcp.vertex.agent"
    )

    turn = turn_of(ROOT, model)

    assert (turn.utterance, turn.answer, turn.actions, turn.tokens) == (None, None, None, None)
    assert [finding for finding in turn.findings if "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in finding]


def test_a_value_that_an_exporter_cut_is_a_finding() -> None:
    cut = chat("b", "a", asked="Hello", answered="Good day")
    cut = cut._replace(attributes={**cut.attributes, "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"ty'})

    turn = turn_of(ROOT, cut)

    assert turn.answer is None
    assert turn.findings == (
        "gen_ai.output.messages of 'chat' was cut: raise or remove OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    )


def test_two_agents_in_one_trace_are_a_finding() -> None:
    other = ROOT._replace(span_id="c", name="invoke_agent other", start_ns=5)

    turn = turn_of(
        ROOT, chat("b", "a", asked="Hello", answered="One"), other, chat("d", "c", asked="x", answered="Two", start=6)
    )

    assert turn.answer == "Two"
    assert "2 agents side by side (invoke_agent desk, invoke_agent other)" in turn.findings[0]


def test_a_root_that_has_not_ended_is_a_finding() -> None:
    turn = turn_of(ROOT._replace(end_ns=0), chat("b", "a", asked="Hello", answered="Good day"))

    assert turn.findings == ("the span 'invoke_agent desk' has not ended",)
    assert turn.latency_ms is None


def test_a_trace_without_the_span_of_its_agent_is_not_whole_and_a_finding_says_so() -> None:
    asked = chat("b", "a", asked="Where is order 7?", answered="It was sent.")
    (trace,) = traces_of([Telemetry((asked,))])
    turn = read_turn(trace)
    assert turn
    assert not turn.is_whole
    assert any("the trace is incomplete" in finding for finding in turn.findings)


def test_the_caller_of_an_agent_may_export_its_spans_elsewhere() -> None:
    agent = span("invoke_agent", "a", "9", **{"gen_ai.operation.name": "invoke_agent"})
    assert turn_of(agent, chat("b", "a", asked="Where is order 7?", answered="It was sent.")).is_whole


def test_a_part_of_an_agent_that_has_ended_does_not_make_a_trace_whole() -> None:
    part = span("invoke_agent", "b", "a", **{"gen_ai.operation.name": "invoke_agent"})
    assert not turn_of(part, chat("c", "a", asked="Where is order 7?", answered="It was sent.")).is_whole


def test_a_trace_from_the_future_is_a_finding() -> None:
    late = 10**19
    turn = turn_of(ROOT._replace(start_ns=late, end_ns=late), chat("b", "a", asked="Hello", answered="Good day"))

    assert "begins in the future" in turn.findings[0]


def test_making_an_agent_is_not_a_turn() -> None:
    made = span("create_agent desk", "a", gen_ai__operation__name="create_agent")

    assert read_turn(Trace("t" * 32, [made])) is None


def test_spans_that_name_each_other_as_parents_end() -> None:
    one, two = ROOT._replace(parent_id="b"), ROOT._replace(span_id="b", parent_id="a")

    assert read_turn(Trace("t" * 32, [one, two])) is None


def test_a_call_of_a_model_inside_another_is_counted_once() -> None:
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    outer = chat("b", "a", asked="Hello", answered="Good day")
    outer = outer._replace(attributes={**outer.attributes, **usage})
    inner = outer._replace(span_id="c", parent_id="b")

    turn = turn_of(ROOT, outer, inner)

    assert turn.tokens
    assert (turn.tokens.input, turn.tokens.output) == (10, 2)


def test_a_result_that_is_a_list_of_one_object_is_kept_as_it_is() -> None:
    tool = span(
        "execute_tool look_up",
        "c",
        "a",
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__call__result='[{"id": 1}]',
    )

    turn = turn_of(ROOT, tool)

    assert [action.output for action in turn.actions or ()] == [[{"id": 1}]]


def test_calls_are_joined_with_their_spans_by_id_and_others_by_name() -> None:
    first = chat("b", "a", asked="Hello", call="look_up")
    tool = span(
        "execute_tool look_up",
        "c",
        "a",
        start=3,
        end=5,
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="look_up",
        gen_ai__tool__call__result='{"found": true}',
    )
    by_code = tool._replace(
        span_id="d", start_ns=6, end_ns=7, attributes={**tool.attributes, "gen_ai.tool.name": "log"}
    )

    turn = turn_of(ROOT, first, tool, by_code, chat("e", "a", asked="x", answered="Done", start=8))

    assert [(action.name, action.output) for action in turn.actions or ()] == [
        ("look_up", {"found": True}),
        ("log", {"found": True}),
    ]
