from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.traces.otlp import read_file, read_request
from evalmeta.traces.requests import read_signal, request_lines
from evalmeta.traces.spans import LogEvent, Span, SpanEvent, SpanLink, Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SDK = Path(__file__).parent / "recordings/sdk.jsonl"
TRACE, PARENT, SPAN = "0af7651916cd43dd8448eb211c80319c", "0123456789abcdef", "b7ad6b7169203331"
ATTRIBUTES = {"text": "Grüße", "count": 7, "share": 0.5, "yes": True, "list": ["a", "b"]}
BEGIN, END = 1_795_187_104_000_000_000, 1_795_187_104_250_000_000
ONE = Span(
    TRACE, SPAN, PARENT, "invoke_agent Orders", BEGIN, END, ATTRIBUTES, error="no such order", scope="evalmeta",
    links=(SpanLink(TRACE, PARENT),),
)  # fmt: skip
EVENT = LogEvent(TRACE, SPAN, SpanEvent("gen_ai.evaluation.result", ATTRIBUTES, END))


def messages(lines: Sequence[str]) -> tuple[ExportTraceServiceRequest, ExportLogsServiceRequest]:
    """Gives two requests as protobuf, without what the SDK adds and the version of evalmeta."""
    sent = dict(map(read_signal, lines))
    traces = ExportTraceServiceRequest.FromString(sent["traces"])
    logs = ExportLogsServiceRequest.FromString(sent["logs"])
    (of_spans,), (of_logs,) = traces.resource_spans, logs.resource_logs
    of_spans.resource.attributes[1].value.string_value = of_logs.resource.attributes[1].value.string_value = "1"
    of_spans.scope_spans[0].scope.version = of_logs.scope_logs[0].scope.version = "1"
    (span,) = of_spans.scope_spans[0].spans
    span.ClearField("flags")
    span.links[0].ClearField("flags")
    of_logs.scope_logs[0].log_records[0].ClearField("body")
    return traces, logs


def test_requests_are_those_of_the_sdk_of_opentelemetry() -> None:
    assert messages([*request_lines([ONE, EVENT])]) == messages(SDK.read_text().splitlines())


def test_ids_are_hexadecimal_and_times_are_texts_as_the_collector_writes_them() -> None:
    ours, theirs = (json.loads(text) for text in (next(request_lines([ONE])), SDK.read_text().splitlines()[0]))
    (mine,), (sdks,) = (value["resourceSpans"][0]["scopeSpans"][0]["spans"] for value in (ours, theirs))
    same = ("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano", "attributes")
    assert {key: mine[key] for key in same} == {key: sdks[key] for key in same}


@pytest.mark.parametrize("is_json", [True, False])
def test_what_is_written_is_read_again(*, is_json: bool) -> None:
    read = _read(request_lines([ONE, EVENT]), is_json=is_json)
    assert read == Telemetry((ONE._replace(links=()),), (EVENT,))


def _read(lines: Iterator[str], *, is_json: bool) -> Telemetry:
    if is_json:
        found = read_file("\n".join(lines).encode(), label="t.jsonl")
    else:
        found = [read_request(body, signal=signal) for signal, body in map(read_signal, lines)]
    return Telemetry(*(tuple(item for one in found for item in one[place]) for place in (0, 1)))


def test_lone_surrogates_cannot_make_a_request_that_nobody_reads() -> None:
    (line,) = request_lines([ONE._replace(name="a\ud800", attributes={"\ud800": "b\udfff"}, error="\ud800")])
    (span,) = _read(iter([line]), is_json=False).spans
    assert (span.name, span.attributes, span.error) == ("a?", {"?": "b?"}, "?")


def test_an_attribute_without_a_value_is_left_out() -> None:
    (line,) = request_lines([ONE._replace(attributes={"known": 0, "unknown": None}, error=None)])
    (span,) = _read(iter([line]), is_json=True).spans
    assert (span.attributes, span.error) == ({"known": 0}, None)


def test_requests_have_a_limit_and_begin_before_the_last_record_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRACE_REQUEST_CHARS", 3_000)
    taken = []

    def records() -> Iterator[Span | LogEvent]:
        for number in range(40):
            taken.append(number)
            yield ONE._replace(span_id=f"{number + 1:016x}")

    lines = request_lines(records())
    first = next(lines)
    assert (len(first) < 5_000, len(taken) < 10) == (True, True)
    spans = _read(iter([first, *lines]), is_json=True).spans
    assert [int(span.span_id, 16) for span in spans] == [*range(1, 41)]


def test_protobuf_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, space: Mapping[str, object] | None = None, *others: object) -> object:
        if name.startswith("opentelemetry.proto"):
            raise ImportError(name)
        return original(name, space, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match="need opentelemetry-proto") as caught:
        read_signal('{"resourceSpans":[]}')
    assert "evalmeta[otel]" in caught.value.actions[0]
