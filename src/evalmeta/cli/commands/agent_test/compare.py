"""`evalmeta test compare`: compare the cases of two runs, or of a run and a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.comparisons import exit_code_of, fail_on_option, print_comparisons, warn_if_incomplete
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.cli.reruns import check_run_id
from evalmeta.errors import NotFound, Suggestion
from evalmeta.package.project import find_project
from evalmeta.report.comparison import comparison_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.run import Run
    from evalmeta.model.statistics import Comparison, FailOn
    from evalmeta.package.project import Project


_TWO: Final = 2


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN [RUN]]")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE|RUN",
    help="Compare with a baseline file instead.",
)
@fail_on_option
@json_option
def compare(runs: tuple[str, ...], *, baseline: Path | None, fail_on: FailOn, as_json: bool) -> int:
    """Compare the cases of a run with those of an earlier run.

    RUN is a run's id. Two runs are compared in this order. One run is compared with the
    previous complete run of the same test. With --baseline, one run or the most recent
    run of each test is compared with the baseline.

    \b
    evalmeta test compare 4KB000000000001GAA 4KB000000000002GAA
    evalmeta test compare 4KB000000000002GAA
    evalmeta test compare --baseline evalmeta-baseline.json

    The exit code is 100 if a case is broken: it passed, and now fails.
    """
    _check(runs, baseline)
    project = find_project(Path.cwd())
    found = _with_baseline(project, runs, baseline) if baseline else [_with_run(project, runs)]
    code = exit_code_of(found, fail_on)
    if as_json:
        print_json([comparison_json(each, fail_on=fail_on) for each in found], status=code)
    else:
        print_comparisons(found, fail_on=fail_on)
    return code


def _check(runs: Sequence[str], baseline: Path | None) -> None:
    most = 1 if baseline else _TWO
    if len(runs) > most or not (runs or baseline):
        raise click.UsageError("Give one or two runs, or --baseline and at most one run.")
    for run_id in runs:
        check_run_id(run_id)


def _with_run(project: Project, runs: Sequence[str]) -> Comparison:

    after = _loaded(project, runs[-1])
    before = _loaded(project, runs[0]) if len(runs) == _TWO else api.comparisons.previous_run(project, after)
    return api.comparisons.compare_runs(before, after)


def _with_baseline(project: Project, runs: Sequence[str], path: Path) -> list[Comparison]:

    baseline = api.comparisons.open_baseline(project, path)
    chosen = [_loaded(project, each) for each in runs] or api.comparisons.latest_runs(project)
    compared = [(run, api.comparisons.compare_with(baseline, run)) for run in chosen]
    for run, comparison in compared:
        if comparison is None:
            note(f"{api.comparisons.name_of(run)} is not in {baseline.label}; `evalmeta test baseline` adds it")
    found = [comparison for _, comparison in compared if comparison is not None]
    if not found:
        raise NotFound(
            f"there is no run of a test that is in {baseline.label}",
            actions=[Suggestion("Run the tests", "test", "run", "--wait")],
        )
    return found


def _loaded(project: Project, run_id: str) -> Run:

    run = api.comparisons.load_run(project, run_id)
    warn_if_incomplete(run)
    return run
