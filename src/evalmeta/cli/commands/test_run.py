"""`evalmeta test run`: run tests that are deployed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.comparisons import Against, baseline_option
from evalmeta.cli.dryruns import print_plan
from evalmeta.cli.groups import OptionsOnly
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.loop import run_async
from evalmeta.cli.output import note, print_error
from evalmeta.cli.resultformats import report_options
from evalmeta.cli.runoptions import (
    Selection,
    options_of,
    policy_options,
    running_options,
    scoring_options,
    selection_options,
)
from evalmeta.cli.runreports import Output, report_runs
from evalmeta.cli.runs import Order, extend_run, locate_run, reach_run, run_tests
from evalmeta.cli.targets import choose_target, target_org_option
from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.cli.comparisons import Standard
    from evalmeta.cli.runs import RunsOutcome
    from evalmeta.package.project import Project

__all__ = ["run"]


@click.command("run", cls=OptionsOnly, instead="-n")
@click.option(
    "-n",
    "--api-name",
    "names",
    multiple=True,
    help="A test to run, Type:Name when tests of two types have the name; repeat it for more. All without it.",
)
@wait_option("not at all; the run goes on by itself")
@selection_options
@running_options
@policy_options
@scoring_options
@click.option("--dry-run", is_flag=True, help="Say what would be asked, and ask nothing.")
@click.option("--extend", metavar="RUN", help="Add iterations to a run that is over, up to --iterations.")
@click.option(
    "--ignore-changes", is_flag=True, help="With --extend: by the definition as it was, although it has changed."
)
@target_org_option
@baseline_option
@report_options
def run(  # noqa: PLR0913 - one parameter for each option, or group of them
    names: tuple[str, ...],
    *,
    wait: float | None,
    selection: Selection,
    running: Mapping[str, object],
    policy: Mapping[str, object],
    scoring: Mapping[str, object],
    dry_run: bool,
    extend: str | None,
    ignore_changes: bool,
    target_org: str | None,
    against: Against | None,
    output: Output,
) -> int:
    """Run agent tests that are in the org.

    \b
    evalmeta test run --wait
    evalmeta test run --wait 10
    evalmeta test run -n Order_Desk --case 3 --wait
    evalmeta test run --wait --result-format junit --output-dir results
    evalmeta test run --wait --iterations 5 --min-pass-rate 0.9 --baseline baseline.json
    evalmeta test run --wait --iterations 10 --extend 4KB000000000001GAA

    Defaults of the options stand under [run] and [score] in evalmeta.toml.
    """
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    project = find_project(Path.cwd())
    options = options_of(project, scoring, running, policy, selection=selection)
    standard = against.open(project) if against else None
    if extend is not None:
        _refuse_beside_extend(names, selection, running, dry_run=dry_run)
        _, place = locate_run(extend, target_org)
        target, most = reach_run(project, place), options.iterations
        more = extend_run(project, place, target, iterations=most, wait=wait, ignore_changes=ignore_changes)
        return _report(project, run_async(more), output, standard)
    target = choose_target(project, target_org)
    choice, passed = selection.choose(project, names)
    for run_id in passed:
        note(f"Nothing failed in run {run_id}.")
    if selection.failed_from and len(passed) == len(selection.failed_from):
        return 0
    order = Order(choice, options, wait)
    if dry_run:
        return print_plan(project, target, order, as_json=output.as_json)
    outcome = run_async(run_tests(project, target, order))
    return _report(project, outcome, output, standard)


def _report(project: Project, outcome: RunsOutcome, output: Output, standard: Standard | None) -> int:
    if outcome.errors and not outcome.finished:
        raise outcome.errors[0]
    if not outcome.finished:
        return 0
    code = report_runs(project, outcome.finished, output, standard=standard)
    for error in outcome.errors:
        print_error(error, as_json=False)
    return outcome.errors[0].exit_code if outcome.errors else code


def _refuse_beside_extend(
    names: tuple[str, ...], selection: Selection, running: Mapping[str, object], *, dry_run: bool
) -> None:
    if running["iterations"] is None:
        raise UsageError("--extend needs --iterations: how many there are to be in all")
    if names or dry_run or selection != Selection():
        raise UsageError("--extend asks the same cases as the run that it extends: leave out what selects others")
