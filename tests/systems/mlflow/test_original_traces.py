"""Spans that an installed MLflow records while an agent answers."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from evalmeta.mlflow.entities import Trace
from evalmeta.systems.mlflow.original_traces import original_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

SPANS = [{"name": "agent", "span_id": "1"}, {"name": "model", "span_id": "2", "parent_span_id": "1"}]


@contextmanager
def _known(written: object) -> Iterator[object]:
    yield written and SimpleNamespace(to_mlflow_trace=lambda: SimpleNamespace(to_dict=lambda: written))


def install(monkeypatch: pytest.MonkeyPatch, traces: dict[str, object]) -> list[str]:
    """Install a module with the two members of MLflow that are used; return the names of its spans."""
    started: list[str] = []

    @contextmanager
    def start_span(name: str) -> Iterator[object]:
        started.append(name)
        yield SimpleNamespace(trace_id="tr-1")

    manager = SimpleNamespace(get_trace=lambda trace_id: _known(traces.get(trace_id)))
    mlflow, tracing, managers = (ModuleType(name) for name in ("mlflow", "mlflow.tracing", "mlflow.tracing.managers"))
    mlflow.start_span = start_span  # type: ignore[attr-defined]
    managers.InMemoryTraceManager = SimpleNamespace(get_instance=lambda: manager)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.tracing", tracing)
    monkeypatch.setitem(sys.modules, "mlflow.tracing.trace_manager", managers)
    return started


def test_the_spans_of_mlflow_are_there_when_the_agent_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    started = install(monkeypatch, {"tr-1": {"data": {"spans": SPANS}}})
    with original_trace("desk") as recorded:
        assert recorded == []
    assert started == ["desk"]
    assert [[span.name for span in trace.data.spans] for trace in recorded] == [["agent", "model"]]
    assert isinstance(recorded[0], Trace)


@pytest.mark.parametrize("traces", [{}, {"tr-1": {"data": {"spans": SPANS[:1]}}}], ids=["none", "only the root"])
def test_a_trace_without_spans_of_its_own_adds_nothing(
    monkeypatch: pytest.MonkeyPatch, traces: dict[str, object]
) -> None:
    install(monkeypatch, traces)
    with original_trace("desk") as recorded:
        pass
    assert recorded == []


def test_an_mlflow_with_other_members_and_a_process_without_mlflow_add_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"tr-1": {"data": {"spans": SPANS}}})
    monkeypatch.delattr(sys.modules["mlflow.tracing.trace_manager"], "InMemoryTraceManager")
    with original_trace("desk") as recorded:
        pass
    assert recorded == []
    monkeypatch.delitem(sys.modules, "mlflow")
    with original_trace("desk") as recorded:
        pass
    assert recorded == []
