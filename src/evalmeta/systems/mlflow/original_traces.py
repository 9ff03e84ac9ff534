"""Spans that an installed MLflow records while predict_fn answers, such as those of `autolog`."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, cast

from evalmeta.systems.mlflow.entities import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from evalmeta.model.json_value import JsonObject


@contextmanager
def original_trace(called: str) -> Iterator[list[Trace]]:
    """Yield a list that has the trace of MLflow itself at the end, if the process uses MLflow and it has any spans."""
    recorded: list[Trace] = []
    with _root_span(called) as root:
        yield recorded
        if root is not None:
            recorded += _recorded(root)


@contextmanager
def _root_span(called: str) -> Iterator[object]:
    # Nothing is imported that the agent did not bring.
    start_span = getattr(sys.modules.get("mlflow"), "start_span", None)
    if start_span is None:
        yield None
        return
    with cast("AbstractContextManager[object]", start_span(called)) as root:
        yield root


def _recorded(root: object) -> Iterator[Trace]:
    """Yield the trace to which the root belongs, unless it has no other spans; the root has not ended."""
    with suppress(ImportError, AttributeError):
        # The trace is read before MLflow sends it to its server, which may take long.
        manager = import_module("mlflow.tracing.trace_manager").InMemoryTraceManager.get_instance()
        with manager.get_trace(getattr(root, "trace_id", "")) as known:
            trace = Trace.from_dict(cast("JsonObject", known.to_mlflow_trace().to_dict())) if known else None
        if trace is not None and len(trace.data.spans) > 1:
            yield trace


def with_spans(trace: Trace, original: Trace) -> Trace:
    """Return a trace with the spans of another below its root, whose place it takes."""
    [root, *_] = trace.data.spans
    ids = {span.span_id: root.span_id for span in original.data.spans if span.parent_id is None}
    spans = [
        replace(span, trace_id=trace.info.trace_id, parent_id=ids.get(span.parent_id, span.parent_id))
        for span in original.data.spans
        if span.parent_id is not None
    ]
    metadata = {**original.info.trace_metadata, **trace.info.trace_metadata}
    return Trace(replace(trace.info, trace_metadata=metadata), replace(trace.data, spans=[*trace.data.spans, *spans]))
