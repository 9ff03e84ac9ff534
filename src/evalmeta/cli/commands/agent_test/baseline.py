"""`evalmeta test baseline`: save the results of runs in a file to commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.comparisons import warn_if_incomplete
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.cli.reruns import check_run_id
from evalmeta.errors import NotFound, Suggestion
from evalmeta.package.project import find_project
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.model.run import Run


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "-o", "--output-file", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write."
)
@json_option
def baseline(runs: tuple[str, ...], *, output_file: Path, as_json: bool) -> None:
    """Save the results of runs as a baseline to commit and compare with.

    By default, the most recent complete run of each test is saved. In an existing file,
    other tests are kept, and so are cases that a run did not include. Name the runs of all
    shards to join them.

    \b
    evalmeta test baseline -o evalmeta-baseline.json
    evalmeta test baseline -o evalmeta-baseline.json 4KB000000000001GAA 4KB000000000002GAA
    evalmeta test run --wait --baseline evalmeta-baseline.json
    """
    for run_id in runs:
        check_run_id(run_id)
    project = find_project(Path.cwd())
    chosen = [api.comparisons.load_run(project, each) for each in runs] or api.comparisons.latest_runs(project)
    if not chosen:
        raise NotFound("there is no complete run here", actions=[Suggestion("Run the tests", "test", "run", "--wait")])
    for run in chosen:
        warn_if_incomplete(run)
    done = api.comparisons.bless(output_file, chosen)
    for run in chosen:
        if api.comparisons.is_partial(run):
            _note_partial_run(run, output_file, kept=done.kept[api.comparisons.name_of(run)], is_named=bool(runs))
    if as_json:
        saved = [{"name": api.comparisons.name_of(run), "runId": run.id} for run in chosen]
        counts = {"tests": done.tests, "cases": done.cases, "failing": done.failing, "errors": done.errors}
        print_json({"file": str(output_file), "state": done.state, **counts, "runs": saved})
        return
    contents = f"{count(done.tests, 'test')}, {count(done.cases, 'case')}, {done.failing:,} of them failing"
    errors = f", {done.errors:,} with errors only" if done.errors else ""
    click.echo(f"{done.state} {output_file}: {contents}{errors}")


def _note_partial_run(run: Run, path: Path, *, kept: int, is_named: bool) -> None:
    """Print what happened to the cases that a run did not include."""
    others = f"{count(kept, 'other case')} of {path} are unchanged" if kept else f"{path} has no other cases"
    way = "" if is_named else f"; to join shards, name their runs: evalmeta test baseline -o {path} RUN1 RUN2"
    note(f"{run.id} ran only part of {run.definition}: {others}{way}")
