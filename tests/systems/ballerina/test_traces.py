from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import AgentFailed, FormatError
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.sources import read_json
from evalmeta.systems.ballerina.reader import read_threads
from evalmeta.systems.ballerina.traces import (
    ChatAssistantMessage,
    ChatFunctionMessage,
    ChatSystemMessage,
    ChatUserMessage,
    FunctionCall,
    ToolSchema,
    Trace,
    TraceError,
    all_tool_calls,
    call_difference,
    get_errors,
    get_final_answer,
    get_total_execution_time,
)
from systems.ballerina.ballerinasets import ADD, SUBTRACT, assistant, evalset, iteration, result, trace, user


def read(*traces: dict[str, object]) -> tuple[Trace, ...]:
    diagnostics = Diagnostics("m.evalset.json")
    [thread] = read_threads(read_json(evalset(t=list(traces)), label="m.evalset.json"), diagnostics)
    diagnostics.check()
    return thread.traces


def problem(text: str | bytes) -> str:
    diagnostics = Diagnostics("m.json")
    read_threads(read_json(text if isinstance(text, bytes) else text.encode(), label="m.json"), diagnostics)
    with pytest.raises(FormatError) as caught:
        diagnostics.check()
    return str(caught.value)


def names(found: Trace) -> list[str]:
    return [call.name for call in all_tool_calls(found)]


def test_every_field_of_a_trace_is_read() -> None:
    system = {"role": "system", "content": "Be exact.", "name": "boss"}
    steps = [
        iteration(assistant(None, {**ADD, "id": "c1"}), system, user("4+9?")),
        iteration(assistant("13"), system, user("4+9?"), assistant(None, ADD), result("add", "13", id="c1")),
    ]
    [found] = read(trace("4+9?", assistant("13"), *steps))

    call = FunctionCall("add", {"a": 4, "b": 9}, "c1")
    assert (found.id, found.user_message, found.output) == (
        "trace of 4+9?",
        ChatUserMessage("4+9?"),
        ChatAssistantMessage("13"),
    )
    assert found.tools == (ToolSchema("add", "Adds.", {"type": "object"}),)
    assert found.tool_calls is None
    assert found.start_time == datetime(2026, 2, 12, 5, 47, 8, tzinfo=UTC)
    assert found.iterations[0].output == (ChatAssistantMessage(None, (call,)),)
    assert found.iterations[1].history == (
        ChatSystemMessage("Be exact.", "boss"),
        ChatUserMessage("4+9?"),
        ChatAssistantMessage(None, (FunctionCall("add", {"a": 4, "b": 9}),)),
        ChatFunctionMessage("add", "13", "c1"),
    )


def test_calls_are_those_that_the_trace_lists() -> None:
    [found] = read(trace("q", assistant("a"), iteration(assistant("a")), toolCalls=[SUBTRACT, ADD]))
    assert names(found) == ["subtract", "add"]


def test_without_a_list_calls_are_those_that_iterations_asked_for() -> None:
    steps = [iteration(assistant(None, SUBTRACT, ADD)), iteration(assistant(None, ADD)), iteration(assistant("a"))]
    [found] = read(trace("q", assistant("a"), *steps))
    assert names(found) == ["subtract", "add", "add"]


def test_results_of_an_iteration_show_the_calls_that_its_history_has() -> None:
    again = {**ADD, "arguments": {"a": 1, "b": 1}}
    step = iteration(
        [result("add", "2"), result("subtract", "4"), result("guess", "?")],
        user("q"),
        assistant(None, ADD),
        result("add", "13"),
        assistant(None, SUBTRACT, again),
    )
    [found] = read(trace("q", assistant("a"), step))
    assert all_tool_calls(found) == (
        FunctionCall("add", {"a": 1, "b": 1}),
        FunctionCall("subtract", {"a": 7, "b": 3}),
        FunctionCall("guess"),
    )


def test_an_agent_without_tools_made_no_calls() -> None:
    [found] = read(trace("q", assistant("a"), iteration(assistant("a"))))
    assert all_tool_calls(found) == ()


@pytest.mark.parametrize(
    ("actual", "difference"),
    [
        (FunctionCall("add", {"a": 1.0, "b": [True, None]}, "other id"), None),
        (FunctionCall("sub", {"a": 1, "b": [True, None]}), "expected a call of 'add', got one of 'sub'"),
        (
            FunctionCall("add", {"a": 2, "c": "x"}),
            "the call of 'add' has other arguments: 'a' is 2, expected 1; 'b' is missing; 'c' was not expected",
        ),
        (
            FunctionCall("add", {"a": 1, "b": [1, None]}),
            "the call of 'add' has other arguments: 'b' is [1, None], expected [True, None]",
        ),
    ],
)
def test_a_call_is_compared_by_name_and_arguments(actual: FunctionCall, difference: str | None) -> None:
    assert call_difference(actual, FunctionCall("add", {"a": 1, "b": [True, None]})) == difference


def test_objects_in_arguments_are_compared_by_their_values() -> None:
    one, other = ({"to": {"name": name, "at": [1]}} for name in ("Raj", "Ann"))
    assert call_difference(FunctionCall("mail", one), FunctionCall("mail", dict(one))) is None
    assert "expected {'name': 'Ann'" in (call_difference(FunctionCall("mail", one), FunctionCall("mail", other)) or "")


