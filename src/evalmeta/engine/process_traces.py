"""Traces of agents in this process: what they record with the SDK of OpenTelemetry is read when it ends, not exported.

A processor on the global provider of tracers takes the spans of the turns under way, and no others. A provider keeps
its processors until the process ends; without turns, this one does nothing and holds nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeVar, cast, runtime_checkable

from evalmeta import limits
from evalmeta.engine.interfaces import WrappedSession
from evalmeta.engine.trace_context import TURN
from evalmeta.engine.traced import TOO_LARGE, ExpectedTrace, TracedSubject, TraceStore
from evalmeta.errors import SettingsError
from evalmeta.traces.instrumentations import missing_instrumentation
from evalmeta.traces.sdk_spans import read_sdk_span, size_of, span_id_of, trace_id_of
from evalmeta.traces.spans import Telemetry, traces_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.traces.sdk_spans import SdkSpan
    from evalmeta.traces.spans import Trace

_Given = TypeVar("_Given")
_INSTALL: Final = "Run: pip install 'evalmeta[otel]'"


def with_process_traces(subject: Subject) -> Subject:
    """Return a subject whose answers traces of this process complete; raise SettingsError if none can be recorded."""
    if not (find_spec("opentelemetry") and find_spec("opentelemetry.sdk")):
        raise SettingsError("traces = true needs opentelemetry-sdk, which is not installed", actions=[_INSTALL])
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        raise SettingsError(
            "traces = true records nothing, because OTEL_SDK_DISABLED turns OpenTelemetry off",
            actions=["Run: unset OTEL_SDK_DISABLED"],
        )
    _PROCESSOR.listen()
    return TracedSubject(_SubjectInContext(subject), _PROCESSOR, seconds=limits.TRACE_SECONDS)


class _SubjectInContext:
    """A subject whose agent finds the trace of the turn in the current context of OpenTelemetry."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    async def open(self, case: Case) -> Session:
        return _SessionInContext(await self._subject.open(case))

    async def close(self) -> None:
        await self._subject.close()


class _SessionInContext(WrappedSession):
    async def _ask(self, ask: Callable[[_Given], Awaitable[GeneratedData]], given: _Given) -> GeneratedData:
        with _turn_as_parent():
            return await ask(given)


@contextmanager
def _turn_as_parent() -> Iterator[None]:
    """Let spans that begin in this context, and in tasks and threads that copy it, belong to the current turn."""
    from opentelemetry import context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    turn = TURN.get()
    assert turn  # noqa: S101 - it is asked inside a traced session
    _, trace_id, span_id, _ = turn.traceparent.split("-")
    flags = TraceFlags(TraceFlags.SAMPLED)
    parent = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flags)
    token = context.attach(set_span_in_context(NonRecordingSpan(parent)))
    try:
        yield
    finally:
        context.detach(token)


@runtime_checkable
class _Provider(Protocol):
    def add_span_processor(self, span_processor: object, /) -> None: ...


@dataclass(eq=False, slots=True)
class _ProcessTrace(ExpectedTrace):
    """The trace of one turn.

    Attributes:
        running: the spans that have begun and have not ended.
        loop: the event loop in which something waits for these.
    """

    running: dict[str, SdkSpan] = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop | None = None

    def trace(self) -> Trace | None:
        """Return what is known, with the spans that have not ended."""
        running = {span_id: read_sdk_span(span) for span_id, span in tuple(self.running.items())}
        spans = (*running.values(), *tuple(self.spans.values()))
        return next(iter(traces_of([Telemetry(spans)])), None)


class ProcessTraces(TraceStore):
    """The traces of the turns under way in this process, and the processor of spans that fills them.

    Spans begin and end in any thread. The methods of a processor are those of `SpanProcessor` in the SDK.
    """

    trace_type = _ProcessTrace
    environment: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._provider: object = None

    @property
    def store(self) -> TraceStore:
        """Return the traces under way."""
        return self

    def listen(self) -> None:
        """Take part in what the global provider of tracers records, and set one if there is none."""
        from opentelemetry import trace

        provider: object = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):
            from opentelemetry.sdk.trace import TracerProvider

            trace.set_tracer_provider(TracerProvider())
            provider = trace.get_tracer_provider()
        if not isinstance(provider, _Provider):
            kind = type(provider)
            raise SettingsError(
                f"traces = true needs a TracerProvider of opentelemetry-sdk; {kind.__module__}.{kind.__qualname__}, "
                "which is set, takes no span processors",
                actions=["Set opentelemetry.sdk.trace.TracerProvider() as the tracer provider, or none."],
            )
        if provider is not self._provider:
            provider.add_span_processor(self)
            self._provider = provider

    async def open(self) -> None:
        """Do nothing: the processor listens."""

    async def close(self) -> None:
        """Do nothing: without turns, the processor holds nothing."""

    def expect(self) -> ExpectedTrace:
        """Return the trace of a new turn."""
        with self._lock:
            return super().expect()

    def on_start(self, span: SdkSpan, parent_context: object = None) -> None:  # noqa: ARG002 - as in the SDK
        """Note that a span of a turn has begun."""
        if not (expected := self._trace_of(span)):
            return
        with self._lock:
            if len(expected.running) >= limits.MAX_TRACE_SPANS:
                expected.drop()
            if not expected.is_too_large:
                expected.running[span_id_of(span)] = span
            else:
                expected.running.clear()

    def _on_ending(self, span: SdkSpan) -> None:
        """Do nothing."""

    def on_end(self, span: SdkSpan) -> None:
        """Add a span that has ended to its turn."""
        if not (expected := self._trace_of(span)):
            return
        ended = read_sdk_span(span)
        with self._lock:
            if self._has_room(expected, size_of(ended)):
                expected.spans[ended.span_id] = ended
                expected.running.pop(ended.span_id, None)
            else:
                expected.running.clear()
        if expected.loop and not expected.running:
            # The loop may be closed when a span of an agent that was abandoned ends.
            with suppress(RuntimeError):
                expected.loop.call_soon_threadsafe(expected.changed.set)

    def _trace_of(self, span: SdkSpan) -> _ProcessTrace | None:
        # Most processes record other spans for most of the time.
        return cast("_ProcessTrace | None", self._expected.get(trace_id_of(span))) if self._expected else None

    def shutdown(self) -> None:
        """Do nothing: nothing is held."""

    def force_flush(self, timeout_millis: int = 0) -> bool:  # noqa: ARG002 - as in the SDK
        """Return that nothing waits for an export."""
        return True

    async def fault_of(self, expected: ExpectedTrace, *, seconds: float) -> str:
        """Wait until the spans that have begun have ended; return why the trace cannot be used, empty if it can."""
        trace = cast("_ProcessTrace", expected)
        if trace.running and not await _have_ended(trace, trace.answered + seconds):
            names = ", ".join(sorted({repr(span.name) for span in tuple(trace.running.values())}))
            return f"spans of the turn have not ended within {seconds:g} s: {names}"
        if trace.is_too_large:
            return TOO_LARGE
        if not trace.spans:
            return f"the agent recorded no span in the turn; {missing_instrumentation()}"
        return ""


async def _have_ended(trace: _ProcessTrace, until: float) -> bool:
    """Wait until no span of a trace is running; return whether that was in time."""
    trace.loop = asyncio.get_running_loop()
    while trace.running:
        trace.changed.clear()
        if trace.running:
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    await trace.changed.wait()
            except TimeoutError:
                return not trace.running
    return True


_PROCESSOR: Final = ProcessTraces()
