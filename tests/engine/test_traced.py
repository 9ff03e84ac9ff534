from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

import pytest

from engine.builders import Agent, MemoryJournal, evaluation, run
from evalmeta import limits
from evalmeta.engine.trace_context import TURN
from evalmeta.engine.traced import TracedSubject, TraceStore
from evalmeta.errors import SubjectUnreachable
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import Verdict
from evalmeta.traces.spans import Span, Telemetry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from evalmeta.model.run import CaseResult


class Source:
    """Traces that come from this process."""

    def __init__(self) -> None:
        self.store = TraceStore()
        self.environment: Mapping[str, str] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRACE_EXPORT_SECONDS", 0.0)


def traced(source: Source, answer: Callable[[str], Awaitable[GeneratedData]], cases: int = 1) -> list[CaseResult]:
    return run(TracedSubject(Agent(answer), source, seconds=0.1), evaluation(cases), retries=1)


def export(source: Source, traceparent: str, *tools: str, agents: tuple[str, ...] = ("desk",)) -> None:
    """Add a trace in which an agent calls tools; all other agents do nothing."""
    _, trace, parent, _ = traceparent.split("-")
    spans = []
    for agent in agents:
        root = secrets.token_hex(8)
        spans.append(span(trace, root, parent, "invoke_agent", agent_name=agent))
        own = tools if agent == agents[0] else ()
        spans += [span(trace, secrets.token_hex(8), root, "execute_tool", tool_name=tool) for tool in own]
    source.store.add(Telemetry(tuple(spans)), size=1_000)


def span(trace: str, span_id: str, parent: str, operation: str, **names: str) -> Span:
    attributes = {f"gen_ai.{key.replace('_', '.')}": name for key, name in names.items()}
    return Span(trace, span_id, parent, operation, 1, 2, {"gen_ai.operation.name": operation, **attributes})


def traceparent() -> str:
    turn = TURN.get()
    assert turn
    return turn.traceparent


def actions_of(result: CaseResult) -> list[str] | None:
    assert result.generated
    done = result.generated.actions
    return None if done is None else [action.name for action in done]


def test_an_answer_that_is_refused_is_an_error_of_its_case_alone() -> None:
    source = Source()

    async def answer(utterance: str) -> GeneratedData:
        export(source, traceparent(), "get_order")
        return GeneratedData("Sent.", 3 if utterance.endswith(" 2") else None)  # type: ignore[arg-type] # a broken adapter

    results = traced(source, answer, cases=3)

    assert [result.verdict is Verdict.ERROR for result in results] == [False, True, False]
    assert [actions_of(results[0]), actions_of(results[2])] == [["get_order"], ["get_order"]]


def test_the_trace_of_an_attempt_that_is_retried_is_not_that_of_the_next() -> None:
    source, attempts = Source(), list[str]()

    async def answer(_: str) -> GeneratedData:
        attempts.append(traceparent())
        if len(attempts) == 1:
            export(source, attempts[0], "cancel_order")
            raise SubjectUnreachable("gone")
        export(source, attempts[0], "cancel_order")
        export(source, attempts[1], "get_order")
        return GeneratedData("Sent.")

    (result,) = traced(source, answer)

    assert len(set(attempts)) == 2
    assert actions_of(result) == ["get_order"]


def test_two_agents_in_one_trace_are_reported() -> None:
    source = Source()

    async def answer(_: str) -> GeneratedData:
        export(source, traceparent(), "get_order", agents=("desk", "watcher"))
        return GeneratedData("Sent.")

    (result,) = traced(source, answer)

    assert any("watcher" in check.explanation or "agents" in check.explanation for check in result.results)


def test_a_trace_that_is_too_large_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TRACE_SPANS", 3)
    source = Source()

    async def answer(_: str) -> GeneratedData:
        export(source, traceparent(), *["get_order"] * 9)
        return GeneratedData("Sent.")

    (result,) = traced(source, answer)

    assert actions_of(result) is None
    assert result.verdict is Verdict.UNDECIDED
    assert "larger than evalmeta keeps" in result.results[0].explanation


def test_a_stopped_run_asks_a_case_again_that_waits_for_its_trace() -> None:
    source, journal = Source(), MemoryJournal()

    async def answer(_: str) -> GeneratedData:
        return GeneratedData("Sent.")

    async def stop() -> None:
        from evalmeta.engine.runner import execute
        from evalmeta.model.run_options import RunOptions

        subject = TracedSubject(Agent(answer), source, seconds=60)
        running = asyncio.create_task(execute(evaluation(3), subject, journal, options=RunOptions()))
        await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.wait({running}, timeout=10)
        assert running.cancelled()

    asyncio.run(stop())
    assert journal.results == []
