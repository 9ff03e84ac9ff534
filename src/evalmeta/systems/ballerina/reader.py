"""Files of Ballerina's agent tests as evaluations: recorded conversations, and datasets of a data provider.

Each turn of a conversation (`*.evalset.json`) expects the calls with their arguments and the answer of its trace; the
same answer is not recorded as the agent's, because comparing a recording with itself proves nothing. Each entry of a
dataset is a case. `confidence` and `iterations` are the words of the proposal, `minPassRate` and `runs` those of
Ballerina's test framework.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.formats.diagnostics import Diagnostics, Record, kind_of
from evalmeta.formats.document import Document
from evalmeta.formats.sources import JsonFile, read_json
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.expectations import ACTIONS, OUTCOME, render_actions
from evalmeta.systems.ballerina.traces import (
    UNKNOWN_ARGUMENTS,
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
    all_tool_calls,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
            iterations=tuple(map(self._iteration, self._listed(record, "iterations", called="an iteration"))),
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
        outputs = value if isinstance(value, list) else [] if value is None else [value]
        for place, output in enumerate(outputs):
            steps = ("output", place) if isinstance(value, list) else ("output",)
            if isinstance(output, str):
                yield TraceError(output)
                continue
            message = _message(record.at(output, *steps, called="an output"), "assistant", "function")
            if isinstance(message, ChatAssistantMessage | ChatFunctionMessage):
                yield message

    def _id(self, record: Record) -> str:
        return record.required_text("id") if self._is_strict else record.text("id") or ""

    def _listed(self, record: Record, name: str, *, called: str) -> Iterator[Record]:
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
    message = f"{name!r} of {record.called} is not a valid time in UTC: {shown}"
    record.error("ballerina-time", message, name, hint=_TIME_HINT)
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


_WHY_ASKED: Final = "its expected answers are its recorded answers, so an agent must be asked"
_QUERY: Final = "query"
_RATE: Final = ("confidence", "minPassRate", "min_pass_rate")
_RUNS: Final = ("iterations", "runs")
_TOOLS: Final = ("expectedTools", "expected_tools")
_OUTPUT: Final = ("expectedOutput", "expectedAnswer", "expected_output", "expected_answer")
_CONTEXT: Final = ("expectedContext", "expected_context")
_SET_KEYS: Final = ("id", "name", "description", *_RATE, *_RUNS, "entries")
_ENTRY_KEYS: Final = ("id", "input", *_TOOLS, *_OUTPUT, *_CONTEXT)


def read_ballerina(data: bytes, *, label: str, name: str) -> Document:
    """Read an evaluation set with `threads`, or a dataset: a list of entries, or an object with `entries`."""
    file, diagnostics = read_json(data, label=label), Diagnostics(label)
    read = _conversations if isinstance(file.value, dict) and "threads" in file.value else _dataset
    return read(file, diagnostics, name)


def _conversations(file: JsonFile, diagnostics: Diagnostics, name: str) -> Document:
    threads = read_threads(file, diagnostics, is_strict=False)
    lines = file.lines_of(("threads",))
    diagnostics.check()
    cases: list[Case] = []
    case_lines: dict[int, int] = {}
    for thread, line in zip(threads, lines, strict=True):
        if not thread.traces:
            message = f"the thread {thread.id!r} has no traces; it is ignored"
            diagnostics.warn("ballerina-thread", message, line=line, column=1)
            continue
        turns = (Turn(trace.user_message.content, tuple(_recorded_expectations(trace))) for trace in thread.traces)
        cases.append(Case(len(cases) + 1, tuple(turns), label=thread.id))
        case_lines[len(cases)] = line
    if not cases:
        diagnostics.error("ballerina-empty", "no thread has a trace", line=1, column=1)
    diagnostics.check()
    evaluation = Evaluation(name, "", tuple(cases))
    return Document(evaluation, why_asked=_WHY_ASKED, notes=diagnostics.notes, lines=case_lines)


def _recorded_expectations(trace: Trace) -> Iterator[Expectation]:
    calls = all_tool_calls(trace)
    if calls or trace.tool_calls is not None:
        # A trace that has only the result of a call does not have its arguments.
        has_arguments = bool(calls) and not any(call.arguments is UNKNOWN_ARGUMENTS for call in calls)
        recorded: list[JsonValue] = [{"name": call.name, "args": call.arguments} for call in calls]
        names = render_actions(call.name for call in calls)
        yield Expectation(ACTIONS, names, terms={"calls": recorded} if has_arguments else {})
    if not isinstance(trace.output, TraceError) and trace.output.content:
        yield Expectation(OUTCOME, trace.output.content)


def _dataset(file: JsonFile, diagnostics: Diagnostics, name: str) -> Document:
    rate, runs = None, None
    path: tuple[str, ...] = ()
    if not isinstance(file.value, list):
        record = Record(file, (), file.value, diagnostics, called="the dataset")
        record.check_keys(*_SET_KEYS)
        rate, runs, path = _min_pass_rate(record), _iterations(record), ("entries",)
        record.require("entries", hint="A dataset has entries, an evaluation set of conversations has threads.")
        record.items("entries")
    cases = tuple(_entry(number, record) for number, record in enumerate(_entries(file, path, diagnostics), 1))
    diagnostics.check()
    if not cases:
        diagnostics.error("ballerina-empty", "the dataset has no entries", line=1, column=1)
    diagnostics.check()
    lines = dict(enumerate(file.lines_of(path), 1))
    return Document(Evaluation(name, "", cases), runs, rate, notes=diagnostics.notes, lines=lines)


def _entries(file: JsonFile, path: Sequence[str], diagnostics: Diagnostics) -> Iterator[Record]:
    """Yield the entries; data providers return each in a list."""
    value = file.at(path)
    for place, item in enumerate(value if isinstance(value, list) else []):
        if not isinstance(item, list):
            yield Record(file, (*path, place), item, diagnostics, called="an entry")
        elif len(item) == 1:
            yield Record(file, (*path, place, 0), item[0], diagnostics, called="an entry")
        else:
            line, column = file.place((*path, place))
            message = f"an entry's list has {len(item)} values; one is allowed, the object with 'input'"
            diagnostics.error("ballerina-entry", message, line=line, column=column)


def _entry(number: int, record: Record) -> Case:
    record.check_keys(*_ENTRY_KEYS)
    expectations = tuple(_expectations(record))
    if not expectations:
        hint = f"Add {_TOOLS[0]!r} or {_OUTPUT[0]!r}."
        record.warn("ballerina-entry", "the entry expects nothing", hint=hint)
    hint = f"There is {_QUERY!r}; write 'input'." if record.has(_QUERY) else ""
    record.require("input", hint=hint)
    return Case(number, (Turn(record.text("input") or "", expectations),), label=record.text("id") or "")


def _expectations(record: Record) -> Iterator[Expectation]:
    for names in (_TOOLS, _OUTPUT, _CONTEXT):
        _check_spellings(record, names)
    if record.has(*_TOOLS):
        yield Expectation(ACTIONS, render_actions(text for _, text in record.texts(*_TOOLS)))
    for names in (_OUTPUT, _CONTEXT):
        if (text := record.text(*names)) is not None:
            yield Expectation(OUTCOME, text)


def _min_pass_rate(record: Record) -> float | None:
    _check_spellings(record, _RATE)
    rate = record.number(*_RATE)
    if rate is not None and not 0 <= rate <= 1:
        record.error("ballerina-range", f"{record.key(*_RATE)!r} is {rate:g}; 0 to 1 are allowed", record.key(*_RATE))
    return rate


def _iterations(record: Record) -> int | None:
    _check_spellings(record, _RUNS)
    runs = record.number(*_RUNS)
    if runs is None:
        return None
    if not runs.is_integer() or not 1 <= runs <= limits.MAX_ITERATIONS:
        allowed = f"whole numbers from 1 to {limits.MAX_ITERATIONS} are allowed"
        record.error("ballerina-range", f"{record.key(*_RUNS)!r} is {runs:g}; {allowed}", record.key(*_RUNS))
    return int(runs)


def _check_spellings(record: Record, names: Sequence[str]) -> None:
    given = [name for name in names if record.has(name)]
    for other in given[1:]:
        if record.raw(other) != record.raw(given[0]):
            message = f"{given[0]!r} and {other!r} are two spellings of one key with different values"
            record.error("ballerina-conflict", message, other, hint="Keep one of them.")
