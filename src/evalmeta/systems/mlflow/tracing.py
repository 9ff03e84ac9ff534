"""Traces of agents in this process: `@mlflow.trace` and `mlflow.start_span` record what an agent does."""

from __future__ import annotations

import inspect
import secrets
import time
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import TYPE_CHECKING, Final, TypeVar, cast, overload

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.model.json_value import plain_value
from evalmeta.systems.mlflow.assessments import (
    AssessmentSource,
    AssessmentSourceType,
    Expectation,
    Feedback,
    assessment_json,
)
from evalmeta.systems.mlflow.entities import Span, SpanType, Trace, TraceData, TraceInfo, TraceState
from evalmeta.systems.mlflow.tracking import is_of_run, notice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from evalmeta.engine.project_code import Function

    _Open = Callable[[], AbstractContextManager[Span]]
    _Reduce = Callable[[list[object]], object]

_Traced = TypeVar("_Traced")

_NS: Final = 1_000_000
_PREVIEW_CHARS: Final = 1_000
_finished: Final[deque[Trace]] = deque(maxlen=limits.MAX_KEPT_TRACES)
_current: Final[ContextVar[tuple[Trace, Span] | None]] = ContextVar("mlflow_span", default=None)
_sink: Final[ContextVar[list[Trace] | None]] = ContextVar("mlflow_traces", default=None)


@contextmanager
def start_span(
    name: str = "span", span_type: str | None = None, attributes: Mapping[str, object] | None = None
) -> Iterator[Span]:
    """Record a step of the agent; the first one begins a trace."""
    outer = _current.get()
    trace = outer[0] if outer else _new_trace()
    span = Span(
        name,
        secrets.token_hex(8),
        outer[1].span_id if outer else None,
        trace.info.trace_id,
        time.time_ns(),
        span_type or SpanType.UNKNOWN,
        attributes=dict(attributes or {}),
    )
    if len(trace.data.spans) < limits.MAX_TRACE_SPANS:
        trace.data.spans.append(span)
    token = _current.set((trace, span))
    try:
        yield span
    except BaseException as error:
        span.record_exception(error)
        raise
    finally:
        span.end_time_ns = time.time_ns()
        if span.status.status_code == "UNSET":
            span.set_status("OK")
        _current.reset(token)
        if outer is None:
            _finish(trace, span)


