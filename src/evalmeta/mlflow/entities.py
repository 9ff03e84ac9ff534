"""MLflow's entities: feedback and expectations with their sources, and traces with their spans."""

from __future__ import annotations

from evalmeta.systems.mlflow.assessments import (
    AssessmentError,
    AssessmentSource,
    AssessmentSourceType,
    Expectation,
    Feedback,
)
from evalmeta.systems.mlflow.delegation import member_of
from evalmeta.systems.mlflow.entities import (
    Document,
    Span,
    SpanEvent,
    SpanStatus,
    SpanType,
    Trace,
    TraceData,
    TraceInfo,
    TraceState,
)

__all__ = [
    "AssessmentError",
    "AssessmentSource",
    "AssessmentSourceType",
    "Document",
    "Expectation",
    "Feedback",
    "Span",
    "SpanEvent",
    "SpanStatus",
    "SpanType",
    "Trace",
    "TraceData",
    "TraceInfo",
    "TraceState",
]


def __getattr__(name: str) -> object:
    return member_of("entities", name)
