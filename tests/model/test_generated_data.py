from __future__ import annotations

import pytest

from evalmeta.model.generated_data import Action, actions_json

FAILED = Action("find", {"id": 7}, latency_ms=2.5, error="no such order")


def test_actions_are_written_with_an_error_only_if_they_failed() -> None:
    written = actions_json((Action("ask", output=[1], latency_ms=3), FAILED))
    assert written == [
        {"name": "ask", "input": {}, "output": [1]},
        {"name": "find", "input": {"id": 7}, "output": None, "error": "no such order"},
    ]


@pytest.mark.parametrize(("actions", "written"), [(None, None), ((), [])])
def test_unknown_actions_are_written_as_null(actions: tuple[Action, ...] | None, written: list[object] | None) -> None:
    assert actions_json(actions, with_latencies=True) == written


def test_latencies_are_written_where_they_are_wanted() -> None:
    [written] = actions_json((FAILED,), with_latencies=True) or []
    assert written == {"name": "find", "input": {"id": 7}, "output": None, "latency_ms": 2.5, "error": "no such order"}
