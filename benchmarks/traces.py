"""Reading traces against parsing the same protobuf, and runs with traces against the same runs without them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evalmeta.traces.otlp import read_request
from evalmeta.traces.spans import traces_of
from evalmeta.traces.turns import read_turn
from rows import Goal, Result, Row, seconds
from timing import Usage, compare, of_process, of_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

MILLISECOND: Final = 1_000_000
STEP: Final = 40 * MILLISECOND
AGENT: Final = Path(__file__).with_name("traced_agent.py")
ENVIRONMENT: Final = {**os.environ, "EVALMETA_TRACES_TOKEN": "of no server"}


def measure(*, rounds: int, traces: int, calls: int) -> Result:
    body, spans = make_request(traces, calls)

    def ours() -> None:
        turns = [read_turn(trace) for trace in traces_of([read_request(body)])]
        assert [len(turn.actions or ()) for turn in turns if turn] == [calls] * traces

    pair = compare(
        lambda: of_work(ours), lambda: of_work(lambda: ExportTraceServiceRequest.FromString(body)), rounds=rounds
    )
    speeds = (f"{spans / usage.cpu:,.0f} spans/s" for usage in (pair.ours, pair.other))
    return Result(*speeds, pair.ratio.cpu, f"{len(body) / 1e6:,.1f} MB")


def make_request(traces: int, calls: int) -> tuple[bytes, int]:
    """Return traces as one request, and the number of their spans: an agent whose model asks for one call at a time.

    Each call of the model gets the last exchanges of the conversation, as an agent does that keeps it short.
    """
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number in range(traces):
        add_trace(spans, number, calls)
    return request.SerializeToString(), len(spans)


def add_trace(spans: Sequence[Span], number: int, calls: int) -> None:
    messages = [message("user", {"type": "text", "content": f"Where are the orders of customer {number}?"})]
    add_span(spans, number, 0, "invoke_agent desk", calls * 2 + 1, {"gen_ai.agent.name": "desk"})
    for call in range(calls):
        named = {"id": f"call_{call}", "name": "find_order", "arguments": {"id": str(call)}}
        asked = message("assistant", {"type": "tool_call", **named})
        add_chat(spans, number, call * 2 + 1, messages, asked)
        result = {"id": str(call), "state": "sent", "lines": [f"line {line} of the order" for line in range(10)]}
        said = {
            "gen_ai.tool.name": "find_order",
            "gen_ai.tool.call.id": f"call_{call}",
            "gen_ai.tool.call.arguments": json.dumps(named["arguments"]),
            "gen_ai.tool.call.result": json.dumps(result),
        }
        add_span(spans, number, call * 2 + 2, "execute_tool find_order", 1, said)
        response = message("tool", {"type": "tool_call_response", "id": f"call_{call}", "response": result})
        messages = [*messages[-4:], asked, response]
    answer = message("assistant", {"type": "text", "content": "They were sent to Paris."})
    add_chat(spans, number, calls * 2 + 1, messages, answer)


def add_chat(spans: Sequence[Span], trace: int, place: int, messages: Sequence[object], answer: object) -> None:
    said = {
        "gen_ai.request.model": "small",
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps([answer]),
    }
    span = add_span(spans, trace, place, "chat small", 1, said)
    for name, tokens in (("input", 900), ("output", 30)):
        counted = span.attributes.add(key=f"gen_ai.usage.{name}_tokens")
        counted.value.int_value = tokens


def add_span(spans: Sequence[Span], trace: int, place: int, name: str, steps: int, said: dict[str, str]) -> Span:
    """Add a span that begins after those before it; the first of a trace is around all others."""
    start = 10**18 + trace * MILLISECOND + place * STEP
    span: Span = spans.add(  # type: ignore[attr-defined] # a repeated field of protobuf
        trace_id=(trace + 1).to_bytes(16, "big"),
        span_id=(place + 1).to_bytes(8, "big"),
        parent_span_id=(1).to_bytes(8, "big") if place else b"",
        name=name,
        start_time_unix_nano=start,
        end_time_unix_nano=start + steps * STEP,
    )
    for key, value in {"gen_ai.operation.name": name.partition(" ")[0], **said}.items():
        span.attributes.add(key=key).value.string_value = value
    return span


def message(role: str, part: object) -> dict[str, object]:
    return {"role": role, "parts": [part]}


@contextmanager
def open_project(*, cases: int, answer_seconds: float, concurrency: int) -> Iterator[Path]:
    """Make a folder with the same test twice, of an agent in a process of its own: with its traces and without."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = (sys.executable, str(AGENT), str(answer_seconds), str(port))
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(command, env=ENVIRONMENT, stdout=-1) as agent:
        try:
            assert agent.stdout
            url = f'adapter = "http"\nurl = "http://127.0.0.1:{agent.stdout.readline().decode().strip()}/"\n'
            traced = f"[subjects.traced]\n{url}traces = true\ntrace_port = {port}\n"
            plain = f'[subjects.plain]\n{url}actions = "$.actions"\n'
            Path(name, "evalmeta.toml").write_text(f"{traced}{plain}[run]\nconcurrency = {concurrency}\n")
            checks = "actions: [find_order], contains: Paris"
            tests = "".join(f"- {{input: Where is order {number}?, {checks}}}\n" for number in range(cases))
            for subject in ("traced", "plain"):
                Path(name, f"{subject}.yaml").write_text(f"subject: {subject}\ntestCases:\n{tests}")
            yield Path(name)
        finally:
            agent.kill()


def measure_run(*, rounds: int, cases: int, answer_seconds: float, concurrency: int) -> Result:
    """Return the time of a run whose actions are read from traces, over that of one whose agent returns them."""
    with open_project(cases=cases, answer_seconds=answer_seconds, concurrency=concurrency) as folder:

        def run(subject: str) -> Usage:
            command = (sys.executable, "-m", "evalmeta", "run", f"{subject}.yaml")
            return of_process(*command, cwd=folder, env=ENVIRONMENT)

        return seconds(compare(lambda: run("traced"), lambda: run("plain"), rounds=rounds))


ROWS = (
    Row(
        "traces-run",
        "`evalmeta run` with `traces = true`, {cases} cases of {answer_seconds} s, concurrency {concurrency}",
        "the same run without traces; the agent returns its actions",
        measure_run,
        {"cases": 200, "answer_seconds": 0.5, "concurrency": 40, "rounds": 5},
        {"cases": 4, "answer_seconds": 0.01, "concurrency": 2, "rounds": 1},
        Goal("at most", 1.1),
    ),
    Row(
        "traces-many",
        "read {traces:,} traces of agents with {calls} calls of tools",
        "protobuf: parsing the same bytes",
        measure,
        {"traces": 1_000, "calls": 3, "rounds": 5},
        {"traces": 2, "calls": 3, "rounds": 1},
        Goal("at most", 300),
        clock="CPU",
    ),
    Row(
        "traces-long",
        "read a trace of an agent with {calls:,} calls of tools",
        "protobuf: parsing the same bytes",
        measure,
        {"traces": 1, "calls": 3_000, "rounds": 3},
        {"traces": 1, "calls": 5, "rounds": 1},
        Goal("at most", 120),
        clock="CPU",
    ),
)
