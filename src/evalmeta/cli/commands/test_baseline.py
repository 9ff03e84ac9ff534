"""`evalmeta test baseline`: what runs came to, as a file to be committed."""

from __future__ import annotations

from pathlib import Path

import click

from evalmeta.cli.comparisons import remark_on
from evalmeta.cli.output import json_option, print_json
from evalmeta.cli.reruns import check_id
from evalmeta.errors import NotFound

__all__ = ["baseline"]


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "-o", "--output-file", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write."
)
@json_option
def baseline(runs: tuple[str, ...], *, output_file: Path, as_json: bool) -> None:
    """Write what runs came to as a baseline, to be committed and compared with.

    Takes the most recent complete run of each test, or the runs that are named. In a file
    that is there, tests without such a run stay as they are.

    \b
    evalmeta test baseline -o evalmeta-baseline.json
    evalmeta test run --wait --baseline evalmeta-baseline.json
    """
    from evalmeta.api import comparisons  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise
    from evalmeta.report.words import count  # noqa: PLC0415 - likewise

    for run_id in runs:
        check_id(run_id)
    project = find_project(Path.cwd())
    chosen = [comparisons.load_run(project, each) for each in runs] or comparisons.latest_runs(project)
    if not chosen:
        raise NotFound("no complete run is known here", actions=["Run the tests: evalmeta test run --wait"])
    for run in chosen:
        remark_on(run)
    done = comparisons.bless(output_file, chosen)
    if as_json:
        taken = [{"name": comparisons.name_of(run), "runId": run.id} for run in chosen]
        counts = {"tests": done.tests, "cases": done.cases, "failing": done.failing}
        print_json({"file": str(output_file), "state": done.state, **counts, "runs": taken})
        return
    told = f"{count(done.tests, 'test')}, {count(done.cases, 'case')}, {done.failing:,} of them failing"
    click.echo(f"{done.state} {output_file}: {told}")
