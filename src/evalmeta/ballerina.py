"""What Ballerina's agent tests ask, in Python: recorded conversations, traces and the functions on them.

    from evalmeta import ballerina

    trace = ballerina.trace_of(answer("Send an email to Raj"))
    assert [call.name for call in ballerina.get_all_tool_calls(trace)] == ["sendEmail"]

Functions and types have the names of `ballerina/ai` and of the proposal "Evaluation for AI
Agents in Ballerina" (ballerina-spec, issue 1402), as Python writes names.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.formats.ballerina.threads import read_threads, read_trace
from evalmeta.formats.ballerina.traces import (
    ChatAssistantMessage,
    ChatFunctionMessage,
    ChatMessage,
    ChatSystemMessage,
    ChatUserMessage,
    ConversationThread,
    FunctionCall,
    Iteration,
    ToolSchema,
    Trace,
    TraceError,
    all_tool_calls,
    call_difference,
    errors_of,
    execution_seconds,
    final_answer,
)
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.json_source import JsonFile, read_json
from evalmeta.package.files import read_file

if TYPE_CHECKING:
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject

__all__ = [
    "ChatAssistantMessage",
    "ChatFunctionMessage",
    "ChatMessage",
    "ChatSystemMessage",
    "ChatUserMessage",
    "ConversationThread",
    "FunctionCall",
    "Iteration",
    "ToolSchema",
    "Trace",
    "TraceError",
    "assert_tool_call",
    "get_all_tool_calls",
    "get_errors",
    "get_final_answer",
    "get_total_execution_time",
    "get_user_query",
    "has_error",
    "load_conversation_threads",
    "trace_of",
]

_BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TRACE_KEYS: Final = frozenset({"userMessage", "iterations", "output"})


def load_conversation_threads(path: Path | str) -> dict[str, ConversationThread]:
    """Gives the conversations of an evaluation set (`*.evalset.json`) by their ids, in the order of the file.

    Raises:
        FormatError: it does not fit the format, or two threads have one id: with line and column.
        ProjectError: the file cannot be read.
    """
    file = read_json(read_file(Path(path), max_bytes=limits.MAX_JSON_BYTES), label=str(path))
    diagnostics = Diagnostics(str(path))
    threads = read_threads(file, diagnostics)
    diagnostics.check()
    return {thread.id: thread for thread in threads}


def trace_of(answer: object, utterance: str = "") -> Trace:
    """Gives the trace of what any agent answered, so that the functions here work on it.

    An answer that has a trace in Ballerina's form gives that one. Of any other, the trace has one
    iteration and begins at 0 of the epoch, for it is not told when the agent was asked; it ends
    after the answer's latency.

    Args:
        answer: what an agent may return: a text, a mapping with `outcome`, `GeneratedData`; or an
            exception, which is the error that the agent ended in.
        utterance: what the agent was asked.

    Raises:
        SubjectError: it is no answer.
        FormatError: its own trace does not fit the format.
    """
    question = ChatUserMessage(utterance)
    if isinstance(answer, Exception):
        error = TraceError(f"{type(answer).__name__}: {answer}")
        return Trace("", question, (Iteration((question,), (error,), _BEGIN, _BEGIN),), error, (), _BEGIN, _BEGIN)
    generated = generated_data(answer)
    if isinstance(generated.trace, Mapping) and generated.trace.keys() >= _TRACE_KEYS:
        return _own_trace(generated.trace)
    return _trace(generated, question)


def get_user_query(trace: Trace) -> str:
    """Gives what the user said."""
    return trace.user_message.content


def get_all_tool_calls(trace: Trace) -> list[FunctionCall]:
    """Gives all calls of tools, in order; an empty list when there was none."""
    return list(all_tool_calls(trace))


def assert_tool_call(actual: FunctionCall, expected: FunctionCall) -> None:
    """Checks that a call has the expected name and arguments; ids are not compared.

    Raises:
        AssertionError: it has not; the message says the difference.
    """
    if difference := call_difference(actual, expected):
        raise AssertionError(difference)


def has_error(trace: Trace) -> bool:
    """Says whether an iteration or the trace ended in an error."""
    return bool(errors_of(trace))


def get_errors(trace: Trace) -> list[TraceError]:
    """Gives all errors, in order; an empty list when there was none."""
    return list(errors_of(trace))


def get_final_answer(trace: Trace) -> str:
    """Gives the text of the answer.

    Raises:
        AgentFailed: the agent ended in an error; a test fails by it, as by an assertion.
    """
    return final_answer(trace)


def get_total_execution_time(trace: Trace | Iteration) -> float:
    """Gives how long a trace, or one iteration of it, took, in seconds."""
    return execution_seconds(trace)


def _own_trace(trace: JsonObject) -> Trace:
    source = orjson.dumps(trace, option=orjson.OPT_INDENT_2)
    diagnostics = Diagnostics("the answer's trace")
    found = read_trace(JsonFile(diagnostics.label, trace, source), diagnostics)
    diagnostics.check()
    return found


def _trace(generated: GeneratedData, question: ChatUserMessage) -> Trace:
    calls = tuple(FunctionCall(each.name, each.input) for each in generated.actions)
    results = tuple(ChatFunctionMessage(each.name, _text(each.output)) for each in generated.actions)
    asked: tuple[ChatMessage, ...] = (ChatAssistantMessage(tool_calls=calls),) if calls else ()
    output = ChatAssistantMessage(generated.outcome)
    end = _BEGIN + timedelta(milliseconds=generated.latency_ms or 0)
    iteration = Iteration((question, *asked, *results), (output,), _BEGIN, end)
    return Trace(generated.session_id or "", question, (iteration,), output, (), _BEGIN, end, calls)


def _text(output: object) -> str | None:
    if output is None or isinstance(output, str):
        return output
    return orjson.dumps(output).decode()
