"""The conversations of runs as an evaluation set of Ballerina, `*.evalset.json`: a thread for each case and iteration.

What the format cannot hold is named in the set's description, and in a warning.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from evalmeta.model.user_warnings import warn_user
from evalmeta.report.text import count, escape_unsafe
from evalmeta.systems.ballerina.agent_tests import trace_of
from evalmeta.systems.ballerina.traces import UNKNOWN_ARGUMENTS, ChatAssistantMessage, ChatFunctionMessage, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import CaseResult, Run
    from evalmeta.report.report import Report
    from evalmeta.systems.ballerina.traces import ChatMessage, FunctionCall, Iteration, Trace


def render(reports: Sequence[Report]) -> Iterator[str]:
    """Yield an evaluation set with the conversations of runs, thread by thread."""
    name = ", ".join(dict.fromkeys(report.run.definition for report in reports))
    yield f'{{\n"id": {_text(name)},\n"name": {_text(name)},\n"threads": ['
    lost, ids = Counter[str](), Counter[str]()
    separator = "\n"
    for report in reports:
        prefix = f"{report.run.definition}: " if len(reports) > 1 else ""
        for case in report.run.cases:
            lost.update(_losses(case))
            thread_id = f"{prefix}{_thread_id(case, report.run)}"
            ids[thread_id] += 1
            # Ballerina keeps one of the threads with the same id.
            unique = thread_id if ids[thread_id] == 1 else f"{thread_id} ({ids[thread_id]})"
            yield f"{separator}{_text(_thread(case, unique))}"
            separator = ",\n"
    losses = f"Not kept: {', '.join(count(number, what) for what, number in lost.items())}." if lost else ""
    if losses:
        warn_user(f"Ballerina's evaluation sets cannot hold everything. {losses}")
    yield f'\n],\n"description": {_text(losses)}\n}}\n'


render.suffix = "evalset.json"  # type: ignore[attr-defined] # as reporters of packages declare it


def _thread_id(case: CaseResult, run: Run) -> str:
    named = case.label or f"case {case.number}"
    return f"{named}, iteration {case.iteration}" if run.options.is_repeated else named


def _losses(case: CaseResult) -> Iterator[str]:
    """Yield what a thread cannot hold of a case, as the singular of what is counted."""
    if case.results:
        yield "verdict"
    for generated in _answers(case):
        if generated.topic:
            yield "topic"
        if generated.tokens:
            yield "count of tokens"
        if generated.retrieved:
            yield "list of retrieved passages"
        if generated.state:
            yield "session state"
        if generated.handoffs:
            yield "handoff list"


def _answers(case: CaseResult) -> Iterator[GeneratedData]:
    yield from (turn.generated for turn in case.earlier)
    if case.generated is not None:
        yield case.generated


def _thread(case: CaseResult, thread_id: str) -> JsonObject:
    start = datetime.fromtimestamp(case.started, UTC)
    traces: list[JsonValue] = []
    failed = RuntimeError(case.error or "the agent did not answer")
    answers: list[tuple[str, object]] = [(turn.utterance, turn.generated) for turn in case.earlier]
    answers.append((case.utterance, failed if case.generated is None else case.generated))
    for place, (utterance, answer) in enumerate(answers, 1):
        trace = trace_of(answer, utterance)
        if isinstance(answer, Exception):
            trace = replace(trace, output=TraceError(str(answer)), iterations=())
        if not _has_own_times(trace):
            trace = _timed(trace, start)
        start = max(start, trace.end_time)
        traces.append(_trace_json(replace(trace, id=trace.id or f"{thread_id}-{place}")))
    return {"id": thread_id, "description": "", "traces": traces}


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _has_own_times(trace: Trace) -> bool:
    """Return whether an agent reported the trace; `trace_of` makes traces that begin at the epoch."""
    return trace.start_time != _EPOCH


def _timed(trace: Trace, start: datetime) -> Trace:
    end = start + (trace.end_time - trace.start_time)
    iterations = tuple(replace(iteration, start_time=start, end_time=end) for iteration in trace.iterations)
    return replace(trace, start_time=start, end_time=end, iterations=iterations)


def _trace_json(trace: Trace) -> JsonObject:
    tools: list[JsonValue] = [
        {
            "name": tool.name,
            "description": tool.description,
            **({} if tool.parameters_schema is None else {"parametersSchema": tool.parameters_schema}),
        }
        for tool in trace.tools
    ]
    return {
        "id": trace.id,
        "userMessage": _message_json(trace.user_message),
        "iterations": list(map(_iteration_json, trace.iterations)),
        "output": _message_json(trace.output),
        **({} if trace.tool_calls is None else {"toolCalls": list(map(_call_json, trace.tool_calls))}),
        "tools": tools,
        **_times_json(trace),
    }


def _iteration_json(iteration: Iteration) -> JsonValue:
    history: list[JsonValue] = list(map(_message_json, iteration.history))
    return {"history": history, "output": list(map(_message_json, iteration.output)), **_times_json(iteration)}


def _times_json(timed: Trace | Iteration) -> dict[str, str]:
    return {"startTime": _time(timed.start_time), "endTime": _time(timed.end_time)}


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _message_json(message: ChatMessage | TraceError) -> JsonValue:
    if isinstance(message, TraceError):
        return message.message
    about: JsonObject = {"role": message.role, "content": message.content}
    if isinstance(message, ChatFunctionMessage):
        return {**about, "name": message.name, **_given(id=message.id)}
    calls: JsonObject = {}
    if isinstance(message, ChatAssistantMessage) and message.tool_calls:
        calls = {"toolCalls": list(map(_call_json, message.tool_calls))}
    return {**about, **_given(name=message.name), **calls}


def _call_json(call: FunctionCall) -> JsonValue:
    arguments: JsonObject = {} if call.arguments is UNKNOWN_ARGUMENTS else {"arguments": call.arguments}
    return {"name": call.name, **arguments, **_given(id=call.id)}


def _given(**values: str | None) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _text(value: JsonValue) -> str:
    return escape_unsafe(json.dumps(value, ensure_ascii=False))