def test_errors_of_iterations_and_of_the_trace_are_found() -> None:
    good, bad = read(
        trace("q", assistant("a"), iteration(assistant("a"))),
        trace("q", "gave up", iteration("no tool"), iteration([result("add", "1"), "no time"])),
    )
    assert get_errors(good) == []
    assert get_errors(bad) == [TraceError("no tool"), TraceError("no time"), TraceError("gave up")]


def test_the_error_that_ended_the_last_iteration_and_the_trace_is_one() -> None:
    [found] = read(trace("q", "gave up", iteration("gave up")))
    assert get_errors(found) == [TraceError("gave up")]


def test_the_final_answer_is_the_text_of_the_output() -> None:
    answered, silent = read(trace("q", assistant("It is 13.")), trace("q", assistant(None)))
    assert (get_final_answer(answered), get_final_answer(silent)) == ("It is 13.", "")


def test_an_agent_that_failed_has_no_final_answer() -> None:
    [found] = read(trace("q", "gave up"))
    with pytest.raises(AgentFailed, match="gave up"):
        get_final_answer(found)


def test_times_are_seconds_of_a_trace_or_an_iteration() -> None:
    [found] = read(trace("q", assistant("a"), iteration(assistant("a"))))
    assert (get_total_execution_time(found), get_total_execution_time(found.iterations[0])) == (2.25, 1.5)


@pytest.mark.parametrize("end", ["2026-02-12T05:47:10.25Z", "2026-02-12T07:47:10.250+02:00", [1770875230, 0.25]])
def test_times_are_texts_or_seconds_with_a_fraction(end: object) -> None:
    [found] = read(trace("q", assistant("a"), endTime=end))
    assert found.end_time == datetime(2026, 2, 12, 5, 47, 10, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "time", ["yesterday", "2026-02-12T05:47:10", [], [1.5, 0], [1, 1.5], [1, True], [True], [10**15, 0], 5, {}]
)
def test_what_is_no_time_is_a_problem_with_its_place(time: object) -> None:
    message = problem(evalset(t=[trace("q", assistant("a"), startTime=time)]))
    assert message.startswith("m.json:31:24: 'startTime' of a trace is not a valid time in UTC: ")


def test_a_trace_that_ends_before_it_starts_is_a_problem() -> None:
    message = problem(evalset(t=[trace("q", assistant("a"), endTime=[0, 0])]))
    assert message.endswith("a trace ends before it starts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"userMessage": assistant("q")}, "'role' of the user's message is 'assistant', not 'user'"),
        ({"output": user("a")}, "'role' of the output is 'user', not 'assistant'"),
        ({"output": None}, "a trace needs 'output'"),
        ({"output": 3}, "the output is a number, not an object"),
        ({"iterations": None}, "a trace needs 'iterations'"),
        ({"tools": {}}, "'tools' of a trace is an object, not a list"),
        ({"toolCalls": [{"arguments": {}}]}, "a call needs 'name'"),
        ({"toolCalls": [{"name": "add", "arguments": "{}"}]}, "'arguments' of a call is a text, not an object"),
        ({"iterations": [iteration(None)]}, "an iteration needs 'output'"),
        ({"iterations": [iteration([user("x")])]}, "'role' of an output is 'user', not 'assistant' or 'function'"),
        ({"iterations": [iteration("x", {"content": "x"})]}, "a message needs 'role'"),
        ({"startTime": None}, "a trace needs 'startTime'"),
    ],
)
def test_what_does_not_fit_is_a_problem(change: dict[str, object], message: str) -> None:
    assert message in problem(evalset(t=[{**trace("q", assistant("a")), **change}]))


def test_threads_have_ids_of_their_own() -> None:
    message = problem(evalset(a=[], b=[], a__2=[]))
    assert message.splitlines() == [
        "m.json:17:13: the thread 'a' is repeated; the first one is in line 6",
        "  Give each thread a unique id.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "m.json:1:1: the evaluation set is a list, not an object"),
        ("{}", "m.json:1:1: the evaluation set needs 'threads'"),
        ('{"threads": [{"id": "a"}]}', "m.json:1:14: a thread needs 'traces'"),
        ('{"threads": [4]}', "m.json:1:14: a thread is a number, not an object"),
    ],
)
def test_a_set_without_threads_is_none(text: str, message: str) -> None:
    assert problem(text).startswith(message)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "name"]), inner, max_size=2),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["id", "userMessage", "iterations", "output", "toolCalls", "tools", "startTime", "endTime"]),
        values,
    )
)
def test_whatever_stands_in_a_trace_is_read_or_told(change: dict[str, object]) -> None:
    diagnostics = Diagnostics("m.json")
    text = json.dumps({"threads": [{"id": "a", "traces": [{**trace("q", assistant("a")), **change}]}]})
    [thread] = read_threads(read_json(text.encode("utf-8", "surrogatepass"), label="m.json"), diagnostics)
    [found] = thread.traces
    assert get_total_execution_time(found) >= 0 or diagnostics.notes == ()
