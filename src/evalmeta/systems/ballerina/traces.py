"""Traces of agents as Ballerina's `ballerina/ai` records them, and functions of them.

Sources: "Evaluation for AI Agents in Ballerina" (ballerina-spec, issue 1402); `ballerina/ai` 1.13, which added
`toolCalls` of a trace and several outputs of an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from evalmeta.errors import AgentFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from evalmeta.model.json_value import JsonObject, JsonValue


UNKNOWN_ARGUMENTS: Final[JsonObject] = {}
"""The arguments of a call of which a trace has only the result; compare it with `is`."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a tool that the model asked for; `id` distinguishes several calls of one answer."""

    name: str
    arguments: JsonObject = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ChatUserMessage:
    """A message of a person."""

    content: str
    name: str | None = None
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True)
class ChatSystemMessage:
    """The instructions of the model."""

    content: str
    name: str | None = None
    role: Literal["system"] = "system"


@dataclass(frozen=True, slots=True)
class ChatAssistantMessage:
    """A message of the model: a text, or tools to call."""

    content: str | None = None
    tool_calls: tuple[FunctionCall, ...] = ()
    name: str | None = None
    role: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True)
class ChatFunctionMessage:
    """The result of a tool; `id` is that of its call."""

    name: str
    content: str | None = None
    id: str | None = None
    role: Literal["function"] = "function"


@dataclass(frozen=True, slots=True)
class TraceError:
    """An error in a trace."""

    message: str


ChatMessage: TypeAlias = ChatUserMessage | ChatSystemMessage | ChatAssistantMessage | ChatFunctionMessage
IterationOutput: TypeAlias = ChatAssistantMessage | ChatFunctionMessage | TraceError


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool that the agent had."""

    name: str
    description: str = ""
    parameters_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """One cycle of thinking and acting."""

    history: tuple[ChatMessage, ...]  # the messages up to here
    output: tuple[IterationOutput, ...]  # a result of each tool that was called, or the model's message, or an error
    start_time: datetime
    end_time: datetime


@dataclass(frozen=True, slots=True)
class Trace:
    """What an agent did to answer one message; times are in UTC."""

    id: str
    user_message: ChatUserMessage
    iterations: tuple[Iteration, ...]
    output: ChatAssistantMessage | TraceError
    tools: tuple[ToolSchema, ...]  # all tools that the agent had
    start_time: datetime
    end_time: datetime
    tool_calls: tuple[FunctionCall, ...] | None = None  # the calls as the trace lists them; None when it does not


@dataclass(frozen=True, slots=True)
class ConversationThread:
    """A conversation: a trace for each message of the user."""

    id: str
    description: str
    traces: tuple[Trace, ...]


def all_tool_calls(trace: Trace) -> tuple[FunctionCall, ...]:
    """Return the tool calls in order: those that the trace lists, or else those of its iterations."""
    return trace.tool_calls or tuple(call for iteration in trace.iterations for call in _calls_of(iteration))


def call_difference(actual: FunctionCall, expected: FunctionCall) -> str | None:
    """Describe how a call differs from the expected one in name and arguments; None when it does not."""
    if actual.name != expected.name:
        return f"expected a call of {expected.name!r}, got one of {actual.name!r}"
    differences = "; ".join(_argument_differences(actual.arguments, expected.arguments))
    return f"the call of {expected.name!r} has other arguments: {differences}" if differences else None


def get_user_query(trace: Trace) -> str:
    """Return the user's message."""
    return trace.user_message.content


def has_error(trace: Trace) -> bool:
    """Say whether an iteration or the trace ended with an error."""
    return bool(get_errors(trace))


def get_errors(trace: Trace) -> list[TraceError]:
    """Return all errors in order; the one that ended both the last iteration and the trace is one."""
    errors = [out for iteration in trace.iterations for out in iteration.output if isinstance(out, TraceError)]
    last = trace.iterations[-1].output[-1:] if trace.iterations else ()
    if isinstance(trace.output, TraceError) and (trace.output,) != last:
        errors.append(trace.output)
    return errors


def get_final_answer(trace: Trace) -> str:
    """Return the text of the answer, which may be empty.

    Raises:
        AgentFailed: The agent ended with an error; it fails a test as an assertion does.
    """
    if isinstance(trace.output, TraceError):
        raise AgentFailed(f"the agent ended in an error: {trace.output.message}")
    return trace.output.content or ""


def get_total_execution_time(trace: Trace | Iteration) -> float:
    """Return the duration of a trace, or of one of its iterations, in seconds."""
    return (trace.end_time - trace.start_time).total_seconds()


def _calls_of(iteration: Iteration) -> Iterable[FunctionCall]:
    """Return the calls of an iteration: its requests, or else the requests that its results answer."""
    asked = _requested(iteration.output)
    results = [out for out in iteration.output if isinstance(out, ChatFunctionMessage)]
    if asked or not results:
        return asked
    waiting = _requested(_latest(iteration.history))
    return [_request_of(result, waiting) for result in reversed(results)][::-1]


def _latest(history: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return the messages since the user's last one."""
    begin = max((place for place, message in enumerate(history) if isinstance(message, ChatUserMessage)), default=0)
    return history[begin:]


def _requested(messages: Iterable[ChatMessage | TraceError]) -> list[FunctionCall]:
    return [call for message in messages if isinstance(message, ChatAssistantMessage) for call in message.tool_calls]


def _request_of(result: ChatFunctionMessage, waiting: list[FunctionCall]) -> FunctionCall:
    """Remove and return the last call that a result can answer; a call without arguments when there is none."""
    for place in range(len(waiting) - 1, -1, -1):
        if waiting[place].name == result.name and (result.id is None or waiting[place].id in {None, result.id}):
            return waiting.pop(place)
    return FunctionCall(result.name, UNKNOWN_ARGUMENTS, result.id)


def _argument_differences(actual: JsonObject, expected: JsonObject) -> Iterator[str]:
    for name in [*expected, *(name for name in actual if name not in expected)]:
        if name not in actual:
            yield f"{name!r} is missing"
        elif name not in expected:
            yield f"{name!r} was not expected"
        elif not _is_same(actual[name], expected[name]):
            yield f"{name!r} is {actual[name]!r}, expected {expected[name]!r}"


def _is_same(actual: JsonValue, expected: JsonValue) -> bool:
    """Compare as JSON does: 1 equals 1.0, but not true."""
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, dict) and isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(_is_same(actual[name], expected[name]) for name in actual)
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        return len(actual) == len(expected) and all(map(_is_same, actual, expected))
    return actual == expected
