from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.traces.otlp import read_file, read_request

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject
    from evalmeta.traces.spans import Telemetry

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def request(**span: object) -> JsonObject:
    made = {"traceId": TRACE, "spanId": SPAN, "name": "chat", "startTimeUnixNano": "5", "endTimeUnixNano": "9", **span}
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "shop"}, "spans": [made]}]}]}  # type: ignore[list-item]


def read(value: object) -> Telemetry:
    return read_request(json.dumps(value).encode(), is_json=True)


def test_values_of_all_kinds_are_read() -> None:
    attributes = [
        {"key": "text", "value": {"stringValue": "a"}},
        {"key": "count", "value": {"intValue": "7"}},
        {"key": "share", "value": {"doubleValue": 0.5}},
        {"key": "yes", "value": {"boolValue": True}},
        {"key": "list", "value": {"arrayValue": {"values": [{"intValue": 1}, {"stringValue": "b"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}},
        {"key": "none", "value": {}},
    ]

    (span,) = read(request(attributes=attributes)).spans

    assert span.attributes == {
        "text": "a", "count": 7, "share": 0.5, "yes": True, "list": [1, "b"], "map": {"k": "v"}, "none": None,
    }  # fmt: skip
    assert (span.start_ns, span.end_ns, span.scope, span.error) == (5, 9, "shop", None)


def test_ids_in_base64_and_names_with_underscores_are_read() -> None:
    made = {"trace_id": "CvdlGRbNQ92ESOshHIAxnA==", "span_id": "t61rcWkgMzE=", "name": "chat", "end_time_unix_nano": 9}
    body = {"resource_spans": [{"scope_spans": [{"scope": {"name": "shop"}, "spans": [made]}]}]}

    (span,) = read(body).spans

    assert (span.trace_id, span.span_id, span.end_ns, span.scope) == (TRACE, SPAN, 9, "shop")


@pytest.mark.parametrize("code", [2, "2", "STATUS_CODE_ERROR"])
def test_a_status_of_an_error_is_read_as_a_number_and_by_its_name(code: object) -> None:
    (span,) = read(request(status={"code": code, "message": "no such order"})).spans

    assert span.error == "no such order"


def test_protobuf_says_the_same_as_json() -> None:
    span = SpanMessage(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), name="chat")
    span.start_time_unix_nano, span.end_time_unix_nano = 5, 9
    span.status.code, span.status.message = 2, "no such order"
    for key, value in {"text": AnyValue(string_value="a"), "count": AnyValue(int_value=7)}.items():
        span.attributes.append(KeyValue(key=key, value=value))
    message = ExportTraceServiceRequest()
    message.resource_spans.add().scope_spans.add(scope=InstrumentationScope(name="shop")).spans.append(span)
    attributes = [{"key": "text", "value": {"stringValue": "a"}}, {"key": "count", "value": {"intValue": "7"}}]

    body = message.SerializeToString()

    same = read(request(attributes=attributes, status={"code": 2, "message": "no such order"}))
    assert read_request(body) == read_request(gzip.compress(body)) == same
    assert read_file(body, label="t.bin") == [same]


def test_a_log_record_is_an_event_of_its_span_with_body_and_attributes() -> None:
    log = {
        "traceId": TRACE,
        "spanId": SPAN,
        "eventName": "gen_ai.choice",
        "attributes": [{"key": "index", "value": {"intValue": "0"}}],
        "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hello"}}]}},
    }

    (event,) = read({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}).logs

    assert event.event.name == "gen_ai.choice"
    assert event.event.attributes == {"content": "Hello", "index": 0}


def test_a_file_may_have_one_request_or_a_line_for_each_and_be_packed() -> None:
    one = json.dumps(request(), indent=2).encode()
    lines = "\n".join(json.dumps(request(spanId=f"b7ad6b716920333{digit}")) for digit in range(3)).encode()

    assert [len(part.spans) for part in read_file(one, label="t.json")] == [1]
    assert [len(part.spans) for part in read_file(gzip.compress(lines), label="t.jsonl.gz")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"resourceSpans": [', "is not valid JSON"),
        (b'{"spans": []}', "is not a request of OTLP: it has no resourceSpans"),
        (b"[]", "is not a request of OTLP"),
        (b"\n\x05damaged", "is not valid protobuf"),
        (b"\x1f\x8b\x08damaged", "the gzip of the trace is damaged"),
        (gzip.compress(json.dumps(request()).encode())[:-12], "the gzip of the trace is cut"),
    ],
)
def test_damaged_data_is_an_error_that_says_where(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read_file(data, label="t.json")


def test_a_bomb_of_gzip_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", 10_000)

    with pytest.raises(FormatError, match="has more than 0 MB"):
        read_request(gzip.compress(b" " * 1_000_000), is_json=True)


def test_all_members_of_a_gzip_are_read_and_their_sizes_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps(request(spanId=f"b7ad6b716920333{digit}")).encode() + b"\n" for digit in range(3)]
    data = b"".join(map(gzip.compress, lines))

    assert [len(part.spans) for part in read_file(data, label="t.gz")] == [1, 1, 1]
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", len(lines[0]) * 2)
    with pytest.raises(FormatError, match="has more than"):
        read_file(data, label="t.gz")


def test_an_id_that_is_neither_hexadecimal_nor_base64_leaves_its_span_out() -> None:
    assert read(request(spanId="\u00e4\u00f6")).spans == ()
    assert read(request(spanId="no id!")).spans == ()


def test_a_line_that_is_damaged_is_named() -> None:
    lines = json.dumps(request()).encode() + b"\n{broken\n"

    with pytest.raises(FormatError, match=r"t\.jsonl:2 is not valid JSON"):
        read_file(lines, label="t.jsonl")


def test_deep_values_are_refused() -> None:
    deep = request(attributes=[{"key": "k", "value": nested(limits.MAX_JSON_DEPTH)}])

    with pytest.raises(FormatError, match="levels deep"):
        read(deep)


def nested(levels: int) -> JsonObject:
    value: JsonObject = {"stringValue": "x"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return value
