from __future__ import annotations

import asyncio
import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import evaluate, limits
from evalmeta.engine.trace_context import TURN
from evalmeta.errors import SettingsError
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.serving.guarded_server import listen
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE, TraceReceiver
from org.serving import traced_agent

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


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["utterance"]
        Thread(target=traced_agent.export, args=(self.headers["traceparent"], asked)).start()
        body = b'{"answer": "It is on its way."}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 512


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_an_endpoint_sends_its_traces_to_the_fixed_port(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://127.0.0.1:{port}/v1/traces")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{TOKEN}")
    with _Server(("127.0.0.1", 0), _Handler) as server:
        Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        agent = {"adapter": "http", "url": url, "traces": True, "trace_port": port}
        cases = [
            {"input": f"order {number}", "actions": [{"name": "get_order", "input": {"id": f"{number}"}}]}
            for number in range(count)
        ]
        run = evaluate(cases, agent, options=RunOptions(concurrency=count))
        server.shutdown()
    assert [verdict for verdict, _ in verdicts(run)] == [Verdict.PASS] * count


def test_secrets_in_a_trace_are_redacted(tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").write_text("[redact]\npatterns = ['4711']\n")
    command = [sys.executable, str(Path(traced_agent.__file__))]
    run = evaluate([{"input": "order 4711", "actions": ["get_order"]}], {**AGENT, "command": command}, root=tmp_path)
    generated = run.run.cases[0].generated
    assert generated
    assert [action.input for action in generated.actions or ()] == [{"id": "[secret]"}]
    assert "4711" not in str(generated.trace)


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
