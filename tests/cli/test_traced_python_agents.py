from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.traces.otlp import read_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome
    from evalmeta.traces.spans import Span

    Evalmeta = Callable[..., Outcome]

AGENT = """
import json
from opentelemetry import trace

def answer(question):
    tracer = trace.get_tracer("shop")
    order = question.split()[-1]
    with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent",
                                                                  "gen_ai.agent.name": "desk"}):
        with tracer.start_as_current_span("execute_tool", attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_order",
            "gen_ai.tool.call.arguments": json.dumps({"id": order}), "gen_ai.tool.call.result": "call 555-01"}):
            pass
        if order == "4711":
            raise KeyError("no such order")
    return "It is on its way."
"""
TESTS = """
subject: desk
testCases:
- input: order 1
  actions: [{name: get_order, input: {id: "1"}}]
- turns:
  - input: order 2
    actions: [get_order]
  - input: order 4711
    actions: []
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Evalmeta) -> Outcome:
    """Ask an agent of the project in the current folder, which records spans; its last turn raises an exception."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "desk.yaml").write_text(TESTS)
    (tmp_path / "evalmeta.toml").write_text(
        '[subjects.desk]\nadapter = "python"\ntarget = "shop:answer"\ntraces = true\n[redact]\npatterns = ["555-01"]\n'
    )
    return evalmeta("run", "desk.yaml")


def test_the_steps_of_a_turn_that_ended_in_an_error_are_shown(run: Outcome, evalmeta: Evalmeta) -> None:
    assert run.code == 1, run.out + run.err
    shown = evalmeta("test", "results", "latest", "-v").out
    assert "no such order" in shown
    assert "agent desk" in shown
    assert 'tool get_order(id="4711")' in shown


def test_json_has_the_steps_of_an_error_and_no_answer(run: Outcome, evalmeta: Evalmeta) -> None:
    assert run.code == 1
    (stored,) = json.loads(evalmeta("test", "results", "latest", "--json").out)["result"]
    first, second = stored["testCases"]
    assert (first["verdict"], "unanswered" in first) == ("PASS", False)
    assert (second["verdict"], second["generatedData"]["outcome"]) == ("ERROR", None)
    assert second["unanswered"]["trace"]["steps"][0]["name"] == "desk"
    lines = [
        json.loads(line) for line in evalmeta("test", "results", "latest", "--result-format", "jsonl").out.splitlines()
    ]
    (action,) = lines[1]["unanswered"]["actions"]
    assert (action["name"], action["output"]) == ("get_order", "call [secret]")
    assert lines[1]["outcome"] is None


def test_an_error_stays_one_when_it_is_judged_again_and_keeps_its_steps(run: Outcome, evalmeta: Evalmeta) -> None:
    assert run.code == 1
    assert evalmeta("test", "rescore", "latest").code == 1
    assert "tool get_order" in evalmeta("test", "results", "latest", "-v").out


def turns_in(file: str) -> list[Span]:
    telemetry = read_file(Path(file).read_bytes(), label=file)
    return [span for one in telemetry for span in one.spans if span.name.startswith("invoke_agent")]


def verdicts_in(file: str) -> set[tuple[str, str]]:
    telemetry = read_file(Path(file).read_bytes(), label=file)
    return {(log.trace_id, log.span_id) for one in telemetry for log in one.logs}


SPANS_OF_AGENT = """
import os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace import SpanProcessor

class Exporter(SpanProcessor):
    def on_end(self, span):
        # The processor stays until the process ends.
        if (file := os.environ.get("SHOP_SPANS")) and span.parent and span.parent.is_remote:
            with open(file, "a") as spans:
                spans.write(f"{span.parent.trace_id:032x} {span.parent.span_id:016x}\\n")

if not hasattr(trace.get_tracer_provider(), "add_span_processor"):
    trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(Exporter())
"""


def test_an_exported_turn_and_the_spans_that_the_agent_exports_are_one_trace(
    run: Outcome, evalmeta: Evalmeta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run.code == 1
    monkeypatch.setenv("SHOP_SPANS", str(tmp_path / "spans.txt"))
    (tmp_path / "shop.py").write_text(AGENT.replace("\nimport json", f"\nimport json{SPANS_OF_AGENT}"))
    assert evalmeta("run", "desk.yaml", "--trace", "run.jsonl").code == 1
    parents = {tuple(line.split()) for line in (tmp_path / "spans.txt").read_text().splitlines()}
    turns = turns_in("run.jsonl")
    assert {(turn.trace_id, turn.span_id) for turn in turns} == parents
    assert len(parents) == 3
    assert {turn.parent_id for turn in turns} == {""}
    assert verdicts_in("run.jsonl") < parents


def test_answers_that_are_judged_again_have_spans_of_their_own(run: Outcome, evalmeta: Evalmeta) -> None:
    assert run.code == 1
    evalmeta("test", "results", "latest", "--trace", "first.jsonl")
    evalmeta("test", "rescore", "latest")
    evalmeta("test", "results", "latest", "--trace", "again.jsonl")
    first, again = ({span.span_id for span in turns_in(file)} for file in ("first.jsonl", "again.jsonl"))
    # An error that is judged again has no earlier turns.
    assert (len(first), len(again), first & again) == (3, 2, set())


def test_an_exported_run_with_the_traces_of_its_turns_has_the_same_verdicts_after_the_import(
    run: Outcome, evalmeta: Evalmeta, tmp_path: Path
) -> None:
    assert run.code == 1
    evalmeta("test", "results", "latest", "--trace", "run.jsonl", "--report", "first.jsonl")
    read = evalmeta("trace", "import", "run.jsonl", "-o", "recordings.jsonl", "-v")
    assert read.code == 0, read.err
    assert "tool get_order" in read.out[read.out.index("order 4711") :]
    (tmp_path / "evalmeta.toml").write_text('[subjects.recorded]\nadapter = "replay"\nfile = "recordings.jsonl"\n')
    evalmeta("run", "desk.yaml", "--agent", "recorded", "--report", "second.jsonl")
    first, second = (
        [json.loads(line)["verdict"] for line in Path(file).read_text().splitlines()]
        for file in ("first.jsonl", "second.jsonl")
    )
    assert first == second == ["PASS", "ERROR"]
