"""`evalmeta trace receive`: the traces of agents that run elsewhere, as they arrive."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.commands.trace_turns import files_options, write_turns
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.options import IntRange
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import json_option, note, warn
from evalmeta.errors import EXIT_WAIT_RAN_OUT, NotFound
from evalmeta.report.text import clean, count, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.api.trace_receiving import Exporter, ReceivedTraces
    from evalmeta.cli.commands.trace_turns import TraceFiles
    from evalmeta.traces.turns import TracedTurn

# The port of OTLP over HTTP.
_PORT: Final = 4318
_UTTERANCE_CHARS: Final = 60
_MS: Final = 1_000.0


@click.command()
@click.option("--port", type=IntRange(0, 65535), default=_PORT, show_default=True, help="0 uses any free port.")
@files_options
@click.option("--text", default="", help="Write only turns whose utterance contains this text.")
@click.option("--last", type=click.IntRange(min=1), help="Write only the last turns.")
@click.option("--count", "turns", type=click.IntRange(min=1), metavar="N", help="End after N turns of agents.")
@wait_option("until Ctrl-C")
@click.option("-v", "--verbose", is_flag=True, help="At the end, show all turns as `trace import -v` does.")
@json_option
def receive(
    *,
    port: int,
    files: TraceFiles,
    text: str,
    last: int | None,
    turns: int | None,
    wait: float | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Receive traces of agents as they run, and write them as tests.

    evalmeta listens on this machine for OTLP over HTTP, and prints the environment variables that an agent's exporter
    needs. Each turn of an agent is shown on a line when its trace has arrived. Ctrl-C ends the command, which then
    writes what it has received, as `trace import` does: with -o as recorded answers, with --to as test cases.
    Exporters need the token in EVALMETA_TRACES_TOKEN; without this variable, evalmeta makes a token and prints it.

    \b
    evalmeta trace receive
    evalmeta trace receive -o recordings.jsonl
    evalmeta trace receive --to tests/orders.yaml --agent My_Agent --count 20
    """
    files.check()
    display = _Display(as_json=as_json)
    received = run_async(
        api.trace_receiving.receive_traces(
            port=port,
            on_start=display.show_exporter,
            on_turn=display.show_turn,
            on_refusal=display.show_refusal,
            turns=turns,
            seconds=wait,
            folder=Path.cwd(),
        )
    )
    if not received.traces:
        raise NotFound(
            "no traces arrived",
            actions=["Start the agent with the variables above. It must export spans with OTLP over HTTP."],
        )
    try:
        found = api.traces.turns_of(received.traces, hide=api.traces.hiding(Path.cwd()))
    except NotFound:
        for remark in _remarks(received, ()):
            warn(remark)
        raise
    display.show_others(found.turns)
    chosen = api.trace_tests.TurnFilter(text=text, last=last).choose(found.turns)
    remarks = list(_remarks(received, found.turns))
    write_turns(found, chosen, files, as_json=as_json, verbose=True if verbose else None, remarks=remarks)
    if received.is_late:
        warn(f"the wait ended after {len(found.turns)} of {turns} turns")
        sys.exit(EXIT_WAIT_RAN_OUT)


def _remarks(received: ReceivedTraces, turns: tuple[TracedTurn, ...]) -> Iterator[str]:
    for trace_id in received.incomplete(turns):
        yield f"trace {trace_id} is incomplete: the span of the agent has not arrived; it is not written"
    if received.why_ended:
        rest = f"; {count(received.left_out, 'span')} left out" if received.left_out else ""
        yield f"evalmeta stopped receiving traces: {received.why_ended}{rest}; to receive more, run it again"


class _Display:
    """Shows turns as they arrive: on stdout, or on stderr if that has one JSON object."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._shown: set[tuple[str, int | None]] = set()
        self._said: set[str] = set()

    def _print(self, text: str) -> None:
        click.echo(text, err=self._as_json)
        sys.stdout.flush()

    def show_exporter(self, exporter: Exporter) -> None:
        """Say how agents reach the receiver."""
        from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE

        token = f"export {TOKEN_VARIABLE}={exporter.token}\n" if exporter.token else ""
        self._print(f"Receiving traces at {exporter.url}. Start the agent in a shell with these variables:\n")
        self._print("".join(f"  {line}\n" for line in f"{token}{exporter.lines}".splitlines()))
        note("Ctrl-C ends it.")

    def show_turn(self, turn: TracedTurn) -> None:
        """Show a turn on one line, and each finding once."""
        self._shown.add((turn.trace_id, turn.case))
        self._print(f"{time.strftime('%H:%M:%S')}  {_summary(turn)}")
        for finding in turn.findings:
            self._say_once(f"note: {finding}")

    def show_others(self, turns: tuple[TracedTurn, ...]) -> None:
        """Show the turns whose traces have arrived since."""
        for turn in turns:
            if (turn.trace_id, turn.case) not in self._shown:
                self.show_turn(turn)

    def show_refusal(self, why: str) -> None:
        """Say why requests are refused, each reason once."""
        self._say_once(f"Warning: a request of an exporter was refused: {why}")

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            note(text)


def _summary(turn: TracedTurn) -> str:
    tools = "tools unknown" if turn.actions is None else ", ".join(action.name for action in turn.actions) or "no tools"
    utterance = "utterance unknown" if turn.utterance is None else one_line(turn.utterance, chars=_UTTERANCE_CHARS)
    parts = [turn.topic or "agent unknown", utterance, tools]
    if turn.tokens is not None:
        parts.append(f"{(turn.tokens.input or 0) + (turn.tokens.output or 0):,} tokens")
    if turn.latency_ms is not None:
        parts.append(seconds(turn.latency_ms / _MS))
    if turn.error is not None:
        parts.append(f"error: {one_line(turn.error, chars=_UTTERANCE_CHARS)}")
    return clean("  ".join(parts))
