from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import report_runs as make
from evalmeta import limits
from evalmeta.model.evaluation import Quarantine, parse_day
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, RunStatus, TestResult, Verdict
from evalmeta.report import otlp, render
from evalmeta.traces.otlp import read_file
from evalmeta.traces.requests import read_signal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.json_value import JsonObject
    from evalmeta.report.report import Report
    from evalmeta.traces.spans import LogEvent, Span

EVENT = "gen_ai.evaluation.result"
IDS = ("traceId", "spanId", "parentSpanId")


def exported(*reports: Report) -> tuple[list[Span], list[LogEvent]]:
    found = read_file(render("otlp", reports).encode(), label="t.jsonl")
    return [span for one in found for span in one.spans], [log for one in found for log in one.logs]


def named(spans: list[Span], start: str) -> list[Span]:
    return [span for span in spans if span.name.startswith(start)]


def test_a_run_has_a_span_for_itself_each_case_and_each_turn() -> None:
    spans, _ = exported(make.conversations())
    assert Counter(span.name for span in spans) == {
        "test run Returns_Desk": 1,
        "test case 1": 2,
        "test case 2": 2,
        "invoke_agent Returns_Agent": 6,
    }


def test_several_runs_have_a_span_of_the_suite_that_links_to_them() -> None:
    other = replace(make.mixed(), run=replace(make.run(make.PASSED), id="4KB000000000002GAA"))
    first = json.loads(render("otlp", [make.mixed(), other]).splitlines()[0])
    suite, run, *others = first["resourceSpans"][0]["scopeSpans"][0]["spans"]
    second = next(span for span in others if span["name"].startswith("test run"))
    assert suite["name"] == "test suite"
    assert suite["links"] == [{key: span[key] for key in ("traceId", "spanId")} for span in (run, second)]


def test_a_suite_passes_only_if_all_its_runs_did() -> None:
    passed, failed, cut = make.report(make.PASSED), make.mixed(), make.broken_off()
    errors = [exported(passed, other)[0][0].error for other in (passed, failed, cut)]
    assert errors == [None, "1 of 2 runs not passed", "1 of 2 runs not passed"]


def test_a_case_is_a_trace_with_its_turns_and_has_a_link_to_its_run() -> None:
    (line, _) = render("otlp", [make.conversations()]).splitlines()
    run, *spans = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    cases = {span["spanId"]: span for span in spans if span["name"].startswith("test case")}
    assert all(span["links"] == [{key: run[key] for key in ("traceId", "spanId")}] for span in cases.values())
    turns = [span for span in spans if span["name"].startswith("invoke_agent")]
    assert [cases[turn["parentSpanId"]]["traceId"] for turn in turns] == [turn["traceId"] for turn in turns]
    assert len({span["traceId"] for span in cases.values()}) == 4


@given(make.reports)
def test_each_verdict_is_an_event_of_the_span_of_a_turn(report: Report) -> None:
    spans, events = exported(report)
    turns = {(span.trace_id, span.span_id) for span in spans if "gen_ai.operation.name" in span.attributes}
    assert {(event.trace_id, event.span_id) for event in events} <= turns
    assert Counter(str(event.event.attributes["gen_ai.evaluation.score.label"]) for event in events) == Counter(
        "measured"
        if result.is_measured
        else {"PASS": "pass", "FAILURE": "fail"}.get(result.verdict, result.verdict.lower())
        for case in report.run.cases
        for result in case.results
    )


