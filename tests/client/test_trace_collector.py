from __future__ import annotations

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

import report_runs as make
from collectors import PROTOBUF, Reply, collector
from evalmeta import limits
from evalmeta.client.trace_collector import open_collector, send
from evalmeta.errors import CollectorError, UsageError
from evalmeta.report import render

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


LINES = render("otlp", [make.mixed()]).splitlines()
NOW = (("Retry-After", "0"),)


def test_spans_and_events_are_sent_as_protobuf_to_their_paths() -> None:
    with collector() as (url, requests):
        send(open_collector(f"{url}/"), LINES)
    assert [(request.path, request.headers["content-type"]) for request in requests] == [
        ("/v1/traces", PROTOBUF),
        ("/v1/logs", PROTOBUF),
    ]
    traces = ExportTraceServiceRequest.FromString(requests[0].body)
    logs = ExportLogsServiceRequest.FromString(requests[1].body)
    spans = traces.resource_spans[0].scope_spans[0]
    events = logs.resource_logs[0].scope_logs[0]
    assert (len(spans.spans), len(events.log_records)) == (11, 7)
    assert {len(span.trace_id) for span in spans.spans} == {16}
    assert {event.span_id for event in events.log_records} <= {span.span_id for span in spans.spans}
    assert {spans.schema_url, events.schema_url} == {"https://opentelemetry.io/schemas/gen-ai/0.1.0"}


def test_a_collector_that_is_busy_gets_the_same_request_again() -> None:
    replies = [Reply(429, headers=NOW), Reply(503, headers=NOW), Reply(502, headers=NOW), Reply(504, headers=NOW)]
    with collector(replies) as (url, requests):
        send(open_collector(url), LINES[:1])
    assert len(requests) == 5
    assert len({request.body for request in requests}) == 1


@pytest.mark.parametrize("status", [302, 400, 401, 404, 408, 500])
def test_any_other_status_is_final(status: int) -> None:
    with (
        collector([Reply(status, headers=(("Location", "/other"),))]) as (url, requests),
        pytest.raises(CollectorError, match=rf"/v1/traces did not take the traces: it answered {status}$"),
    ):
        send(open_collector(url), LINES)
    assert len(requests) == 1


def test_waiting_longer_than_the_deadline_ends_the_export_at_once() -> None:
    with (
        collector([Reply(503, headers=(("Retry-After", "3600"),))]) as (url, requests),
        pytest.raises(CollectorError, match="it answered 503"),
    ):
        send(open_collector(url), LINES)
    assert len(requests) == 1


def test_a_collector_that_is_down_is_an_error_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COLLECTOR_SECONDS", 0.1)
    with collector() as (url, _):
        pass
    with pytest.raises(CollectorError, match=r"refused") as caught:
        send(open_collector(url), LINES)
    assert caught.value.actions == ("Check the address, and that the collector is up.",)


def test_a_web_page_is_not_a_collector() -> None:
    with (
        collector([Reply(200, b"<html>", "text/html; charset=utf-8")]) as (url, _),
        pytest.raises(CollectorError, match="it answered 200 with a web page"),
    ):
        send(open_collector(url), LINES)


def rejecting(number: int, why: str) -> bytes:
    reply = ExportTraceServiceResponse()
    reply.partial_success.rejected_spans, reply.partial_success.error_message = number, why
    return reply.SerializeToString()


def test_rejected_spans_and_events_are_an_error_after_the_rest_was_sent() -> None:
    of_logs = ExportLogsServiceResponse()
    of_logs.partial_success.rejected_log_records = 2
    replies = [Reply(body=rejecting(3, "no room")), Reply(body=of_logs.SerializeToString())]
    with (
        collector(replies) as (url, requests),
        pytest.raises(CollectorError, match=r"did not take 5 spans or events: no room$"),
    ):
        send(open_collector(url), LINES)
    assert len(requests) == 2


def test_a_reply_in_json_is_read_too_and_one_without_rejections_is_fine() -> None:
    replies = [
        Reply(200, b'{"partialSuccess": {"rejectedSpans": "4"}, "other": 1}', "application/json"),
        Reply(200, b"\xff not a message"),
    ]
    with collector(replies) as (url, _), pytest.raises(CollectorError, match="did not take 4 spans"):
        send(open_collector(url), LINES)


def test_headers_come_from_the_environment_and_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2-" * 3
    monkeypatch.setenv(HEADERS, f"Authorization=Bearer%20{secret}, x-team = desk ,")
    with collector([Reply(), Reply(body=rejecting(1, f"{secret} has no quota"))]) as (url, requests):
        found = open_collector(url)
        with pytest.raises(CollectorError) as caught:
            send(found, [LINES[0], LINES[0]])
    assert (requests[0].headers["authorization"], requests[0].headers["x-team"]) == (f"Bearer {secret}", "desk")
    assert secret not in repr(found) + str(caught.value) + "".join(caught.value.actions)
    assert "[secret] has no quota" in str(caught.value)


@pytest.mark.parametrize(
    "value", ["hunter2hunter2", "=hunter2hunter2", "a%0ab=hunter2", "a b=hunter2", "a=hunter2%0d%0ab: c", "ä=hunter2"]
)
def test_headers_that_are_not_valid_are_an_error_without_their_values(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HEADERS, value)
    with pytest.raises(UsageError, match=f"^{HEADERS} is not valid$") as caught:
        open_collector("http://127.0.0.1:4318")
    assert "hunter2" not in "".join(caught.value.actions)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1",
        "http://",
        "http://user:hunter2@127.0.0.1",
        "http://127.0.0.1?key=hunter2",
        "http://127.0.0.1:x",
    ],
)
def test_an_address_that_is_not_valid_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(UsageError, match="the address of the collector is not valid") as caught:
        open_collector(url)
    assert "hunter2" not in f"{caught.value}"


def test_headers_are_not_sent_over_plain_http_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    open_collector("http://collector.example.com:4318")
    monkeypatch.setenv(HEADERS, "Authorization=secret")
    open_collector("https://collector.example.com")
    with pytest.raises(UsageError, match=r"would be sent to collector\.example\.com without encryption"):
        open_collector("http://collector.example.com:4318")
