"""What the commands about traces print and write: turns, recorded answers and test cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api
from evalmeta.cli.options import FILE, Command, Decorator, option_group
from evalmeta.cli.output import note, print_json, warn
from evalmeta.package.files import shown
from evalmeta.report.steps import STEPS_LABEL, steps_text
from evalmeta.report.text import LINE_CHARS, count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.api.trace_tests import ProposedTests
    from evalmeta.api.traces import ImportedTraces
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.traces.turns import TracedTurn

_UNKNOWN: Final = "unknown"
_VALUE_CHARS: Final = 14  # the column in which values begin


class TraceFiles(NamedTuple):
    """The files that a command writes: recorded answers, and test cases of an agent."""

    output: Path | None
    tests: Path | None
    force: bool
    agent: str | None

    def check(self) -> None:
        """Raise UsageError if the files cannot be written."""
        if self.tests is None and (self.force or self.agent is not None):
            raise click.UsageError(f"{'--force' if self.force else '--agent'} needs --to")
        if self.tests is not None:
            api.trace_tests.check_target(self.tests, overwrite=self.force)


def files_options(command: Command) -> Command:
    """Add the options about files to write, as the parameter `files`."""
    options: Sequence[Decorator] = (
        click.option("-o", "--output", type=FILE, help="Write the turns as recorded answers (JSON Lines)."),
        click.option("--to", "tests", type=FILE, help="Write test cases, marked for review, to a test spec (YAML)."),
        click.option("--force", is_flag=True, help="Overwrite the test spec if it has different content."),
        click.option("--agent", "--subject", "agent", metavar="NAME", help="The agent that the test spec names."),
    )
    return option_group("files", TraceFiles, options)(command)


def write_turns(
    found: ImportedTraces,
    chosen: Mapping[int, TracedTurn],
    files: TraceFiles,
    *,
    as_json: bool,
    verbose: bool | None,
    remarks: Sequence[str] = (),
) -> None:
    """Write the chosen turns, and print them with what was written; without `verbose`, they are not printed again."""
    output, tests = files.output, files.tests
    proposed = api.trace_tests.propose_tests(found.turns, chosen, subject=files.agent) if tests else None
    written = api.traces.write_recordings(output, chosen.values()) if output else 0
    if tests and proposed:
        api.trace_tests.write_tests(tests, proposed, overwrite=files.force)
    warnings = [*remarks, *(_shared_warnings(chosen.values()) if output else []), *_test_warnings(proposed)]
    if as_json:
        turns = [api.traces.turn_json(turn) for turn in chosen.values()]
        of_tests: JsonObject = {"tests": _tests_json(proposed)} if proposed else {}
        result: JsonObject = {"turns": turns, "otherTraces": found.others, "written": written, **of_tests}
        print_json(result, warnings=warnings)
        return
    _print_turns({} if verbose is None else chosen, found.others, warnings, verbose=bool(verbose))
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
    click.echo("\nEach case is undecided until you review it: correct what it expects, and remove review: true.")


def _shared_warnings(turns: Iterable[TracedTurn]) -> list[str]:
    if not (shared := api.traces.count_shared(turns)):
        return []
    asked = f"{count(shared, 'utterance')} in the same case of several runs"
    way_out = "Export each run to its own file: evalmeta test results --job-id RUN --trace FILE"
    return [f"{asked}: a case may get the answer of another run. {way_out}"]


def _say_how_to_judge(output: Path, written: int, turns: int) -> None:
    left = f"; {turns - written} without an utterance or incomplete left out" if turns > written else ""
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