def with_base64(value: object) -> object:
    """Gives a request with ids as `json_format` takes them."""
    if isinstance(value, dict):
        return {
            key: b64encode(bytes.fromhex(item)).decode() if key in IDS else with_base64(item)
            for key, item in value.items()
        }
    return [with_base64(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
@given(make.reports)
def test_any_run_is_what_the_messages_of_opentelemetry_read(report: Report) -> None:
    for line in render("otlp", [report]).splitlines():
        signal, body = read_signal(line)
        kind = ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest
        assert ParseDict(with_base64(json.loads(line)), kind()) == kind.FromString(body)


def test_a_verdict_has_name_score_label_and_explanation_as_the_conventions_say() -> None:
    _, events = exported(make.report(make.MIXED_CASES[4]))
    (event,) = events
    assert event.event.name == EVENT
    shown = {key: value for key, value in event.event.attributes.items() if key.startswith("gen_ai.")}
    assert shown == {
        "gen_ai.evaluation.name": "bot_response_rating",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "fail",
        "gen_ai.evaluation.explanation": "numbers differ: expected 1250, got 12500",
    }
    assert "https://opentelemetry.io/schemas/gen-ai/0.1.0" in render("otlp", [make.mixed()])


def test_results_of_a_conversation_are_events_of_the_turn_that_they_judge() -> None:
    spans, events = exported(make.report(make.conversation(1, 0.4, 0.9)))
    turns = {span.span_id: span.attributes["evalmeta.turn.number"] for span in named(spans, "invoke_agent")}
    labels = [(turns[event.span_id], event.event.attributes["gen_ai.evaluation.score.label"]) for event in events]
    assert labels == [(1, "fail"), (2, "pass"), (2, "pass"), (2, "measured")]


def test_an_undecided_or_broken_result_never_looks_passed() -> None:
    broken = TestResult("factuality", Verdict.ERROR, error="the rater is gone")
    spans, events = exported(make.report(make.case(4, Verdict.ERROR, make.COHERENCE_UNDECIDED, broken)))
    (case,) = named(spans, "test case")
    assert ("test.case.result.status" in case.attributes, case.attributes["evalmeta.case.verdict"]) == (False, "ERROR")
    assert case.error is not None
    said = [event.event.attributes for event in events]
    assert [attributes["gen_ai.evaluation.score.label"] for attributes in said] == ["undecided", "error"]
    assert (said[1]["gen_ai.evaluation.explanation"], said[1]["error.type"]) == ("the rater is gone", "_OTHER")


def test_a_case_that_ended_in_an_error_has_a_turn_in_error() -> None:
    spans, events = exported(make.report(make.MIXED_CASES[2]))
    assert [span.error for span in named(spans, "invoke_agent")] == ["the agent did not answer within 120 s"]
    assert not events


@pytest.mark.parametrize(
    ("report", "status"),
    [
        (make.report(make.PASSED), "success"),
        (make.mixed(), "failure"),
        (make.broken_off(), "aborted"),
        (make.report_of(replace(make.run(), status=RunStatus.IN_PROGRESS, total=3)), "in_progress"),
        (make.compared(), "failure"),
    ],
)
def test_the_span_of_a_run_says_whether_it_passed(report: Report, status: str) -> None:
    (run,) = named(exported(report)[0], "test run")
    assert run.attributes["test.suite.run.status"] == status
    assert (run.error is None) == (status in {"success", "in_progress"})


def test_the_failure_of_a_case_in_quarantine_is_not_an_error() -> None:
    until = parse_day("2099-01-01")
    assert until
    spans, _ = exported(make.report(make.MIXED_CASES[4]._replace(quarantine=Quarantine("flaky", until))))
    (case,) = named(spans, "test case")
    assert (case.attributes["evalmeta.case.quarantined"], case.error) == (True, None)


def test_latencies_are_the_lengths_of_the_spans_of_turns() -> None:
    answer = GeneratedData("Yes.", latency_ms=1234.5)
    spans, _ = exported(make.report(make.PASSED._replace(generated=answer)))
    assert [span.latency_ms for span in named(spans, "invoke_agent")] == [1234.5]


def test_a_second_export_has_the_same_ids_and_another_run_has_others() -> None:
    first, second = make.mixed(), replace(make.mixed(), run=replace(make.mixed().run, started=make.STARTED + 1))
    assert render("otlp", [first]) == render("otlp", [first])
    ids = [{(span.trace_id, span.span_id) for span in exported(report)[0]} for report in (first, second)]
    assert (len(ids[0]), ids[0] & ids[1]) == (11, set())


def test_cases_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRACE_REQUEST_CHARS", 2_000)
    read = 0

    class Cases(tuple[CaseResult, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[CaseResult]:
            nonlocal read
            for case in super().__iter__():
                read += 1
                yield case

    report = make.report(*(make.case(number, Verdict.PASS, make.TOPIC_PASSED) for number in range(1, 101)))
    lines = otlp.stream([replace(report, run=replace(report.run, cases=Cases(report.run.cases)))])
    next(lines)
    assert read < 10
    assert sum(line.count("test case ") for line in lines) > 90


def test_texts_cannot_control_a_terminal() -> None:
    case = make.PASSED._replace(generated=GeneratedData("\x1b[2J\u202e"), utterance="\x9b")
    text = render("otlp", [make.report(case)])
    assert not {"\x1b", "\u202e", "\x9b"} & {*text}
    (turn,) = named(exported(make.report(case))[0], "invoke_agent")
    messages: list[JsonObject] = json.loads(str(turn.attributes["gen_ai.output.messages"]))
    assert messages == [{"role": "assistant", "parts": [{"type": "text", "content": "\x1b[2J\u202e"}]}]
