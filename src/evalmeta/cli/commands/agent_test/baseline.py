"""`evalmeta test baseline`: what runs came to, as a file to be committed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.comparisons import remark_on
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.cli.reruns import check_id
from evalmeta.errors import NotFound

if TYPE_CHECKING:
    from evalmeta.model.run import Run


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "-o", "--output-file", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write."
)
@json_option
def baseline(runs: tuple[str, ...], *, output_file: Path, as_json: bool) -> None:
    """Write what runs came to as a baseline, to be committed and compared with.

    Takes the most recent complete run of each test, or the runs that are named. In a file
    that is there, tests without such a run stay as they are, and so do the cases that a run
    did not ask. Name the runs of all shards to join them.

    \b
    evalmeta test baseline -o evalmeta-baseline.json
    evalmeta test baseline -o evalmeta-baseline.json 4KB000000000001GAA 4KB000000000002GAA
    evalmeta test run --wait --baseline evalmeta-baseline.json
    """
    from evalmeta.api import comparisons  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise
    from evalmeta.report.text import count  # noqa: PLC0415 - likewise

    for run_id in runs:
        check_id(run_id)
    project = find_project(Path.cwd())
    chosen = [comparisons.load_run(project, each) for each in runs] or comparisons.latest_runs(project)
    if not chosen:
        raise NotFound("no complete run is known here", actions=["Run the tests: evalmeta test run --wait"])
    for run in chosen:
        remark_on(run)
    done = comparisons.bless(output_file, chosen)
    for run in chosen:
        if comparisons.is_partial(run):
            _tell_of_part(run, output_file, kept=done.kept[comparisons.name_of(run)], is_named=bool(runs))
    if as_json:
        taken = [{"name": comparisons.name_of(run), "runId": run.id} for run in chosen]
        counts = {"tests": done.tests, "cases": done.cases, "failing": done.failing, "errors": done.errors}
        print_json({"file": str(output_file), "state": done.state, **counts, "runs": taken})
        return
    told = f"{count(done.tests, 'test')}, {count(done.cases, 'case')}, {done.failing:,} of them failing"
    errors = f", {done.errors:,} with errors only" if done.errors else ""
    click.echo(f"{done.state} {output_file}: {told}{errors}")


def _tell_of_part(run: Run, path: Path, *, kept: int, is_named: bool) -> None:
    """Says what became of the cases that a run did not ask; whoever named the run is not told to name it."""
    from evalmeta.report.text import count  # noqa: PLC0415 - not needed for --help

    others = f"{count(kept, 'other case')} of {path} stayed as before" if kept else f"{path} has no others"
    way = "" if is_named else f"; to join shards, name their runs: evalmeta test baseline -o {path} RUN1 RUN2"
    note(f"{run.id} asked a part of {run.definition} only: {others}{way}")
