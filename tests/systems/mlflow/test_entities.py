"""Traces, their spans and assessments, as scripts use them."""

from __future__ import annotations

import re

import pytest

from evalmeta.mlflow.entities import Feedback, Span, SpanStatus, SpanType, Trace
from evalmeta.systems.mlflow.assessments import AssessmentSource, Expectation

OLDER = {
    "info": {
        "request_id": "tr-1",
        "timestamp_ms": 1_700_000_000_000,
        "execution_time_ms": "1500",
        "status": "TraceStatus.OK",
        "request_metadata": {"mlflow.trace.tokenUsage": '{"input_tokens": 3}', "number": 7},
        "tags": {"team": "shop"},
        "assessments": [
            {"assessment_name": "polite", "feedback": {"value": True}, "rationale": "", "source": "ada"},
            {"name": "expected_response", "expectation": {"value": "Yes."}, "source": {"source_type": "HUMAN"}},
            {"assessment_name": "neither"},
            "not an assessment",
        ],
    },
    "data": {
        "spans": [
            {
                "name": "agent",
                "context": {"span_id": "s1", "trace_id": "tr-1"},
                "parent_id": None,
                "start_time": 1_000_000,
                "end_time": "3_000_000",
                "status_code": "OK",
                "attributes": {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": '{"q": "open?"}'},
                "events": [{"name": "exception", "timestamp": 5, "attributes": {"exception.type": "E"}}, 3],
            },
            {"name": "tool", "span_id": "s2", "parent_span_id": "s1", "status": {"code": "STATUS_CODE_ERROR"}},
        ]
    },
}


def test_a_trace_of_the_older_schema_has_its_old_and_new_names() -> None:
    trace = Trace.from_dict(OLDER)  # type: ignore[arg-type]
    info = trace.info
    assert (info.trace_id, info.request_id) == ("tr-1", "tr-1")
    assert (info.request_time, info.timestamp_ms) == (1_700_000_000_000, 1_700_000_000_000)
    assert (info.execution_duration, info.execution_time_ms) == (1500, 1500)
    assert (info.state, info.status) == ("OK", "OK")
    assert info.token_usage == {"input_tokens": 3}
    assert info.trace_metadata["number"] == ""
    [agent, tool] = trace.data.spans
    assert (agent.span_type, agent.inputs, agent.status.status_code) == (SpanType.AGENT, {"q": "open?"}, "OK")
    assert (agent.request_id, agent.end_time_ns, tool.start_time_ns) == ("tr-1", None, 0)
    assert [(event.name, event.timestamp) for event in agent.events] == [("exception", 5), ("", 0)]
    assert (tool.parent_id, tool.status.status_code) == ("s1", "ERROR")


def test_assessments_that_cannot_be_read_are_ignored_and_the_others_kept() -> None:
    [polite, expected] = Trace.from_dict(OLDER).info.assessments  # type: ignore[arg-type]
    assert isinstance(polite, Feedback)
    assert (polite.name, polite.value, polite.rationale) == ("polite", True, None)
    assert isinstance(expected, Expectation)
    assert (expected.name, expected.value, expected.source) == (
        *("expected_response", "Yes."),
        AssessmentSource("HUMAN", ""),
    )


@pytest.mark.parametrize(
    ("given", "milliseconds"), [("1970-01-01T00:00:02+00:00", 2000), ("2000", 2000), ("soon", 0), (None, 0), (True, 0)]
)
def test_a_time_is_a_number_or_a_text_and_anything_else_is_unknown(given: object, milliseconds: int) -> None:
    trace = Trace.from_dict({"info": {"request_time": given}})  # type: ignore[dict-item]
    assert trace.info.request_time == milliseconds


def test_the_duration_of_a_trace_that_does_not_say_it_is_that_of_its_root() -> None:
    span = {"name": "agent", "start_time_unix_nano": 1_000_000, "end_time_unix_nano": 4_000_000}
    assert Trace.from_dict({"data": {"spans": [span]}}).info.execution_duration == 3  # type: ignore[dict-item, list-item]


def test_a_text_that_is_no_object_is_an_empty_trace() -> None:
    trace = Trace.from_json("[1]")
    assert (trace.info.trace_id, trace.data.spans, trace.data.request) == ("", [], None)


def test_what_is_set_on_a_span_is_written_and_found() -> None:
    span = Span("step", "s1", None, "tr-1", 1)
    span.set_span_type(SpanType.TOOL)
    span.set_attribute("model", "small")
    span.set_attributes({"temperature": 0.5})
    span.set_status(SpanStatus("ERROR", "too slow"))
    trace = Trace.from_dict({"data": {"spans": [span.to_dict()]}})

    [again] = trace.search_spans(span_type="TOOL", name=re.compile("^st"), span_id="s1")
    assert (again.get_attribute("model"), again.get_attribute("temperature")) == ("small", 0.5)
    assert (again.get_attribute("missing"), again.status) == (None, SpanStatus("ERROR", "too slow"))
    assert trace.search_spans(name=re.compile("x")) == trace.search_spans(span_id="s2") == []


def test_an_error_of_a_feedback_has_a_code_and_a_message_whatever_it_was() -> None:
    raised = Feedback(error=ValueError("no key"))
    said = Feedback(error="no key")
    assert (raised.error_code, raised.error_message) == ("ValueError", "no key")
    assert (said.error_code, said.error_message) == ("ASSESSMENT_ERROR", "no key")
    assert (Feedback(value=1).error_code, Feedback(value=1).error_message) == (None, None)
