from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import evaluate, evaluate_async, limits
from evalmeta.engine.trace_context import TURN
from evalmeta.engine.traced import TraceStore
from evalmeta.errors import SettingsError
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.serving.sockets import listen
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE, TraceReceiver
from org.serving import traced_agent
from org.serving.traced_endpoint import TOKEN, Endpoint, endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta import FinishedRun
    from evalmeta.model.run import CaseResult

AGENT = {"adapter": "command", "command": [sys.executable, "traced_agent.py"], "traces": True}
REQUEST = {"resourceSpans": []}


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


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Serves an agent that runs elsewhere, for evalmeta."""
    with endpoint(monkeypatch) as server:
        yield server


def orders(*numbers: int) -> list[dict[str, object]]:
    return [
        {"input": f"order {number}", "actions": [{"name": "get_order", "input": {"id": f"{number}"}}]}
        for number in numbers
    ]


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_an_endpoint_sends_its_traces_to_the_fixed_port(count: int, desk: Endpoint) -> None:
    run = evaluate(orders(*range(count)), desk.settings, options=RunOptions(concurrency=count))
    assert [verdict for verdict, _ in verdicts(run)] == [Verdict.PASS] * count


def test_runs_at_the_same_time_share_the_fixed_port_and_each_has_its_own_traces(desk: Endpoint) -> None:
    async def both() -> list[FinishedRun]:
        runs = (evaluate_async(orders(*numbers), desk.settings) for numbers in (range(6), range(6, 12)))
        return await asyncio.gather(*runs)

    assert [verdict for run in asyncio.run(both()) for verdict, _ in verdicts(run)] == [Verdict.PASS] * 12


def test_a_fixed_port_is_free_again_after_a_run(desk: Endpoint) -> None:
    runs = [evaluate(orders(number), desk.settings) for number in (1, 2)]
    assert [verdict for run in runs for verdict, _ in verdicts(run)] == [Verdict.PASS] * 2


def test_a_port_in_use_is_one_error_before_the_first_question(desk: Endpoint) -> None:
    with listen("127.0.0.1", desk.trace_port), pytest.raises(SettingsError, match="Address already in use") as error:
        evaluate(orders(1, 2), desk.settings)
    assert f"trace_port {desk.trace_port}" in str(error.value)
    assert "another run of the agent" in error.value.actions[0]
    assert desk.asked == []


def test_a_run_in_another_thread_cannot_use_the_same_port(desk: Endpoint) -> None:
    desk.seconds = 0.3
    first = Thread(target=lambda: runs.append(evaluate(orders(1), desk.settings)))
    runs: list[FinishedRun] = []
    first.start()
    while not desk.asked:
        time.sleep(0.005)
    with pytest.raises(SettingsError, match="in another thread"):
        evaluate(orders(2), desk.settings)
    first.join()
    assert [verdict for verdict, _ in verdicts(runs[0])] == [Verdict.PASS]


def test_requests_that_are_refused_do_not_stop_the_run_and_are_reported_where_a_trace_is_missing(
    desk: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRACE_SECONDS", 0.5)
    cases = [{"input": f"{kind} 1", "actions": ["get_order"]} for kind in ("lost", "damaged", "order")]
    lost, *others = verdicts(evaluate(cases, desk.settings))
    assert [verdict for verdict, _ in others] == [Verdict.PASS, Verdict.PASS]
    assert lost[0] is Verdict.UNDECIDED
    assert "6 requests were refused, the last because" in lost[1]


@pytest.mark.slow
def test_a_resumed_run_asks_only_the_missing_cases_and_reads_their_own_traces(
    desk: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRACE_EXPORT_SECONDS", 0.02)
    desk.seconds = 0.1
    kept: set[int] = set()

    def stop(results: Sequence[CaseResult]) -> None:
        kept.update(result.number for result in results)
        raise InterruptedError

    options = RunOptions(concurrency=2)
    with pytest.raises(InterruptedError):
        evaluate(orders(*range(12)), desk.settings, options=options, on_results=stop, journal=tmp_path)
    before, desk.asked = len(desk.asked), []
    run = evaluate(orders(*range(12)), desk.settings, options=options, journal=tmp_path)
    assert [verdict for verdict, _ in verdicts(run)] == [Verdict.PASS] * 12
    assert before < 12
    assert sorted(desk.asked) == sorted(f"order {number}" for number in range(12) if number + 1 not in kept)


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
    monkeypatch.setattr(limits, "MAX_SOAP_BYTES", 5_000)
    body = json.dumps(REQUEST).encode()
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    protobuf = headers | {"content-type": "application/x-protobuf"}
    requests = (
        (200, body, headers),
        (200, gzip.compress(body), headers | {"content-encoding": "gzip"}),
        (200, b"", protobuf),
        (401, body, {"content-type": "application/json"}),
        (401, body, headers | {"authorization": "Bearer other"}),
        (403, body, headers | {"host": "agents.example.com"}),
        (400, body[:-3], headers),
        (400, b"\xff\xff", protobuf),
        (400, gzip.compress(body)[:-9], headers | {"content-encoding": "gzip"}),
        (400, gzip.compress(b" " * 20_000), headers | {"content-encoding": "gzip"}),
        (413, b" " * 5_001, headers),
    )
    store = TraceStore()

    async def main() -> list[int]:
        receiver = TraceReceiver(0, TOKEN, store)
        url = receiver.environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
        async with httpx.AsyncClient(trust_env=False) as client:
            replies = [await client.post(url, content=body, headers=headers) for _, body, headers in requests]
        await receiver.stop()
        return [reply.status_code for reply in replies]

    assert asyncio.run(main()) == [status for status, *_ in requests]
    assert store.refused == sum(status >= 400 for status, *_ in requests)


def test_an_agent_that_runs_elsewhere_needs_a_port_and_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = {"adapter": "http", "url": "http://127.0.0.1:9/", "traces": True}
    with pytest.raises(SettingsError, match="needs a fixed port") as without_port:
        evaluate([{"input": "Hi", "contains": "Hi"}], agent)
    assert "trace_port = 4318" in without_port.value.actions[0]
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with pytest.raises(SettingsError, match=TOKEN_VARIABLE) as without_token:
        evaluate([{"input": "Hi", "contains": "Hi"}], {**agent, "trace_port": 4318})
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318" in without_token.value.actions[1]
