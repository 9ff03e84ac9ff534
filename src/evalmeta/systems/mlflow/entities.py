"""Traces of MLflow with their spans, as scripts use them."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from evalmeta.model.json_value import JsonObject, JsonValue, decoded, plain_value, read_json
from evalmeta.systems.mlflow.assessments import Expectation, Feedback, assessment_json, read_assessments

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Document:
    """A passage that a retriever returns."""

    page_content: str
    metadata: dict[str, object] = field(default_factory=dict)
    id: str | None = None


class SpanType:
    """The types of spans."""

    LLM = "LLM"
    CHAIN = "CHAIN"
    AGENT = "AGENT"
    TOOL = "TOOL"
    CHAT_MODEL = "CHAT_MODEL"
    RETRIEVER = "RETRIEVER"
    PARSER = "PARSER"
    EMBEDDING = "EMBEDDING"
    RERANKER = "RERANKER"
    MEMORY = "MEMORY"
    WORKFLOW = "WORKFLOW"
    TASK = "TASK"
    GUARDRAIL = "GUARDRAIL"
    EVALUATOR = "EVALUATOR"
    UNKNOWN = "UNKNOWN"


class TraceState(StrEnum):
    """How a trace ended."""

    STATE_UNSPECIFIED = "STATE_UNSPECIFIED"
    OK = "OK"
    ERROR = "ERROR"
    IN_PROGRESS = "IN_PROGRESS"


@dataclass(slots=True)
class SpanStatus:
    """How a span ended."""

    status_code: str = "UNSET"
    description: str = ""


@dataclass(slots=True)
class SpanEvent:
    """Something that happened in a span, such as an exception."""

    name: str
    attributes: JsonObject = field(default_factory=dict)
    timestamp: int = field(default_factory=time.time_ns)


_TRACE: Final = "mlflow.traceRequestId"
_TYPE: Final = "mlflow.spanType"
_INPUTS: Final = "mlflow.spanInputs"
_OUTPUTS: Final = "mlflow.spanOutputs"
_NS: Final = 1_000_000


@dataclass(slots=True)
class Span:
    """One step of an agent; times are in nanoseconds since the epoch."""

    name: str
    span_id: str
    parent_id: str | None
    trace_id: str
    start_time_ns: int
    span_type: str = SpanType.UNKNOWN
    end_time_ns: int | None = None
    inputs: object = None
    outputs: object = None
    attributes: dict[str, object] = field(default_factory=dict)
    status: SpanStatus = field(default_factory=SpanStatus)
    events: list[SpanEvent] = field(default_factory=list)

    @property
    def request_id(self) -> str:
        """Return the id of the trace, as older versions call it."""
        return self.trace_id

    def set_inputs(self, inputs: object) -> None:
        """Set what the step received."""
        self.inputs = inputs

    def set_outputs(self, outputs: object) -> None:
        """Set what the step returned."""
        self.outputs = outputs

    def set_span_type(self, span_type: str) -> None:
        """Set the type."""
        self.span_type = span_type

    def set_attribute(self, key: str, value: object) -> None:
        """Set an attribute."""
        self.attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        """Set several attributes."""
        self.attributes.update(attributes)

    def get_attribute(self, key: str) -> object:
        """Return an attribute; None if there is none."""
        return self.attributes.get(key)

    def set_status(self, status: SpanStatus | str) -> None:
        """Set how the step ended."""
        self.status = status if isinstance(status, SpanStatus) else SpanStatus(str(status))

    def record_exception(self, error: BaseException) -> None:
        """Note that the step ended in an exception."""
        said = {"exception.type": type(error).__name__, "exception.message": str(error)}
        self.events.append(SpanEvent("exception", said))
        self.status = SpanStatus("ERROR", f"{type(error).__name__}: {error}")

    def to_dict(self) -> JsonObject:
        """Return the span as MLflow writes it."""
        given = {**self.attributes, _TRACE: self.trace_id, _TYPE: self.span_type}
        given |= {key: value for key, value in ((_INPUTS, self.inputs), (_OUTPUTS, self.outputs)) if value is not None}
        code = {"OK": "STATUS_CODE_OK", "ERROR": "STATUS_CODE_ERROR"}.get(self.status.status_code, "STATUS_CODE_UNSET")
        return {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "parent_span_id": self.parent_id,
            "name": self.name,
            "start_time_unix_nano": self.start_time_ns,
            "end_time_unix_nano": self.end_time_ns,
            "attributes": {key: json.dumps(plain_value(value), ensure_ascii=False) for key, value in given.items()},
            "status": {"code": code, "message": self.status.description},
            "events": [
                {"name": event.name, "time_unix_nano": event.timestamp, "attributes": event.attributes}
                for event in self.events
            ],
        }


@dataclass(slots=True)
class TraceInfo:
    """What is known of a whole trace; times are in milliseconds."""

    trace_id: str
    request_time: int
    execution_duration: int | None = None
    state: str = TraceState.IN_PROGRESS
    tags: dict[str, str] = field(default_factory=dict)
    trace_metadata: dict[str, str] = field(default_factory=dict)
    request_preview: str | None = None
    response_preview: str | None = None
    assessments: list[Feedback | Expectation] = field(default_factory=list)

    @property
    def request_id(self) -> str:
        """Return the id, as older versions call it."""
        return self.trace_id

    @property
    def timestamp_ms(self) -> int:
        """Return when the trace began, as older versions call it."""
        return self.request_time

    @property
    def execution_time_ms(self) -> int | None:
        """Return the duration, as older versions call it."""
        return self.execution_duration

    @property
    def status(self) -> str:
        """Return the state, as older versions call it."""
        return self.state

    @property
    def token_usage(self) -> JsonValue:
        """Return the tokens that were used; None if they are not known."""
        return decoded(self.trace_metadata.get("mlflow.trace.tokenUsage"))


@dataclass(slots=True)
class TraceData:
    """The spans of a trace, in the order in which they began."""

    spans: list[Span] = field(default_factory=list)

    @property
    def request(self) -> str | None:
        """Return the inputs of the root span as JSON."""
        return self._text("inputs")

    @property
    def response(self) -> str | None:
        """Return the outputs of the root span as JSON."""
        return self._text("outputs")

    def _text(self, name: str) -> str | None:
        root = next((span for span in self.spans if span.parent_id is None), None)
        return None if root is None else json.dumps(plain_value(getattr(root, name)), ensure_ascii=False)


@dataclass(slots=True)
class Trace:
    """What an agent did for one answer."""

    info: TraceInfo
    data: TraceData

    def search_spans(
        self, span_type: str | None = None, name: str | re.Pattern[str] | None = None, span_id: str | None = None
    ) -> list[Span]:
        """Return the spans of a type, with a name or that a pattern matches, or with an id."""
        return [
            span
            for span in self.data.spans
            if span_type in {None, span.span_type} and span_id in {None, span.span_id} and _is_named(span, name)
        ]

    def search_assessments(self, name: str | None = None, *, type: str | None = None) -> list[Feedback | Expectation]:  # noqa: A002 - MLflow's keyword
        """Return the assessments with a name, of the type `feedback` or `expectation`."""
        kinds = {"feedback": Feedback, "expectation": Expectation}
        wanted = kinds.get(type or "", (Feedback, Expectation))
        return [noted for noted in self.info.assessments if name in {None, noted.name} and isinstance(noted, wanted)]

    def to_dict(self) -> JsonObject:
        """Return the trace as MLflow writes it."""
        info = self.info
        return {
            "info": {
                "trace_id": info.trace_id,
                "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}},
                "request_time": datetime.fromtimestamp(info.request_time / 1_000, UTC).isoformat(),
                "execution_duration_ms": info.execution_duration,
                "state": str(info.state),
                "tags": info.tags,
                "trace_metadata": info.trace_metadata,
                "request_preview": info.request_preview,
                "response_preview": info.response_preview,
                "assessments": [assessment_json(noted) for noted in info.assessments],
            },
            "data": {"spans": [span.to_dict() for span in self.data.spans]},
        }

    def to_json(self, pretty: bool = False) -> str:  # noqa: FBT001, FBT002 - as in MLflow
        """Return the trace as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2 if pretty else None)

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Read a trace from JSON text."""
        value = read_json(text)
        return cls.from_dict(value if isinstance(value, dict) else {})

    @classmethod
    def from_dict(cls, value: JsonObject) -> Trace:
        """Read a trace of either schema; what is missing stays empty."""
        info, data = _object(value.get("info")), _object(value.get("data"))
        spans = data.get("spans")
        read = [_span(_object(span)) for span in spans] if isinstance(spans, list) else []
        metadata = _object(info.get("trace_metadata") or info.get("request_metadata"))
        root = next((span for span in read if span.parent_id is None), None)
        duration = _whole(info.get("execution_duration_ms") or info.get("execution_time_ms"))
        if duration is None and root is not None and root.end_time_ns is not None:
            duration = (root.end_time_ns - root.start_time_ns) // _NS
        noted = info.get("assessments")
        return cls(
            TraceInfo(
                _text(info.get("trace_id") or info.get("request_id")),
                _milliseconds(info.get("request_time") or info.get("timestamp_ms")),
                duration,
                _text(info.get("state") or info.get("status")).rpartition(".")[2],
                {key: _text(tag) for key, tag in _object(info.get("tags")).items()},
                {key: _text(text) for key, text in metadata.items()},
                _text(info.get("request_preview")) or None,
                _text(info.get("response_preview")) or None,
                [*read_assessments(noted if isinstance(noted, list) else ())],
            ),
            TraceData(read),
        )


def _is_named(span: Span, name: str | re.Pattern[str] | None) -> bool:
    return bool(name.search(span.name)) if isinstance(name, re.Pattern) else name in {None, span.name}


def _span(value: JsonObject) -> Span:
    own = _object(value.get("context")) or value
    attributes = {key: decoded(text) for key, text in _object(value.get("attributes")).items()}
    status = value.get("status")
    code = _object(status).get("code") if isinstance(status, dict) else value.get("status_code") or status
    events = value.get("events")
    return Span(
        _text(value.get("name")),
        _text(own.get("span_id")),
        _text(value.get("parent_span_id") or value.get("parent_id")) or None,
        _text(own.get("trace_id")),
        _whole(value.get("start_time_unix_nano") or value.get("start_time")) or 0,
        _text(attributes.get(_TYPE)) or SpanType.UNKNOWN,
        _whole(value.get("end_time_unix_nano") or value.get("end_time")),
        attributes.get(_INPUTS),
        attributes.get(_OUTPUTS),
        dict(attributes),
        SpanStatus(_text(code).removeprefix("STATUS_CODE_") or "UNSET", _text(_object(status).get("message"))),
        [
            SpanEvent(
                _text(event.get("name")),
                _object(event.get("attributes")),
                _whole(event.get("time_unix_nano") or event.get("timestamp")) or 0,
            )
            for event in map(_object, events if isinstance(events, list) else ())
        ],
    )


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _milliseconds(value: JsonValue) -> int:
    if isinstance(value, str) and not value.isdigit():
        try:
            return int(datetime.fromisoformat(value).timestamp() * 1_000)
        except ValueError:
            return 0
    return _whole(value) or 0


def _whole(value: JsonValue) -> int | None:
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
