from __future__ import annotations

import asyncio
import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import evaluate, limits
from evalmeta.engine.trace_context import TURN
from evalmeta.errors import SettingsError
from evalmeta.model.run import Verdict
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE, TraceReceiver

if TYPE_CHECKING:
    from evalmeta import FinishedRun

AGENT = {"adapter": "command", "command": [sys.executable, "traced_agent.py"], "traces": True}
REQUEST = {"resourceSpans": []}
TOKEN = "top-secret"  # noqa: S105 - of no server


def asked(*questions: str) -> FinishedRun:
    """Ask the agent, of which each case expects its own order in the action."""
    cases = [
        {"input": question, "actions": [{"name": "get_order", "input": {"id": question.partition(" ")[2]}}]}
        for question in questions
    ]
    return evaluate(cases, AGENT, root=Path(__file__).parent)


def verdicts(run: FinishedRun) -> list[tuple[Verdict, str]]:
    cases = sorted(run.run.cases, key=lambda case: case.number)
    return [(case.results[0].verdict, case.results[0].explanation) for case in cases]


def test_what_an_agent_did_comes_from_the_trace_of_its_own_case() -> None:
    run = asked(*(f"order {number}" for number in range(12)))
    assert [verdict for verdict, _ in verdicts(run)] == [Verdict.PASS] * 12
    generated = run.run.cases[0].generated
    assert generated
    assert generated.topic == "desk"
    assert [(action.name, action.output) for action in generated.actions or ()] == [("get_order", "sent")]


def test_a_turn_has_its_own_trace() -> None:
    turns = [
        {"input": "order 1", "actions": [{"name": "get_order", "input": {"id": "1"}}]},
        {"input": "order 2", "actions": [{"name": "get_order", "input": {"id": "2"}}]},
    ]
    (case,) = evaluate([{"turns": turns}], AGENT, root=Path(__file__).parent).run.cases
    assert [result.verdict for result in case.results] == [Verdict.PASS, Verdict.PASS]
    assert [len(turn.generated.actions or ()) for turn in case.earlier] == [1]


def test_what_only_a_missing_trace_could_say_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRACE_SECONDS", 0.3)
    silent, foreign, endless = verdicts(asked("silent 1", "foreign 2", "endless 3"))
    assert {silent[0], foreign[0], endless[0]} == {Verdict.UNDECIDED}
    assert "no span of the turn arrived; let the agent export its traces" in silent[1]
    assert "no span of the turn arrived" in foreign[1]
    assert "the root span of the turn has not ended within 0.3 s" in endless[1]


def test_no_actions_is_not_passed_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRACE_SECONDS", 0.1)
    run = evaluate([{"input": "silent 1", "actions": []}], AGENT, root=Path(__file__).parent)
    assert [verdict for verdict, _ in verdicts(run)] == [Verdict.UNDECIDED]


def test_what_the_agent_says_itself_counts_and_a_contradiction_is_reported() -> None:
    ((verdict, why),) = verdicts(asked("other 1"))
    assert verdict is Verdict.FAILURE
    assert "the trace has other actions than the answer, whose actions count: get_order" in why


def test_the_trace_of_a_turn_ends_with_it() -> None:
    asked("order 1")
    assert TURN.get() is None


def test_bad_requests_are_refused_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", 10_000)
    body = json.dumps(REQUEST).encode()
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    bomb = gzip.compress(b" " * 20_000)

    async def main() -> list[int]:
        receiver = TraceReceiver(0, TOKEN)
        await receiver.start()
        url = receiver.environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
        async with httpx.AsyncClient(trust_env=False) as client:
            replies = [
                await client.post(url, content=body, headers=headers),
                await client.post(url, content=gzip.compress(body), headers=headers | {"content-encoding": "gzip"}),
                await client.post(url, content=b"", headers=headers | {"content-type": "application/x-protobuf"}),
                await client.post(url, content=body, headers={"content-type": "application/json"}),
                await client.post(url, content=body, headers=headers | {"authorization": "Bearer other"}),
                await client.post(url, content=body, headers=headers | {"host": "agents.example.com"}),
                await client.post(url, content=body[:-3], headers=headers),
                await client.post(
                    url, content=b"\xff\xff", headers=headers | {"content-type": "application/x-protobuf"}
                ),
                await client.post(url, content=bomb, headers=headers | {"content-encoding": "gzip"}),
            ]
        await receiver.stop()
        return [reply.status_code for reply in replies]

    assert asyncio.run(main()) == [200, 200, 200, 401, 401, 403, 400, 400, 400]


def test_an_agent_that_runs_elsewhere_needs_a_port_and_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = {"adapter": "http", "url": "http://127.0.0.1:9/", "traces": True}
    with pytest.raises(SettingsError, match="needs a fixed port") as without_port:
        evaluate([{"input": "Hi", "contains": "Hi"}], agent)
    assert "trace_port = 4318" in without_port.value.actions[0]
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with pytest.raises(SettingsError, match=TOKEN_VARIABLE) as without_token:
        evaluate([{"input": "Hi", "contains": "Hi"}], {**agent, "trace_port": 4318})
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318" in without_token.value.actions[1]
