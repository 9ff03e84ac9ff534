"""Spans as the SDK of OpenTelemetry has them in this process, with or without an end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.traces.spans import Span, SpanEvent

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext
    from opentelemetry.trace.status import Status

    from evalmeta.model.json_value import JsonValue

    _Attributes = Mapping[str, object]

_ERROR: Final = "ERROR"
# What a number, a key, and the frame of a span or an event take in a request, roughly.
_VALUE_BYTES: Final = 8
_FRAME_BYTES: Final = 64


class SdkEvent(Protocol):
    """An event of a span."""

    @property
    def name(self) -> str: ...  # noqa: D102 - as in the SDK
    @property
    def attributes(self) -> _Attributes | None: ...  # noqa: D102
    @property
    def timestamp(self) -> int: ...  # noqa: D102


class SdkScope(Protocol):
    """The instrumentation that made a span."""

    @property
    def name(self) -> str: ...  # noqa: D102


class SdkSpan(Protocol):
    """What is read of a `ReadableSpan`."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def context(self) -> SpanContext: ...  # noqa: D102
    @property
    def parent(self) -> SpanContext | None: ...  # noqa: D102
    @property
    def start_time(self) -> int | None: ...  # noqa: D102
    @property
    def end_time(self) -> int | None: ...  # noqa: D102
    @property
    def attributes(self) -> _Attributes | None: ...  # noqa: D102
    @property
    def events(self) -> Sequence[SdkEvent]: ...  # noqa: D102
    @property
    def status(self) -> Status: ...  # noqa: D102
    @property
    def instrumentation_scope(self) -> SdkScope | None: ...  # noqa: D102


def trace_id_of(span: SdkSpan) -> str:
    """Return the trace of a span as 32 hexadecimal digits."""
    return f"{span.context.trace_id:032x}"


def span_id_of(span: SdkSpan) -> str:
    """Return the id of a span as 16 hexadecimal digits."""
    return f"{span.context.span_id:016x}"


def read_sdk_span(span: SdkSpan) -> Span:
    """Return a span of the SDK; one that has not ended has no end."""
    scope = span.instrumentation_scope
    is_error = span.status.status_code.name == _ERROR
    return Span(
        trace_id_of(span),
        span_id_of(span),
        f"{span.parent.span_id:016x}" if span.parent else "",
        span.name,
        span.start_time or 0,
        span.end_time or 0,
        _attributes(span.attributes),
        tuple(SpanEvent(event.name, _attributes(event.attributes), event.timestamp) for event in span.events),
        (span.status.description or "") if is_error else None,
        scope.name if scope else "",
    )


def _attributes(attributes: _Attributes | None) -> dict[str, JsonValue]:
    return {name: _value(value) for name, value in (attributes or {}).items()}


def _value(value: object) -> JsonValue:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(name): _value(inner) for name, inner in value.items()}
    if isinstance(value, Sequence):
        return [_value(inner) for inner in value]
    return str(value)


def size_of(span: Span) -> int:
    """Return roughly the bytes that a span takes in a request of OTLP."""
    events = sum(_FRAME_BYTES + _size(event.attributes) for event in span.events)
    return _FRAME_BYTES + len(span.name) + _size(span.attributes) + events


def _size(value: JsonValue) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(name) + _VALUE_BYTES + _size(inner) for name, inner in value.items())
    if isinstance(value, list):
        return sum(map(_size, value))
    return _VALUE_BYTES
