"""`evalmeta test compare`: what became of the cases from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.comparisons import exit_code_of, fail_on_option, print_comparisons, remark_on
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.cli.reruns import check_id
from evalmeta.errors import NotFound

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
    """Compare the cases of a run with those of an earlier one.

    RUN is a run's id. Two are compared in this order, one with the complete run of the
    same test before it. With --baseline, one run or the most recent one of each test is
    compared with that.

    \b
    evalmeta test compare 4KB000000000001GAA 4KB000000000002GAA
    evalmeta test compare 4KB000000000002GAA
    evalmeta test compare --baseline evalmeta-baseline.json

    Exits with 100 when a case is broken: it passed, and now fails.
    """
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.comparison import comparison_json  # noqa: PLC0415 - likewise

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
        raise click.UsageError("Give one or two runs, or --baseline and one run at most.")
    for run_id in runs:
        check_id(run_id)


def _with_run(project: Project, runs: Sequence[str]) -> Comparison:
    from evalmeta.api import comparisons  # noqa: PLC0415 - not needed for --help

    after = _loaded(project, runs[-1])
    before = _loaded(project, runs[0]) if len(runs) == _TWO else comparisons.previous_run(project, after)
    return comparisons.compare_runs(before, after)


def _with_baseline(project: Project, runs: Sequence[str], path: Path) -> list[Comparison]:
    from evalmeta.api import comparisons  # noqa: PLC0415 - not needed for --help

    baseline = comparisons.open_baseline(project, path)
    chosen = [_loaded(project, each) for each in runs] or comparisons.latest_runs(project)
    compared = [(run, comparisons.compare_with(baseline, run)) for run in chosen]
    for run, comparison in compared:
        if comparison is None:
            note(f"{comparisons.name_of(run)} is not in {baseline.label}; `evalmeta test baseline` adds it")
    found = [comparison for _, comparison in compared if comparison is not None]
    if not found:
        raise NotFound(
            f"there is no run of a test that is in {baseline.label}", actions=["Run them: evalmeta test run --wait"]
        )
    return found


def _loaded(project: Project, run_id: str) -> Run:
    from evalmeta.api.comparisons import load_run  # noqa: PLC0415 - not needed for --help

    run = load_run(project, run_id)
    remark_on(run)
    return run
