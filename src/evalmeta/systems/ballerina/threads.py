"""Conversation threads of Ballerina's evaluation sets, read from JSON."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from evalmeta.formats.records import Record, kind_of
from evalmeta.systems.ballerina.traces import (
    ChatAssistantMessage,
    ChatFunctionMessage,
    ChatSystemMessage,
    ChatUserMessage,
    ConversationThread,
    FunctionCall,
    Iteration,
    ToolSchema,
    Trace,
    TraceError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.formats.diagnostics import Diagnostics
    from evalmeta.formats.json_source import JsonFile
    from evalmeta.model.json_value import JsonValue
    from evalmeta.systems.ballerina.traces import ChatMessage, IterationOutput


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ROLES: Final = ("system", "user", "assistant", "function")
_USER_HINT: Final = 'Write {"role": "user", "content": "..."}.'
_OUTPUT_HINT: Final = 'Write {"role": "assistant", "content": "..."}, or the message of an error as a text.'
_TIME_HINT: Final = 'Write "2026-02-12T05:47:05.966Z", or [seconds since 1970, fraction of a second].'


def read_threads(file: JsonFile, diagnostics: Diagnostics, *, is_strict: bool = True) -> list[ConversationThread]:
    """Read the threads of a set, in order; every problem is added to the diagnostics.

    An output that is a text is an error's message; an iteration has one output, or a list. Unless `is_strict`, a trace
    needs only the user's message and the output, and a thread without an id gets one from its place, `thread-1`.
    """
    reader = _Reader(is_strict=is_strict)
    root = Record(file, (), file.value, diagnostics, called="the evaluation set")
    root.require("threads")
    threads: list[ConversationThread] = []
    places: dict[str, int] = {}
    for place, record in enumerate(root.records("threads", called="a thread")):
        thread = reader.thread(record, place)
        threads.append(thread)
        if thread.id and places.setdefault(thread.id, place) != place:
            line, _ = file.place(("threads", places[thread.id]))
            message = f"the thread {thread.id!r} is repeated; the first one is in line {line}"
            record.error("ballerina-thread", message, "id", hint="Give each thread a unique id.")
    return threads


def read_trace(file: JsonFile, diagnostics: Diagnostics) -> Trace:
    """Read a file that is one trace; every problem is added to the diagnostics."""
    return _Reader(is_strict=True).trace(Record(file, (), file.value, diagnostics, called="a trace"))


class _Reader:
    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict

    def thread(self, record: Record, place: int) -> ConversationThread:
        name = self._id(record) or f"thread-{place + 1}"
        traces = tuple(self.trace(trace) for trace in record.records("traces", called="a trace"))
        record.require("traces")
        return ConversationThread(name, record.text("description") or "", traces)

    def trace(self, record: Record) -> Trace:
        record.check_keys("id", "userMessage", "iterations", "output", "toolCalls", "tools", "startTime", "endTime")
        start, end = self._times(record)
        return Trace(
            id=self._id(record),
            user_message=self._user_message(record),
            iterations=tuple(
                self._iteration(iteration) for iteration in self._listed(record, "iterations", called="an iteration")
            ),
            output=self._final_output(record),
            tools=tuple(map(_tool, self._listed(record, "tools", called="a tool"))),
            start_time=start,
            end_time=end,
            tool_calls=_calls(record) if record.has("toolCalls") else None,
        )

    def _user_message(self, record: Record) -> ChatUserMessage:
        record.require("userMessage", hint=_USER_HINT)
        message = record.record("userMessage", called="the user's message")
        read = _message(message, "user") if message else None
        return read if isinstance(read, ChatUserMessage) else ChatUserMessage("")

    def _final_output(self, record: Record) -> ChatAssistantMessage | TraceError:
        if isinstance(text := record.raw("output"), str):
            return TraceError(text)
        record.require("output", hint=_OUTPUT_HINT)
        message = record.record("output", called="the output")
        read = _message(message, "assistant") if message else None
        return read if isinstance(read, ChatAssistantMessage) else ChatAssistantMessage()

    def _iteration(self, record: Record) -> Iteration:
        start, end = self._times(record)
        messages = (_message(said, *_ROLES) for said in self._listed(record, "history", called="a message"))
        history = tuple(message for message in messages if message is not None)
        record.require("output")
        return Iteration(history, tuple(self._outputs(record)), start, end)

    def _outputs(self, record: Record) -> Iterator[IterationOutput]:
        """Yield the outputs of an iteration, which may be a list or a single output."""
        value = record.raw("output")
        listed = (
            [((place,), output) for place, output in enumerate(value)] if isinstance(value, list) else [((), value)]
        )
        for place, output in listed if record.has("output") else ():
            if isinstance(output, str):
                yield TraceError(output)
                continue
            message = _message(record.at(output, "output", *place, called="an output"), "assistant", "function")
            if isinstance(message, ChatAssistantMessage | ChatFunctionMessage):
                yield message

    def _id(self, record: Record) -> str:
        return record.required_text("id") if self._is_strict else record.text("id") or ""

    def _listed(self, record: Record, name: str, *, called: str) -> Iterator[Record]:
        """Return the objects of a list, which is required in strict mode."""
        if self._is_strict:
            record.require(name, hint="It may be empty: [].")
        return record.records(name, called=called)

    def _times(self, record: Record) -> tuple[datetime, datetime]:
        for name in ("startTime", "endTime") if self._is_strict else ():
            record.require(name, hint=_TIME_HINT)
        start, end = _time(record, "startTime"), _time(record, "endTime")
        if start and end and end < start:
            record.error("ballerina-time", f"{record.called} ends before it starts", "endTime")
        return start or _EPOCH, end or _EPOCH


def _message(record: Record, *roles: str) -> ChatMessage | None:
    """Read a message with one of these roles."""
    role = record.required_text("role")
    if role not in roles:
        if role:
            message = f"'role' of {record.called} is {role!r}, not {' or '.join(map(repr, roles))}"
            record.error("ballerina-role", message, "role")
        return None
    name = record.text("name")
    if role == "assistant":
        return ChatAssistantMessage(record.text("content"), _calls(record), name)
    if role == "function":
        return ChatFunctionMessage(record.required_text("name"), record.text("content"), record.text("id"))
    content = record.required_text("content")
    return ChatUserMessage(content, name) if role == "user" else ChatSystemMessage(content, name)


def _calls(record: Record) -> tuple[FunctionCall, ...]:
    return tuple(
        FunctionCall(call.required_text("name"), call.object("arguments"), call.text("id"))
        for call in record.records("toolCalls", called="a call")
    )


def _tool(record: Record) -> ToolSchema:
    name, description = record.required_text("name"), record.text("description") or ""
    return ToolSchema(name, description, record.object("parametersSchema") if record.has("parametersSchema") else None)


def _time(record: Record, name: str) -> datetime | None:
    value = record.raw(name)
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else _from_pair(value)
        if time is not None and time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    shown = f"{value[:40]!r}" if isinstance(value, str) else kind_of(value)
    record.error(
        "ballerina-time", f"{name!r} of {record.called} is not a valid time in UTC: {shown}", name, hint=_TIME_HINT
    )
    return None


def _from_pair(value: JsonValue) -> datetime | None:
    """Read whole seconds since 1970 and a fraction of 0 to 1; Ballerina omits a fraction of 0."""
    if not isinstance(value, list) or not 1 <= len(value) <= len(("seconds", "fraction")):
        return None
    whole, fraction = value if len(value) > 1 else (value[0], 0)
    if not isinstance(whole, int) or isinstance(whole, bool):
        return None
    if not isinstance(fraction, int | float) or isinstance(fraction, bool) or math.floor(fraction) != 0:
        return None
    return _EPOCH + timedelta(seconds=whole, microseconds=round(fraction * 1_000_000))