def _new_trace() -> Trace:
    return Trace(TraceInfo(f"tr-{secrets.token_hex(16)}", time.time_ns() // _NS), TraceData())


def _finish(trace: Trace, root: Span) -> None:
    info = trace.info
    info.execution_duration = ((root.end_time_ns or root.start_time_ns) - root.start_time_ns) // _NS
    info.state = TraceState.ERROR if root.status.status_code == "ERROR" else TraceState.OK
    info.request_preview = info.request_preview or (trace.data.request or "")[:_PREVIEW_CHARS]
    info.response_preview = info.response_preview or (trace.data.response or "")[:_PREVIEW_CHARS]
    _finished.append(trace)
    if (sink := _sink.get()) is not None:
        sink.append(trace)


@overload
def trace(func: _Traced) -> _Traced: ...
@overload
def trace(
    func: None = None,
    name: str | None = None,
    span_type: str = SpanType.UNKNOWN,
    attributes: Mapping[str, object] | None = None,
    output_reducer: _Reduce | None = None,
    **others: object,
) -> Callable[[_Traced], _Traced]: ...
def trace(
    func: object = None,
    name: str | None = None,
    span_type: str = SpanType.UNKNOWN,
    attributes: Mapping[str, object] | None = None,
    output_reducer: _Reduce | None = None,
    **others: object,
) -> object:
    """Record each call of a function as a step, with its arguments and what it returns, yields or raises."""

    def traced(function: object) -> object:
        called = name or str(getattr(function, "__name__", "function"))
        open_span = partial(start_span, called, span_type, attributes)
        made = _traced(cast("Function", function), open_span, output_reducer)
        made.__dict__[_MARK] = True
        return made

    return traced if func is None else traced(func)


_MARK: Final = "__mlflow_traced__"


def _traced(function: Function, open_span: _Open, reduce: _Reduce | None) -> Function:
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        return _traced_generator(function, open_span, reduce)
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def returns_later(*args: object, **kwargs: object) -> object:
            with open_span() as step:
                step.set_inputs(_arguments(function, args, kwargs))
                returned = await cast("Awaitable[object]", function(*args, **kwargs))
                step.set_outputs(returned)
                return returned

        return returns_later

    @wraps(function)
    def returns(*args: object, **kwargs: object) -> object:
        with open_span() as step:
            step.set_inputs(_arguments(function, args, kwargs))
            returned = function(*args, **kwargs)
            step.set_outputs(returned)
            return returned

    return returns


def _traced_generator(function: Function, open_span: _Open, reduce: _Reduce | None) -> Function:
    if inspect.isasyncgenfunction(function):

        @wraps(function)
        async def yields_later(*args: object, **kwargs: object) -> AsyncIterator[object]:
            with open_span() as step:
                step.set_inputs(_arguments(function, args, kwargs))
                parts = []
                async for part in cast("AsyncIterator[object]", function(*args, **kwargs)):
                    parts.append(part)
                    yield part
                step.set_outputs(reduce(parts) if reduce else parts)

        return yields_later

    @wraps(function)
    def yields(*args: object, **kwargs: object) -> Iterator[object]:
        with open_span() as step:
            step.set_inputs(_arguments(function, args, kwargs))
            parts = []
            for part in cast("Iterator[object]", function(*args, **kwargs)):
                parts.append(part)
                yield part
            step.set_outputs(reduce(parts) if reduce else parts)

    return yields


def _arguments(function: Function, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {**{str(place): plain_value(value) for place, value in enumerate(args)}, **kwargs}
    others = bound.pop("kwargs", {}) if isinstance(bound.get("kwargs"), dict) else {}
    named = {**bound, **others}
    return {key: plain_value(value) for key, value in named.items() if key not in {"self", "cls"}}


@contextmanager
def recorded_traces() -> Iterator[list[Trace]]:
    """Collect the traces that begin and end while this is open, in a context of their own."""
    traces: list[Trace] = []
    tokens = _current.set(None), _sink.set(traces)
    try:
        yield traces
    finally:
        _current.reset(tokens[0])
        _sink.reset(tokens[1])


def is_traced(function: object) -> bool:
    """Return whether calls of a function begin a trace by themselves."""
    return getattr(function, _MARK, False) is True


def get_current_active_span() -> Span | None:
    """Return the step that runs now; None outside of one."""
    current = _current.get()
    return current[1] if current else None


def get_active_trace_id() -> str | None:
    """Return the id of the trace that is recorded now; None outside of one."""
    current = _current.get()
    return current[0].info.trace_id if current else None


def update_current_trace(
    tags: Mapping[str, str] | None = None, metadata: Mapping[str, str] | None = None, **others: object
) -> None:
    """Add tags and metadata to the trace that is recorded now."""
    if current := _current.get():
        info = current[0].info
        info.tags.update({key: str(value) for key, value in (tags or {}).items()})
        info.trace_metadata.update({key: str(value) for key, value in (metadata or {}).items()})
        for name in ("session", "user"):
            if isinstance(text := others.get("session_id" if name == "session" else name), str):
                info.trace_metadata[f"mlflow.trace.{name}"] = text
        for name in ("request_preview", "response_preview"):
            if isinstance(text := others.get(name), str):
                setattr(info, name, text)


def flush_trace_async_logging(terminate: bool = False) -> None:  # noqa: FBT001, FBT002 - as in MLflow
    """Do nothing: a trace is complete when its first span ends."""


def get_last_active_trace_id(thread_local: bool = False) -> str | None:  # noqa: FBT001, FBT002 - as in MLflow
    """Return the id of the trace of this process that ended last; None if there is none."""
    return _finished[-1].info.trace_id if _finished else None


def get_trace(trace_id: str) -> Trace | None:
    """Return a trace of this process; None if it has none with this id, or has forgotten it."""
    return next((known for known in _finished if known.info.trace_id == trace_id), None)


def log_feedback(*, trace_id: str, name: str = "feedback", value: object = None, **noted: object) -> Feedback:
    """Note a feedback on a trace of this process."""
    source, rationale = noted.get("source"), noted.get("rationale")
    feedback = Feedback(
        name,
        value,
        source=source if isinstance(source, AssessmentSource) else None,
        rationale=None if rationale is None else str(rationale),
        trace_id=trace_id,
    )
    _known(trace_id).info.assessments.append(feedback)
    return feedback


def log_expectation(*, trace_id: str, name: str, value: object, source: AssessmentSource | None = None) -> Expectation:
    """Note what is expected of the answer of a trace of this process."""
    by = source or AssessmentSource(AssessmentSourceType.HUMAN)
    expectation = Expectation(name, value, source=by, trace_id=trace_id)
    _known(trace_id).info.assessments.append(expectation)
    return expectation


def _known(trace_id: str) -> Trace:
    known = get_trace(trace_id)
    if known is None:
        raise UsageError(
            f"this process has no trace {trace_id!r}",
            actions=[f"evalmeta keeps the last {limits.MAX_KEPT_TRACES:,} traces of a process, and no others."],
        )
    return known


# What chooses among the traces of a server.
_OF_SERVERS: Final = ("experiment_ids", "experiment_names", "locations", "model_id")


def search_traces(
    *,
    filter_string: str | None = None,
    max_results: int | None = None,
    order_by: list[str] | None = None,
    run_id: str | None = None,
    return_type: str = "pandas",
    **others: object,
) -> object:
    """Return the traces that this process recorded, the newest first, as a data frame or, without pandas, as rows.

    A `run_id` chooses those that an evaluation judged: its own id, or that of the script's run around it.
    Raise UsageError for a filter or an order, because evalmeta has no tracking server that could apply it.
    """
    for name, given in (("filter_string", filter_string), ("order_by", order_by)):
        if given:
            raise UsageError(
                f"evalmeta.mlflow.search_traces cannot apply {name}={given!r:.100}: it has only this process's traces",
                actions=["Choose among what it returns, or pass the result of MLflow's own search_traces as data."],
            )
    for name in _OF_SERVERS:
        if others.get(name):
            notice(f"{name} of mlflow.search_traces", "it returns the traces that this process recorded")
    recorded = [known for known in _finished if run_id is None or is_of_run(known.info.trace_metadata, run_id)]
    newest = recorded[::-1][:max_results]
    if return_type == "list":
        return newest
    rows = [_trace_row(known) for known in newest]
    try:
        from pandas import DataFrame
    except ImportError:
        return rows
    return DataFrame(rows)


def _trace_row(known: Trace) -> dict[str, object]:
    info, written = known.info, known.to_dict()
    return {
        "trace_id": info.trace_id,
        "trace": known.to_json(),
        "state": str(info.state),
        "request_time": info.request_time,
        "execution_duration": info.execution_duration,
        "request": known.data.request,
        "response": known.data.response,
        "trace_metadata": dict(info.trace_metadata),
        "tags": dict(info.tags),
        "assessments": [assessment_json(noted) for noted in info.assessments],
        "spans": cast("Mapping[str, object]", written["data"])["spans"],
    }
