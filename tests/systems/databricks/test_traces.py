from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import FormatError
from evalmeta.model.generated_data import Action, Passage, Tokens
from evalmeta.systems.databricks.traces import read_trace

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue

MS = 1_000_000
CHUNKS = [
    {"page_content": "Spark", "metadata": {"doc_uri": "a.txt"}},
    {"content": "RDD", "doc_uri": "b.txt"},
    {"text": "x"},
    "no chunk",
]


def encoded(attributes: dict[str, JsonValue]) -> JsonObject:
    return {f"mlflow.{key}": json.dumps(value) for key, value in attributes.items()}


def span(name: str, parent: str = "", *, at: int = 0, ms: int = 1, **attributes: JsonValue) -> dict[str, JsonValue]:
    """Gives a span of schema 3; its name is its id too."""
    return {
        "trace_id": "t",
        "span_id": name,
        "parent_span_id": parent,
        "name": name,
        "start_time_unix_nano": at * MS,
        "end_time_unix_nano": (at + ms) * MS,
        "status": {"code": "STATUS_CODE_OK"},
        "attributes": encoded(attributes),
    }


def older(each: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Gives the same span as schema 2 has it."""
    return {
        "name": each["name"],
        "context": {"span_id": each["span_id"], "trace_id": "t"},
        "parent_id": each["parent_span_id"] or None,
        "start_time": each["start_time_unix_nano"],
        "end_time": each["end_time_unix_nano"],
        "status_code": "OK",
        "attributes": each["attributes"],
    }


def trace(*spans: dict[str, JsonValue], metadata: dict[str, str] | None = None, **info: JsonValue) -> JsonObject:
    told = {"trace_id": "tr-1", "state": "OK", "trace_metadata": metadata or {}, **info}
    return {"info": told, "data": {"spans": list(spans)}}


ROOT = span(
    "agent",
    spanType="AGENT",
    spanInputs={"messages": [{"role": "user", "content": "What is Spark?"}]},
    spanOutputs={"choices": [{"message": {"role": "assistant", "content": "An engine."}}]},
)
SPANS = (
    ROOT,
    span("second", "agent", at=20, ms=5, spanType="TOOL", spanInputs={"x": 1}, spanOutputs=2),
    span("first", "agent", at=10, spanType="TOOL", spanInputs="text", spanOutputs={"y": [3]}),
    span("early", "agent", at=1, spanType="RETRIEVER", spanOutputs=[{"page_content": "old"}]),
    span("late", "agent", at=30, spanType="RETRIEVER", spanOutputs=CHUNKS),
    span("inner", "late", at=31, spanType="RETRIEVER", spanOutputs=[{"page_content": "of the inner one"}]),
)


@pytest.mark.parametrize("schema", [2, 3])
def test_both_schemas_say_the_same(schema: int) -> None:
    value = trace(*SPANS, execution_duration_ms=1500)
    if schema == 2:
        info: JsonObject = {"request_id": "tr-1", "status": "OK", "timestamp_ms": 0, "execution_time_ms": 1500}
        value = {"info": info, "data": {"spans": [older(each) for each in SPANS], "request": '"other"'}}

    read = read_trace(json.dumps(value))

    assert (read.id, read.error) == ("tr-1", "")
    assert read.request == {"messages": [{"role": "user", "content": "What is Spark?"}]}
    generated = read.generated
    assert generated.outcome == "An engine."
    assert generated.actions == (
        Action("first", {"input": "text"}, {"y": [3]}, 1.0),
        Action("second", {"x": 1}, 2, 5.0),
    )
    assert generated.retrieved == (Passage("a.txt", "Spark"), Passage("b.txt", "RDD"), Passage("", "x"))
    assert generated.latency_ms == 1500
    assert generated.trace == value


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ("plain", "plain"),
        (["first", "second"], "first"),
        ({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, "a"),
        (
            {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]},
            "a",
        ),
        ([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": None}], "a"),
        ({"response": "a", "sources": 3}, "a"),
        ({"sum": 3}, '{"sum": 3}'),
        (7, "7"),
        (None, ""),
        ([], "[]"),
    ],
)
def test_the_answer_is_the_text_of_what_the_root_gave(outputs: JsonValue, text: str) -> None:
    assert read_trace(trace(span("root", spanOutputs=outputs))).generated.outcome == text


def test_without_a_root_the_trace_itself_tells() -> None:
    data: JsonObject = {"spans": [], "request": '{"query": "q"}', "response": '"answer"'}
    assert read_trace({"info": {}, "data": data}).generated.outcome == "answer"
    assert read_trace({"info": {}, "data": data}).request == {"query": "q"}

    metadata = {"mlflow.traceInputs": '{"question": "q"}', "mlflow.traceOutputs": '"a"', "mlflow.trace.session": "s"}
    read = read_trace(trace(metadata=metadata, request_preview="p", response_preview="p"))
    assert (read.request, read.generated.outcome, read.generated.session_id) == ({"question": "q"}, "a", "s")

    previewed = read_trace(trace(request_preview="asked", response_preview="said"))
    assert (previewed.request, previewed.generated.outcome) == ("asked", "said")


def test_tokens_are_those_of_the_trace_or_else_the_sum_of_the_outermost_spans_that_tell() -> None:
    usage = {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}
    spans = (
        span("chain"),
        span("llm", "chain", **{"chat.tokenUsage": usage}),
        span("inner", "llm", **{"chat.tokenUsage": usage}),
        span(
            "model", "chain", spanType="CHAT_MODEL", spanOutputs={"usage": {"prompt_tokens": 1, "completion_tokens": 2}}
        ),
    )
    noted = {"mlflow.trace.tokenUsage": '{"input_tokens": 5, "output_tokens": 6, "total_tokens": 11}'}

    assert read_trace(trace(*spans)).generated.tokens == Tokens(11, 6)
    assert read_trace(trace(*spans, metadata=noted)).generated.tokens == Tokens(5, 6)
    assert read_trace(trace(span("chain"))).generated.tokens is None


@pytest.mark.parametrize(
    ("info", "latency"),
    [
        ({"execution_duration": "1.25s"}, 1250.0),
        ({"execution_time_ms": 30}, 30.0),
        ({}, 7.0),
        ({"execution_duration_ms": -1}, 7.0),
    ],
)
def test_the_latency_is_told_or_else_that_of_the_root(info: dict[str, JsonValue], latency: float) -> None:
    assert read_trace(trace(span("root", ms=7), **info)).generated.latency_ms == latency


def test_long_numbers_may_be_texts() -> None:
    root = {**span("root"), "start_time_unix_nano": "1000000000", "end_time_unix_nano": "1500000000"}
    assert read_trace(trace(root)).generated.latency_ms == 500


def test_a_tool_has_the_name_that_its_call_says() -> None:
    tool = span("execute_tool", spanType="TOOL", spanInputs={"call": {"tool_name": "find"}})
    assert [action.name for action in read_trace(trace(tool)).generated.actions] == ["find"]


def test_nothing_retrieved_is_told_apart_from_no_retriever() -> None:
    assert read_trace(trace(ROOT)).generated.retrieved is None
    assert read_trace(trace(span("r", spanType="RETRIEVER", spanOutputs=[]))).generated.retrieved == ()


ENDED = "the recorded agent ended in an error: "


def failed(each: dict[str, JsonValue], kind: str = "KeyError", message: str = "'order 0'") -> dict[str, JsonValue]:
    """Gives the span with an exception as MLflow records it, in either schema."""
    attributes = {"exception.type": kind, "exception.message": message, "exception.stacktrace": "File secret.py"}
    status = {"status_code": "ERROR"} if "context" in each else {"status": {"code": "STATUS_CODE_ERROR"}}
    return {**each, **status, "events": [{"name": "exception", "attributes": attributes}]}


@pytest.mark.parametrize("form", [dict, older])
@pytest.mark.parametrize("key", ["state", "status"])
def test_a_trace_in_state_error_has_the_exception_of_its_root(form: object, key: str) -> None:
    root, tool = failed(form(span("root"))), failed(form(span("tool", "root")), "ValueError", "inner")  # type: ignore[operator]
    found = read_trace(trace(root, tool, **{"state": None, key: "ERROR"}))
    assert (found.error, found.step_errors) == (f"{ENDED}KeyError: 'order 0'", {})


@pytest.mark.parametrize(
    ("spans", "error"),
    [
        ((), "the trace does not say which"),
        ((ROOT, failed(span("tool", "root"))), "tool: KeyError: 'order 0'"),
        (({**span("root"), "status": {"code": "STATUS_CODE_ERROR", "message": "Timeout"}},), "Timeout"),
        (({**older(span("root")), "status_code": "ERROR", "status_message": "Timeout"},), "Timeout"),
        ((failed(span("root"), "Error", "token sk-proj-abcdefghijklmnopqrstuvwxyz012345"),), "Error: token [secret]"),
    ],
)
def test_the_error_of_a_trace_is_the_best_that_its_spans_say(spans: tuple[JsonObject, ...], error: str) -> None:
    assert read_trace(trace(*map(dict, spans), state="ERROR")).error == ENDED + error


def test_an_error_in_a_step_is_not_the_agents_if_it_answered() -> None:
    found = read_trace(trace(ROOT, failed(span("tool", "root"))))
    assert (found.error, found.step_errors) == ("", {"tool": "KeyError: 'order 0'"})


def test_a_trace_without_an_answer_that_is_in_progress_is_an_error() -> None:
    unfinished = trace(span("root"), state="IN_PROGRESS")
    assert read_trace(unfinished).error == "the trace was recorded before the agent had answered"
    assert read_trace(trace(ROOT, state="IN_PROGRESS")).error == ""


def test_expectations_that_people_noted_are_read() -> None:
    noted: list[JsonValue] = [
        {"assessment_name": "expected_response", "expectation": {"value": "It is shipped"}},
        {"assessment_name": "expected_facts", "expectation": {"serialized_value": {"value": '["shipped"]'}}},
        {"assessment_name": "guidelines", "expectation": {"value": "old"}, "valid": False},
        {"assessment_name": "good", "feedback": {"value": True}},
        "damaged",
    ]
    assert read_trace(trace(ROOT, assessments=noted)).expectations == {
        "expected_response": "It is shipped",
        "expected_facts": ["shipped"],
    }


def test_spans_around_each_other_end() -> None:
    usage: JsonValue = {"input_tokens": 1, "output_tokens": 1}
    loop = (span("a", "b", spanType="RETRIEVER"), span("b", "a", **{"chat.tokenUsage": usage}))
    assert read_trace(trace(*loop)).generated.tokens == Tokens(1, 1)


def test_a_trace_that_is_too_long_to_be_kept_is_read_all_the_same() -> None:
    read = read_trace(trace(ROOT, metadata={"x": "y" * 1_000_001}))
    assert (read.generated.outcome, read.generated.trace) == ("An engine.", None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nonsense", "it is a text, not an object"),
        ("[1]", "it is a list, not an object"),
        ({"info": {}}, "it has no 'data'"),
        ({"spans": []}, "it has no 'info' and 'data'"),
        ({"info": {}, "data": {"spans": {}}}, "its spans are an object, not a list"),
        ({"info": {}, "data": {"spans": [ROOT, 3]}}, "span 2 is a number, not an object"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(value: JsonValue, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        read_trace(value)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_keys = st.sampled_from(["span_id", "parent_span_id", "parent_id", "name", "start_time", "end_time", "context"])
_attributes = st.dictionaries(
    st.sampled_from(["mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage"]),
    _values.map(json.dumps) | st.sampled_from(['"TOOL"', '"RETRIEVER"', '"LLM"']) | _values,
)
_spans = st.builds(
    lambda keys, attributes: {**keys, "attributes": attributes}, st.dictionaries(_keys, _values), _attributes
)
_info = st.dictionaries(
    st.sampled_from(
        ["trace_id", "state", "trace_metadata", "request_metadata", "execution_duration", "request_preview"]
    ),
    _values,
)


@given(_info, st.lists(_spans | _values, max_size=4))
def test_whatever_a_trace_holds_is_read_or_refused(info: JsonObject, spans: list[JsonValue]) -> None:
    try:
        read = read_trace({"info": info, "data": {"spans": spans}})
    except FormatError:
        return
    assert isinstance(read.generated.outcome, str)


def chat(span_id: str, inputs: JsonObject, outputs: JsonObject, start: int) -> JsonObject:
    attributes = {"mlflow.spanType": "CHAT_MODEL", "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
    return {
        "span_id": span_id,
        "parent_span_id": "root",
        "name": "Completions",
        "start_time_unix_nano": start,
        "end_time_unix_nano": start + 1,
        "attributes": {name: json.dumps(value) for name, value in attributes.items()},
    }


def test_calls_of_tools_are_read_from_chat_models_if_only_those_were_logged() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": 7}'}}
    unanswered = {"id": "c2", "type": "function", "function": {"name": "notify", "arguments": ""}}
    asked = {"role": "user", "content": "Where is it?"}
    said = {"role": "assistant", "content": None, "tool_calls": [call, unanswered]}
    output = {"role": "tool", "tool_call_id": "c1", "content": '{"state": "sent"}'}
    spans = [
        {"span_id": "root", "name": "agent", "attributes": {"mlflow.spanType": '"AGENT"'}},
        chat("1", {"messages": [asked]}, {"choices": [{"message": said}]}, 1),
        chat("2", {"messages": [asked, said, output]}, {"choices": [{"message": {"content": "Sent."}}]}, 2),
    ]
    actions = read_trace({"info": {"trace_id": "t"}, "data": {"spans": spans}}).generated.actions

    assert actions == (Action("get_order", {"id": 7}, {"state": "sent"}, None), Action("notify", {}, None, None))


def test_calls_of_the_responses_api_are_read_from_its_items() -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "get_order", "arguments": '{"id": 7}'}
    output = {"type": "function_call_output", "call_id": "c1", "output": "sent"}
    spans = [
        chat("1", {"input": [{"role": "user", "content": "Where?"}]}, {"output": [item]}, 1),
        chat("2", {"input": [item, output]}, {"output": [{"type": "message"}]}, 2),
    ]
    actions = read_trace({"info": {"trace_id": "t"}, "data": {"spans": spans}}).generated.actions

    assert actions == (Action("get_order", {"id": 7}, "sent", None),)
