"""`evalmeta trace import`: the turns in files of traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.commands.trace_turns import files_options, write_turns
from evalmeta.cli.options import PATH
from evalmeta.cli.output import json_option
from evalmeta.model.evaluation import parse_case_list

if TYPE_CHECKING:
    from evalmeta.cli.commands.trace_turns import TraceFiles


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="FILE...")
@files_options
@click.option("--trace", "trace_ids", multiple=True, metavar="ID", help="Only the turns of this trace.")
@click.option("--turn", "numbers", metavar="NUMBERS", help="Only these turns, such as 3 or 1,4-7.")
@click.option("--text", default="", help="Only turns whose utterance contains this text.")
@click.option("--last", type=click.IntRange(min=1), help="Only the last turns that the other options choose.")
@click.option("-v", "--verbose", is_flag=True, help="Also show where in the trace each value was found, and the steps.")
@json_option
def import_traces(
    *,
    paths: tuple[Path, ...],
    files: TraceFiles,
    trace_ids: tuple[str, ...],
    numbers: str | None,
    text: str,
    last: int | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Show the turns in files of traces, and write them as tests.

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
    files.check()
    chosen_by = api.trace_tests.TurnFilter(frozenset(trace_ids), _numbers(numbers), text, last)
    found = api.traces.import_traces(paths, folder=Path.cwd())
    write_turns(found, chosen_by.choose(found.turns), files, as_json=as_json, verbose=verbose)


def _numbers(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    try:
        return parse_case_list(text).numbers
    except ValueError:
        raise click.UsageError(f"--turn {text!r} is not a valid list of turns, such as 3 or 1,4-7") from None
