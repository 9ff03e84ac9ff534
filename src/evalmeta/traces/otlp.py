"""OTLP, the protocol of OpenTelemetry: requests as protobuf and JSON, and files of them.

The protobuf of a request is that of opentelemetry-proto. Its JSON has hexadecimal ids, integers as texts, and names in
lowerCamelCase (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding"); also read are ids in base64, names with
underscores, and integers as numbers, which some exporters write.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from typing import TYPE_CHECKING, Final, Literal

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError, UsageError
from evalmeta.model.json_value import is_too_deep
from evalmeta.traces.spans import LogEvent, Span, SpanEvent, Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

    from evalmeta.model.json_value import JsonObject, JsonValue

Signal = Literal["traces", "logs"]
_ERROR: Final = 2
_GZIP: Final = b"\x1f\x8b"
_HEX: Final = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")
_WORD: Final = re.compile(r"_([a-z])")
_INSTALL: Final = "Run: pip install 'evalmeta[otel]'"
_EVENT_NAME: Final = "event.name"
_PLAIN_VALUES: Final = frozenset({"stringValue", "boolValue", "doubleValue", "bytesValue"})


def read_request(body: bytes, *, signal: Signal = "traces", is_json: bool = False) -> Telemetry:
    """Read the body of one request; raise FormatError if it is damaged, or too large when it is unpacked."""
    data = unpacked(body)
    if is_json:
        return _from_json(_loads(data, "the request"), "the request")
    return _from_protobuf(data, signal)


def read_file(data: bytes, *, label: str) -> list[Telemetry]:
    """Read a file: a request as protobuf or JSON, or JSON Lines of requests, each of them possibly in gzip."""
    text = unpacked(data)
    if text.lstrip()[:1] not in (b"{", b"["):
        return [_from_protobuf(text, "traces")]
    try:
        return [_from_json(orjson.loads(text), label)]
    except orjson.JSONDecodeError:
        # A request in protobuf begins with a line end, and its length may be that of a brace.
        if text[:1] == b"\n" and (whole := _whole_protobuf(text)):
            return [whole]
    lines = enumerate(text.splitlines(), 1)
    return [
        _from_json(_loads(line, f"{label}:{number}"), f"{label}:{number}") for number, line in lines if line.strip()
    ]


def _whole_protobuf(data: bytes) -> Telemetry | None:
    try:
        return _from_protobuf(data, "traces")
    except FormatError:
        return None


def unpacked(data: bytes) -> bytes:
    """Return data without its gzip; raise FormatError if it is damaged or larger than `limits.MAX_TRACE_BYTES`."""
    if data[:2] == _GZIP:
        try:
            data = _gunzipped(data)
        except zlib.error as error:
            raise FormatError(f"the gzip of the trace is damaged: {error}") from None
    if len(data) > limits.MAX_TRACE_BYTES:
        raise FormatError(f"the trace has more than {limits.MAX_TRACE_BYTES / 1e6:,.0f} MB")
    return data


def _gunzipped(data: bytes) -> bytes:
    """Return what all members of a gzip have together, or a little more than the limit of it."""
    parts, size = [], 0
    while data.rstrip(b"\0") and size <= limits.MAX_TRACE_BYTES:
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        part = stream.decompress(data, limits.MAX_TRACE_BYTES + 1 - size)
        size += len(part)
        if not stream.eof and size <= limits.MAX_TRACE_BYTES:
            raise FormatError("the gzip of the trace is cut")
        parts.append(part)
        data = stream.unused_data
    return b"".join(parts)


def _loads(data: bytes, label: str) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FormatError(f"{label} is not valid JSON: {error}") from None
    return value


def _from_json(value: JsonValue, label: str) -> Telemetry:
    if is_too_deep(value):
        raise FormatError(f"{label} is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    if not isinstance(value, dict):
        raise FormatError(f"{label} is not a request of OTLP: it has no resourceSpans")
    request = _camel(value)
    resources = [*_objects(request.get("resourceSpans")), *_objects(request.get("resourceLogs"))]
    if not resources and not request.keys() & {"resourceSpans", "resourceLogs"}:
        raise FormatError(f"{label} is not a request of OTLP: it has no resourceSpans")
    spans, logs = [], []
    for resource in resources:
        for scope in _scopes(resource):
            name = _text(_camel(_object(scope.get("scope"))).get("name"))
            spans += [_span(_camel(span), name) for span in _objects(scope.get("spans"))]
            logs += [_log(_camel(log)) for log in _objects(scope.get("logRecords"))]
    return Telemetry(tuple(span for span in spans if span.trace_id and span.span_id), tuple(logs))


def _scopes(resource: JsonObject) -> Iterator[JsonObject]:
    groups = _camel(resource)
    for key in ("scopeSpans", "instrumentationLibrarySpans", "scopeLogs"):
        yield from map(_camel, _objects(groups.get(key)))


def _span(span: JsonObject, scope: str) -> Span:
    status = _camel(_object(span.get("status")))
    is_error = status.get("code") in (_ERROR, str(_ERROR), "STATUS_CODE_ERROR")
    return Span(
        _id(span.get("traceId")),
        _id(span.get("spanId")),
        _id(span.get("parentSpanId")),
        _text(span.get("name")),
        _integer(span.get("startTimeUnixNano")),
        _integer(span.get("endTimeUnixNano")),
        _attributes(span.get("attributes")),
        tuple(
            SpanEvent(
                _text(event.get("name")), _attributes(event.get("attributes")), _integer(event.get("timeUnixNano"))
            )
            for event in map(_camel, _objects(span.get("events")))
        ),
        _text(status.get("message")) if is_error else None,
        scope,
    )


def _log(log: JsonObject) -> LogEvent:
    attributes = dict(_attributes(log.get("attributes")))
    name = _text(log.get("eventName")) or _text(attributes.get(_EVENT_NAME))
    body = _value(log.get("body"))
    # The bodies of older events have what attributes have now.
    merged = {**body, **attributes} if isinstance(body, dict) else attributes
    time_ns = _integer(log.get("timeUnixNano")) or _integer(log.get("observedTimeUnixNano"))
    return LogEvent(_id(log.get("traceId")), _id(log.get("spanId")), SpanEvent(name, merged, time_ns))


def _attributes(values: JsonValue) -> dict[str, JsonValue]:
    return {_text(pair.get("key")): _value(pair.get("value")) for pair in _objects(values)}


def _value(value: JsonValue) -> JsonValue:
    """Return the value in an AnyValue."""
    if not isinstance(value, dict):
        return None
    for kind, inner in _camel(value).items():
        if kind == "intValue":
            return _integer(inner)
        if kind == "arrayValue":
            return [_value(item) for item in _list(_object(inner).get("values"))]
        if kind == "kvlistValue":
            return _attributes(_object(inner).get("values"))
        if kind in _PLAIN_VALUES:
            return inner
    return None


def _camel(value: JsonObject) -> JsonObject:
    """Return an object whose keys are in lowerCamelCase."""
    if not any("_" in key for key in value):
        return value
    return {_WORD.sub(lambda letter: letter[1].upper(), key): inner for key, inner in value.items()}


def _id(value: JsonValue) -> str:
    """Return an id as lower-case hexadecimal digits; empty for anything else."""
    text = _text(value)
    if _HEX.fullmatch(text):
        return text.lower() if text.strip("0") else ""
    try:
        return b64decode(text, validate=True).hex() if text else ""
    except ValueError:
        # It is not base64, or not even ASCII.
        return ""


def _integer(value: JsonValue) -> int:
    try:
        return int(value) if isinstance(value, int | str) else 0
    except ValueError:
        return 0


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _objects(value: JsonValue) -> Iterable[Mapping[str, JsonValue]]:
    return (item for item in _list(value) if isinstance(item, dict))


def protobuf_missing() -> UsageError:
    """Return the error that the extra with the protobuf of OTLP is not installed."""
    return UsageError("traces as protobuf need opentelemetry-proto, which is not installed", actions=[_INSTALL])


def _from_protobuf(data: bytes, signal: Signal) -> Telemetry:
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise protobuf_missing() from None
    try:
        if signal == "logs":
            logs = ExportLogsServiceRequest.FromString(data)
            groups = (scope for resource in logs.resource_logs for scope in resource.scope_logs)
            return Telemetry(logs=tuple(_log_of(log) for scope in groups for log in scope.log_records))
        request = ExportTraceServiceRequest.FromString(data)
    except DecodeError as error:
        raise FormatError(f"the trace is not valid protobuf: {error}") from None
    scopes = (scope for resource in request.resource_spans for scope in resource.scope_spans)
    return Telemetry(
        tuple(_span_of(span, scope.scope.name) for scope in scopes for span in scope.spans if span.span_id)
    )


def _span_of(span: SpanMessage, scope: str) -> Span:
    return Span(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _pairs(span.attributes),
        tuple(SpanEvent(event.name, _pairs(event.attributes), event.time_unix_nano) for event in span.events),
        span.status.message if span.status.code == _ERROR else None,
        scope,
    )


def _log_of(log: LogRecord) -> LogEvent:
    attributes = _pairs(log.attributes)
    body = _plain(log.body)
    merged = {**body, **attributes} if isinstance(body, dict) else attributes
    name = log.event_name or _text(attributes.get(_EVENT_NAME))
    event = SpanEvent(name, merged, log.time_unix_nano or log.observed_time_unix_nano)
    return LogEvent(log.trace_id.hex(), log.span_id.hex(), event)


def _pairs(pairs: Iterable[KeyValue]) -> dict[str, JsonValue]:
    return {pair.key: _plain(pair.value) for pair in pairs}


def _plain(value: AnyValue) -> JsonValue:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _pairs(value.kvlist_value.values)
    plain: str | int | float | bool | bytes = getattr(value, kind)
    return plain.hex() if isinstance(plain, bytes) else plain
