"""`evalmeta trace`: what traces of OpenTelemetry say of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.groups import FullHelpGroup
from evalmeta.cli.options import PATH
from evalmeta.cli.output import json_option, note, print_json, warn
from evalmeta.package.files import shown
from evalmeta.report.steps import STEPS_LABEL, steps_text
from evalmeta.report.text import LINE_CHARS, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.traces.turns import TracedTurn

_UNKNOWN: Final = "unknown"
_VALUE_CHARS: Final = 14  # the column in which values begin


@click.group(cls=FullHelpGroup)
def trace() -> None:
    """Read traces of OpenTelemetry: what an agent was asked, did and answered."""


@trace.command("import")
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
@click.option("-o", "--output", type=PATH, help="Write the turns as recorded answers (JSON Lines).")
@click.option("-v", "--verbose", is_flag=True, help="Also show where in the trace each value was found, and the steps.")
@json_option
def import_traces(*, files: tuple[Path, ...], output: Path | None, verbose: bool, as_json: bool) -> None:
    """Show the turns in files of traces, and write them as recorded answers.

    FILE is a file of an OpenTelemetry exporter: a request of OTLP as protobuf or JSON, or JSON Lines of requests, also
    compressed with gzip. evalmeta reads the GenAI conventions, OpenInference, OpenLLMetry and MLflow. Values that are
    not in the trace are unknown. With -o, the adapter `replay` answers with the recorded answers, so that tests judge
    them without asking the agent. Secrets are hidden.

    \b
    evalmeta trace import traces.jsonl
    evalmeta trace import traces.jsonl -o recordings.jsonl
    """
    found = api.traces.import_traces(files)
    written = api.traces.write_recordings(output, found.turns) if output else 0
    warnings = _shared_warnings(found.turns) if output else []
    if as_json:
        turns = [api.traces.turn_json(turn) for turn in found.turns]
        print_json({"turns": turns, "otherTraces": found.others, "written": written}, warnings=warnings)
        return
    for number, turn in enumerate(found.turns, 1):
        click.echo("\n".join(_lines(number, turn, verbose=verbose)) + "\n")
    if found.others:
        note(f"{count(found.others, 'trace')} not of an agent or a model.")
    for text in warnings:
        warn(text)
    if output:
        _say_how_to_judge(output, written, len(found.turns))


def _shared_warnings(turns: Sequence[TracedTurn]) -> list[str]:
    if not (shared := api.traces.count_shared(turns)):
        return []
    asked = f"{count(shared, 'utterance')} in the same case of several runs"
    way_out = "Export each run to its own file: evalmeta test results --job-id RUN --trace FILE"
    return [f"{asked}: a case may get the answer of another run. {way_out}"]


def _say_how_to_judge(output: Path, written: int, turns: int) -> None:
    left = f"; {turns - written} without an utterance left out" if turns > written else ""
    click.echo(f"Wrote {count(written, 'recorded answer')} to {shown(output)}{left}.")
    click.echo("\nTo judge them with tests, add these lines to evalmeta.toml and name the subject in the tests:\n")
    click.echo(f'  [subjects.recorded]\n  adapter = "replay"\n  file = "{Path(shown(output)).as_posix()}"')


def _lines(number: int, turn: TracedTurn, *, verbose: bool) -> Iterator[str]:
    session = f", conversation {turn.session}" if turn.session else ""
    yield f"{number}  trace {turn.trace_id}{session}"
    for name, value in _values(turn):
        rule = f"  ({turn.rules[name]})" if verbose and name in turn.rules else ""
        yield f"   {name:<9}  {value}{rule}"
    if turn.error is not None:
        yield f"   error      {turn.error}"
    if verbose and (text := steps_text(turn.generated(), chars=LINE_CHARS - _VALUE_CHARS)):
        yield f"   {STEPS_LABEL:<9}  {text}".replace("\n", "\n" + " " * _VALUE_CHARS)
    for finding in turn.findings:
        yield f"   note       {finding}"


def _values(turn: TracedTurn) -> Iterator[tuple[str, str]]:
    yield "utterance", _UNKNOWN if turn.utterance is None else turn.utterance
    if turn.answer is not None or turn.error is None:
        yield "answer", _UNKNOWN if turn.answer is None else turn.answer
    yield "topic", _UNKNOWN if turn.topic is None else turn.topic or "none"
    calls = turn.actions and ", ".join(f"{action.name}({api.traces.arguments_text(action)})" for action in turn.actions)
    yield "actions", _UNKNOWN if turn.actions is None else calls or "none"
    if turn.retrieved is not None:
        yield "retrieved", ", ".join(passage.uri for passage in turn.retrieved) or "nothing"
    tokens = turn.tokens
    yield "tokens", _UNKNOWN if tokens is None else f"{tokens.input} in, {tokens.output} out"
