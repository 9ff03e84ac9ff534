from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import limits
from evalmeta.org.serving.sockets import listen
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE
from org.serving.traced_agent import span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

RECORDINGS = Path(__file__).parents[1] / "traces/recordings"
LANGCHAIN = RECORDINGS / "langchain_openinference.jsonl"
TOKEN = "top-secret"  # noqa: S105 - of no server


class Exporter:
    """Sends requests of OTLP to the port, once it is open."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._thread = Thread()

    def send(self, *bodies: bytes | str, token: str = TOKEN) -> None:
        """Begin to send in another thread."""
        self._thread = Thread(target=self._send, args=(bodies, token))
        self._thread.start()

    def _send(self, bodies: tuple[bytes | str, ...], token: str) -> None:
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        with httpx.Client(transport=httpx.HTTPTransport(retries=9), headers=headers) as client:
            for body in bodies:
                client.post(f"http://127.0.0.1:{self.port}/v1/traces", content=body)

    def join(self) -> None:
        if self._thread.ident:
            self._thread.join()


@pytest.fixture
def exporter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exporter]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    monkeypatch.setattr(limits, "TRACE_QUIET_SECONDS", 0.1)
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    made = Exporter(port)
    yield made
    made.join()


def request(*spans: dict[str, object]) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def turn(utterance: str) -> tuple[str, str]:
    """Return a request with the call of a tool, and one with the span of the agent above it."""
    trace, root = secrets.token_hex(16), secrets.token_hex(8)
    asked = [{"role": "user", "parts": [{"type": "text", "content": utterance}]}]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": "It was sent."}]}]
    tool = span(
        trace,
        root,
        secrets.token_hex(8),
        "execute_tool get_order",
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="get_order",
        gen_ai__tool__call__arguments='{"id": "7"}',
    )
    agent = span(
        trace,
        "",
        root,
        "invoke_agent desk",
        gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="desk",
        gen_ai__input__messages=json.dumps(asked),
        gen_ai__output__messages=json.dumps(answered),
    )
    return request(tool), request(agent)


def recorded(folder: Path) -> list[str]:
    return [json.loads(line)["utterance"] for line in (folder / "received.jsonl").read_text().splitlines()]


def receive(evalmeta: Evalmeta, exporter: Exporter, *words: str) -> Outcome:
    return evalmeta("trace", "receive", "--port", str(exporter.port), *words)


def test_received_traces_are_written_as_those_of_a_file(exporter: Exporter, tmp_path: Path, evalmeta: Evalmeta) -> None:
    exporter.send(*LANGCHAIN.read_text().splitlines())
    received = receive(evalmeta, exporter, "--count", "2", "-o", "received.jsonl", "--to", "received.yaml")
    imported = evalmeta("trace", "import", str(LANGCHAIN), "-o", "imported.jsonl", "--to", "imported.yaml")

    assert (received.code, imported.code) == (0, 0), received.err
    for kind in ("jsonl", "yaml"):
        assert (tmp_path / f"received.{kind}").read_text() == (tmp_path / f"imported.{kind}").read_text()
    assert "order_desk  Where is order 10045?  get_order  41 tokens  0.0" in received.out
    assert f"export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{exporter.port}\n" in received.out
    assert 'export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20$EVALMETA_TRACES_TOKEN"' in received.out
    assert TOKEN not in received.out + received.err


def test_a_token_is_made_and_shown_if_the_environment_has_none(
    exporter: Exporter, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = turn("Where is order 7?")
    monkeypatch.delenv(TOKEN_VARIABLE)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "00" * size)
    exporter.send(*requests, token="00" * 16)
    received = receive(evalmeta, exporter, "--count", "1")
    assert f"export {TOKEN_VARIABLE}={'00' * 16}\n" in received.out
    assert "was refused" not in received.err


@pytest.mark.slow
def test_an_incomplete_trace_is_named_and_not_written(exporter: Exporter, tmp_path: Path, evalmeta: Evalmeta) -> None:
    call, agent = turn("Where is order 7?")
    other, _ = turn("never ends")
    exporter.send(call, agent, other)
    received = receive(evalmeta, exporter, "--count", "2", "--wait", "0.02", "-o", "received.jsonl")

    assert received.code == 69
    trace_id = json.loads(other)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"]
    assert f"trace {trace_id} is incomplete" in received.err
    assert "the wait ended after 1 of 2 turns" in received.err
    assert recorded(tmp_path) == ["Where is order 7?"]


def test_only_incomplete_traces_are_named_too(exporter: Exporter, evalmeta: Evalmeta) -> None:
    exporter.send(turn("never ends")[0])
    received = receive(evalmeta, exporter, "--wait", "0.01")
    assert received.code == 2
    assert "is incomplete: the span of the agent has not arrived" in received.err


def test_no_traces_are_an_error_that_says_what_to_do(exporter: Exporter, evalmeta: Evalmeta) -> None:
    received = receive(evalmeta, exporter, "--wait", "0.001", "-o", "received.jsonl")
    assert received.code == 2
    assert "no traces arrived" in received.err
    assert not Path("received.jsonl").exists()


def test_refused_requests_are_reported_once_and_the_others_are_received(exporter: Exporter, evalmeta: Evalmeta) -> None:
    exporter.send("damaged", "damaged", *turn("Where is order 7?"))
    received = receive(evalmeta, exporter, "--count", "1", "--json")
    assert received.code == 0
    assert received.err.count("a request of an exporter was refused: the request is not valid JSON") == 1
    assert [shown["utterance"] for shown in json.loads(received.out)["result"]["turns"]] == ["Where is order 7?"]


def test_a_missing_content_is_noted_once_with_its_setting(exporter: Exporter, evalmeta: Evalmeta) -> None:
    lines = (RECORDINGS / "adk_2.jsonl").read_text().splitlines()
    exporter.send(*lines, *turn("Where is order 7?"))
    received = receive(evalmeta, exporter, "--count", "2")
    assert received.err.count("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT") == 1, received.err


def test_secrets_are_hidden_when_a_turn_is_shown(exporter: Exporter, evalmeta: Evalmeta) -> None:
    bearer = "Bearer abcdefghijklmnopqrstuvwxyz012345"
    exporter.send(*turn(f"Use {bearer}"))
    received = receive(evalmeta, exporter, "--count", "1")
    assert "desk  Use " in received.out
    assert bearer not in received.out + received.err


def test_a_limit_ends_it_and_is_reported(
    exporter: Exporter, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RECEIVED_SPANS", 2)
    exporter.send(*turn("Where is order 7?"))
    received = receive(evalmeta, exporter)
    assert received.code == 0
    assert "desk  Where is order 7?  get_order" in received.out
    assert "stopped receiving traces: at most 2 spans are kept" in received.err


def test_a_port_in_use_is_an_error(exporter: Exporter, evalmeta: Evalmeta) -> None:
    with listen("127.0.0.1", exporter.port):
        received = receive(evalmeta, exporter)
    assert received.code == 2
    assert "Address already in use" in received.err
    assert "--port" in received.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_what_arrived_is_written(
    exporter: Exporter, tmp_path: Path, number: signal.Signals
) -> None:
    words = ("trace", "receive", "--port", str(exporter.port), "-o", "received.jsonl")
    with subprocess.Popen([sys.executable, "-m", "evalmeta", *words], stdout=-1, stderr=-1, text=True) as command:
        assert command.stdout
        command.stdout.readline()
        exporter.send(*turn("Where is order 7?"))
        exporter.join()
        command.send_signal(number)
        _, errors = command.communicate(timeout=30)
    assert command.returncode == 0, errors
    assert recorded(tmp_path) == ["Where is order 7?"]
