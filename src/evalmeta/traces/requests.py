"""Requests of OTLP that evalmeta writes: as JSON Lines, like the file exporter of the Collector, and as protobuf."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import orjson

from evalmeta import limits
from evalmeta.traces.otlp import Signal, protobuf_missing
from evalmeta.traces.spans import Span
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.traces.spans import LogEvent

SCOPE: Final = "evalmeta"
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai/0.1.0"
"""The version of the conventions that evalmeta follows: semantic-conventions-genai 0.1.0."""
_INTERNAL: Final = 1
_ERROR: Final = 2
_INTEGERS: Final = range(-(2**63), 2**63)
_CAPITAL: Final = re.compile("[A-Z]")
_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    **dict.fromkeys(("traceId", "spanId", "parentSpanId"), bytes.fromhex),
    **dict.fromkeys(("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano", "intValue"), int),
}


def request_lines(records: Iterable[Span | LogEvent]) -> Iterator[str]:
    """Yield requests as lines of JSON, each with the spans or the log events of about `limits.TRACE_REQUEST_CHARS`."""
    spans: list[str] = []
    logs: list[str] = []
    chars = 0
    for record in records:
        is_span = isinstance(record, Span)
        text = plain_json(_span(record) if isinstance(record, Span) else _log(record))
        (spans if is_span else logs).append(text)
        chars += len(text)
        if chars >= limits.TRACE_REQUEST_CHARS:
            yield from _lines(spans, logs)
            spans, logs, chars = [], [], 0
    yield from _lines(spans, logs)


def plain_json(value: JsonValue) -> str:
    """Return a value as JSON on one line."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # Integers of more than 64 bits, and lone surrogates.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(spans: list[str], logs: list[str]) -> Iterator[str]:
    for group, scopes, key, records in (
        ("resourceSpans", "scopeSpans", "spans", spans),
        ("resourceLogs", "scopeLogs", "logRecords", logs),
    ):
        if records:
            resource = plain_json({"attributes": _attributes({"service.name": SCOPE, "service.version": __version__})})
            scope = plain_json({"name": SCOPE, "version": __version__})
            content = f'"scope":{scope},"{key}":[{",".join(records)}],"schemaUrl":"{SCHEMA_URL}"'
            yield f'{{"{group}":[{{"resource":{resource},"{scopes}":[{{{content}}}]}}]}}'


def _span(span: Span) -> JsonObject:
    parent: JsonObject = {"parentSpanId": span.parent_id} if span.parent_id else {}
    links: list[JsonValue] = [{"traceId": link.trace_id, "spanId": link.span_id} for link in span.links]
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **parent,
        "name": _valid(span.name),
        "kind": _INTERNAL,
        "startTimeUnixNano": f"{span.start_ns}",
        "endTimeUnixNano": f"{span.end_ns}",
        "attributes": _attributes(span.attributes),
        **({"links": links} if links else {}),
        **({} if span.error is None else {"status": {"message": _valid(span.error), "code": _ERROR}}),
    }


def _log(log: LogEvent) -> JsonObject:
    time = f"{log.event.time_ns}"
    return {
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "eventName": log.event.name,
        "attributes": _attributes(log.event.attributes),
        "traceId": log.trace_id,
        "spanId": log.span_id,
    }


def _attributes(values: JsonObject) -> list[JsonValue]:
    """Return attributes as OTLP has them; those without a value are left out."""
    return [{"key": _valid(key), "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: JsonValue) -> JsonObject:
    """Return a value as an AnyValue."""
    if isinstance(value, str):
        return {"stringValue": _valid(value)}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and value in _INTEGERS:
        return {"intValue": f"{value}"}
    if isinstance(value, int | float):
        return {"doubleValue": float(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    raise TypeError(f"an attribute has a value of the type {type(value).__name__}")


def _valid(text: str) -> str:
    """Return a text that UTF-8 can encode: protobuf takes no other."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def read_signal(line: str) -> tuple[Signal, bytes]:
    """Return the signal of a line of `request_lines`, and the request as protobuf.

    Raise UsageError if opentelemetry-proto is not installed.
    """
    try:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise protobuf_missing() from None
    ((group, content),) = _fields(orjson.loads(line)).items()
    # Messages are also made of mappings, which the types do not say.
    if group == "resource_spans":
        traces = ExportTraceServiceRequest(resource_spans=cast("list[ResourceSpans]", content))
        return "traces", traces.SerializeToString()
    return "logs", ExportLogsServiceRequest(resource_logs=cast("list[ResourceLogs]", content)).SerializeToString()


def _fields(values: Mapping[str, JsonValue]) -> dict[str, object]:
    """Return an object of a request as the fields of its message; `json_format` takes five times as long."""
    return {
        _field_name(key): reader(value) if isinstance(value, str) and (reader := _READERS.get(key)) else _field(value)
        for key, value in values.items()
    }


def _field(value: JsonValue) -> object:
    if isinstance(value, dict):
        return _fields(value)
    return [_fields(item) for item in value] if isinstance(value, list) else value


@cache
def _field_name(key: str) -> str:
    return _CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", key)


class Rejection(NamedTuple):
    """How many spans or log events of a request a collector did not take, and why."""

    number: int
    reason: str


def read_reply(signal: Signal, reply: bytes, *, is_json: bool = False) -> Rejection | None:
    """Return what a collector's reply says that it rejected; None if it took all, or the reply cannot be read."""
    from google.protobuf.json_format import Parse, ParseError
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    message = ExportTraceServiceResponse() if signal == "traces" else ExportLogsServiceResponse()
    try:
        if is_json:
            Parse(reply, message, ignore_unknown_fields=True)
        else:
            message.MergeFromString(reply)
    except (ParseError, DecodeError):
        return None
    partial = message.partial_success
    number = getattr(partial, "rejected_spans" if signal == "traces" else "rejected_log_records")
    return Rejection(number, partial.error_message) if number > 0 else None
