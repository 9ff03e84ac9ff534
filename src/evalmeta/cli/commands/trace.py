"""`evalmeta trace`: what traces of OpenTelemetry say of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.groups import FullHelpGroup
from evalmeta.cli.options import PATH
from evalmeta.cli.output import json_option, note, print_json, warn
from evalmeta.model.evaluation import parse_case_list
from evalmeta.package.files import shown
from evalmeta.report.steps import STEPS_LABEL, steps_text
from evalmeta.report.text import LINE_CHARS, count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.api.trace_tests import ProposedTests
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.traces.turns import TracedTurn

_UNKNOWN: Final = "unknown"
_VALUE_CHARS: Final = 14  # the column in which values begin


@click.group(cls=FullHelpGroup)
def trace() -> None:
    """Read traces of OpenTelemetry: what an agent was asked, did and answered."""


@trace.command("import")
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
@click.option("-o", "--output", type=PATH, help="Write the turns as recorded answers (JSON Lines).")
@click.option("--to", "tests", type=PATH, help="Write test cases, marked for review, to a test spec (YAML).")
@click.option("--force", is_flag=True, help="Overwrite the test spec if it has different content.")
@click.option("--agent", "--subject", "agent", metavar="NAME", help="The agent that the test spec names.")
@click.option("--trace", "trace_ids", multiple=True, metavar="ID", help="Only the turns of this trace.")
@click.option("--turn", "numbers", metavar="NUMBERS", help="Only these turns, such as 3 or 1,4-7.")
@click.option("--text", default="", help="Only turns whose utterance contains this text.")
@click.option("--last", type=click.IntRange(min=1), help="Only the last turns that the other options choose.")
@click.option("-v", "--verbose", is_flag=True, help="Also show where in the trace each value was found, and the steps.")
@json_option
def import_traces(
    *,
    files: tuple[Path, ...],
    output: Path | None,
    tests: Path | None,
    force: bool,
    agent: str | None,
    trace_ids: tuple[str, ...],
    numbers: str | None,
    text: str,
    last: int | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Show the turns in files of traces, and write them as recorded answers or test cases.

    FILE is a file of an OpenTelemetry exporter: a request of OTLP as protobuf or JSON, or JSON Lines of requests, also
    compressed with gzip. evalmeta reads the GenAI conventions, OpenInference, OpenLLMetry and MLflow. Values that are
    not in the trace are unknown. With -o, the adapter `replay` answers with the recorded answers, so that tests judge
    them without asking the agent. With --to, each conversation becomes a test case that expects the same topics and
    actions; it is undecided until you have reviewed it and removed `review: true`. Secrets are hidden.

    \b
    evalmeta trace import traces.jsonl
    evalmeta trace import traces.jsonl -o recordings.jsonl
    evalmeta trace import traces.jsonl --to tests/orders.yaml --agent My_Agent --text order --last 20
    """
    if tests is None and (force or agent is not None):
        raise click.UsageError(f"{'--force' if force else '--agent'} needs --to")
    if tests is not None:
        api.trace_tests.check_target(tests, overwrite=force)
    chosen_by = api.trace_tests.TurnFilter(frozenset(trace_ids), _numbers(numbers), text, last)
    found = api.traces.import_traces(files, folder=Path.cwd())
    chosen = chosen_by.choose(found.turns)
    proposed = api.trace_tests.propose_tests(found.turns, chosen, subject=agent) if tests else None
    written = api.traces.write_recordings(output, chosen.values()) if output else 0
    if tests and proposed:
        api.trace_tests.write_tests(tests, proposed, overwrite=force)
    warnings = [*(_shared_warnings(chosen.values()) if output else []), *_test_warnings(proposed)]
    if as_json:
        turns = [api.traces.turn_json(turn) for turn in chosen.values()]
        of_tests: JsonObject = {"tests": _tests_json(proposed)} if proposed else {}
        result: JsonObject = {"turns": turns, "otherTraces": found.others, "written": written, **of_tests}
        print_json(result, warnings=warnings)
        return
    _print_turns(chosen, found.others, warnings, verbose=verbose)
    if output:
        _say_how_to_judge(output, written, len(chosen))
    if tests and proposed:
        _say_how_to_review(tests, proposed)


def _print_turns(turns: Mapping[int, TracedTurn], others: int, warnings: Iterable[str], *, verbose: bool) -> None:
    for number, turn in turns.items():
        click.echo("\n".join(_lines(number, turn, verbose=verbose)) + "\n")
    if others:
        note(f"{count(others, 'trace')} not of an agent or a model.")
    for warning in warnings:
        warn(warning)


def _numbers(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    try:
        return parse_case_list(text).numbers
    except ValueError:
        raise click.UsageError(f"--turn {text!r} is not a valid list of turns, such as 3 or 1,4-7") from None


def _test_warnings(proposed: ProposedTests | None) -> list[str]:
    if proposed is None:
        return []
    warnings = [f"trace {trace_id} is not in the tests: {why}" for trace_id, why in proposed.left_out]
    lacking = (f"case {number} lacks a value; the note in its metadata says which" for number in proposed.noted)
    return [*warnings, *lacking]


def _tests_json(proposed: ProposedTests) -> JsonObject:
    left_out: list[JsonValue] = [{"trace": trace_id, "why": why} for trace_id, why in proposed.left_out]
    return {
        "cases": proposed.cases,
        "turns": proposed.turns,
        "repeated": proposed.repeated,
        "noted": list(proposed.noted),
        "leftOut": left_out,
    }


def _say_how_to_review(path: Path, proposed: ProposedTests) -> None:
    turns = f" with {count(proposed.turns, 'turn')}" if proposed.turns > proposed.cases else ""
    repeated = f"; {proposed.repeated:,} repeated left out" if proposed.repeated else ""
    click.echo(f"Wrote {count(proposed.cases, 'test case')}{turns} to {shown(path)}{repeated}.")
    click.echo("\nThey are undecided until you have reviewed them: correct what they expect, and remove review: true.")


def _shared_warnings(turns: Iterable[TracedTurn]) -> list[str]:
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
