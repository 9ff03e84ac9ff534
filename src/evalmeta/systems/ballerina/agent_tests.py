"""`evalmeta.ballerina`: conversations of evaluation sets, traces of answers, and functions on traces."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.errors import SubjectError
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.sources import JsonFile, read_json
from evalmeta.package.files import read_file
from evalmeta.systems.ballerina.reader import read_threads, read_trace
from evalmeta.systems.ballerina.traces import (
    ChatAssistantMessage,
    ChatFunctionMessage,
    ChatMessage,
    ChatUserMessage,
    ConversationThread,
    FunctionCall,
    Iteration,
    Trace,
    TraceError,
    all_tool_calls,
    call_difference,
)

if TYPE_CHECKING:
    from evalmeta.model.generated_data import GeneratedData

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TRACE_KEYS: Final = frozenset({"userMessage", "iterations", "output"})


def load_conversation_threads(path: Path | str) -> dict[str, ConversationThread]:
    """Return the conversations of an evaluation set (`*.evalset.json`) by their ids, in the order of the file.

    Raises:
        FormatError: The file does not match the format, or two threads have the same id; has line and column.
        ProjectError: The file cannot be read.
    """
    file = read_json(read_file(Path(path), max_bytes=limits.MAX_JSON_BYTES), label=str(path))
    diagnostics = Diagnostics(str(path))
    threads = read_threads(file, diagnostics)
    diagnostics.check()
    return {thread.id: thread for thread in threads}


def trace_of(answer: object, utterance: str = "") -> Trace:
    """Return the trace of any agent's answer, so that the functions of this module work on it.

    If the answer contains a trace in Ballerina's form, return that. Otherwise the trace has one
    iteration from the start of the epoch, because the time of the question is unknown, and ends
    after the answer's latency. If the agent does not report its actions, it has no iteration.

    Args:
        answer: What an agent can return: a text, a mapping with `outcome`, `GeneratedData`; or the
            exception with which it failed.
        utterance: The question.

    Raises:
        SubjectError: The value is not a valid answer.
        FormatError: The answer's own trace does not match the format.
    """
    question = ChatUserMessage(utterance)
    if isinstance(answer, Exception):
        error = TraceError(f"{type(answer).__name__}: {answer}")
        return Trace("", question, (Iteration((question,), (error,), _EPOCH, _EPOCH),), error, (), _EPOCH, _EPOCH)
    generated = generated_data(answer)
    if isinstance(generated.trace, Mapping) and generated.trace.keys() >= _TRACE_KEYS:
        source = orjson.dumps(generated.trace, option=orjson.OPT_INDENT_2)
        diagnostics = Diagnostics("the answer's trace")
        trace = read_trace(JsonFile(diagnostics.label, generated.trace, source), diagnostics)
        diagnostics.check()
        return trace
    return _trace(generated, question)


def get_all_tool_calls(trace: Trace) -> list[FunctionCall]:
    """Return all tool calls in order.

    Raises:
        SubjectError: The trace has neither iterations nor tool calls, as that of an agent that does not report them.
    """
    if trace.tool_calls is None and not trace.iterations:
        raise SubjectError(
            "the agent does not report its tool calls",
            actions=("Return them with the answer: {'outcome': ..., 'actions': [...]}.",),
        )
    return list(all_tool_calls(trace))


def assert_tool_call(actual: FunctionCall, expected: FunctionCall) -> None:
    """Check that a call has the expected name and arguments; ids are not compared.

    Raises:
        AssertionError: The calls differ; the message says how.
    """
    if difference := call_difference(actual, expected):
        raise AssertionError(difference)


def _trace(generated: GeneratedData, question: ChatUserMessage) -> Trace:
    output = ChatAssistantMessage(generated.outcome)
    end = _EPOCH + timedelta(milliseconds=generated.latency_ms or 0)
    if (actions := generated.actions) is None:
        return Trace(generated.session_id or "", question, (), output, (), _EPOCH, end)
    calls = tuple(FunctionCall(action.name, action.input) for action in actions)
    results = tuple(ChatFunctionMessage(action.name, _text(action.output)) for action in actions)
    asked: tuple[ChatMessage, ...] = (ChatAssistantMessage(tool_calls=calls),) if calls else ()
    iteration = Iteration((question, *asked, *results), (output,), _EPOCH, end)
    return Trace(generated.session_id or "", question, (iteration,), output, (), _EPOCH, end, calls)


def _text(output: object) -> str | None:
    if output is None or isinstance(output, str):
        return output
    return orjson.dumps(output).decode()
