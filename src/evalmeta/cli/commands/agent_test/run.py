"""`evalmeta test run`: run tests that are deployed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.comparisons import Against, baseline_option
from evalmeta.cli.groups import Suggesting
from evalmeta.cli.jobs import run_async, wait_option
from evalmeta.cli.options import choose_target, report_options, target_org_option
from evalmeta.cli.output import note, print_error, print_json
from evalmeta.cli.reruns import extend_run, locate_run, reach_run
from evalmeta.cli.run_options import (
    Selection,
    options_of,
    policy_options,
    running_options,
    scoring_options,
    selection_options,
)
from evalmeta.cli.run_reports import Output, report_runs
from evalmeta.cli.runs import Order, RunsOutcome, make_plan, print_plan, read_files, run_tests, subject_option
from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.cli.comparisons import Standard
    from evalmeta.package.project import Project


@click.command("run", cls=Suggesting, instead={"--num-runs": "--iterations", "--runs": "--iterations"})
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option(
    "-n",
    "--api-name",
    "names",
    multiple=True,
    help="A test to run, Type:Name when tests of two types have the name; repeat it for more. All without it.",
)
@subject_option
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
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    *,
    subject: str | None,
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
    """Run agent tests that are in the org, or in files of any format.

    A folder stands for the definitions in it, and for *.test.json and *.evalset.json. Files are not deployed; they
    run in the embedded org.

    \b
    evalmeta test run --wait
    evalmeta test run evaluation/ --subject my_agent:answer --wait
    evalmeta test run eval_set.jsonl --wait
    evalmeta test run --wait 10
    evalmeta test run -n Order_Desk --case 3 --wait
    evalmeta test run --wait --result-format junit --output-dir results
    evalmeta test run --wait --iterations 5 --min-pass-rate 0.9 --baseline baseline.json
    evalmeta test run --wait --iterations 10 --extend 4KB000000000001GAA

    Defaults of the options stand under [run] and [score] in evalmeta.toml.
    """
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    project = find_project(Path.cwd(), or_folder=bool(paths))
    options = options_of(project, scoring, running, policy, selection=selection)
    standard = against.open(project) if against else None
    if extend is not None:
        selects = bool(paths or names or dry_run or selection != Selection())
        _check_extend(running, {**policy, **scoring}, selects=selects)
        _, place = locate_run(extend, target_org)
        more = extend_run(
            project,
            place,
            reach_run(project, place),
            iterations=options.iterations,
            wait=wait,
            ignore_changes=ignore_changes,
            is_quiet=not output.is_for_people,
        )
        return _report(project, run_async(more), output, standard)
    if ignore_changes:
        raise UsageError("--ignore-changes goes with --extend: other runs are of what is deployed")
    if paths and (names or target_org not in {None, "embedded"}):
        raise UsageError("files are run in the embedded org: leave out --api-name and --target-org")
    if subject is not None and not paths:
        raise UsageError("--subject is for files: what is deployed names its agent")
    target = None if paths else choose_target(project, target_org)
    files = read_files(project, paths, subject=subject, said={**running, **policy}, is_asked=not dry_run)
    choice = selection.choose(project, names, files)
    if choice is None:
        return _report(project, RunsOutcome([], [], []), output, standard)
    order = Order(choice, options, wait, is_quiet=not output.is_for_people, files=files)
    if dry_run:
        planned = run_async(make_plan(project, target, order))
        if not any(each.cases for each in planned):
            _tell_nothing(selection, paths, subject)
        print_plan(project, target, planned, order, as_json=output.as_json)
        return 0
    outcome = run_async(run_tests(project, target, order))
    if not any(outcome):
        _tell_nothing(selection, paths, subject)
    return _report(project, outcome, output, standard)


def _tell_nothing(selection: Selection, paths: tuple[Path, ...], subject: str | None) -> None:
    if not selection.may_be_empty:
        words = shlex.join([*map(str, paths), *(("--subject", subject) if subject else ()), "--dry-run"])
        way_out = f"See what there is, without --case and --tag: evalmeta test run {words}"
        raise UsageError("no test has a case that is chosen", actions=[way_out])
    note("Nothing is left to ask.")


def _report(project: Project, outcome: RunsOutcome, output: Output, standard: Standard | None) -> int:
    if outcome.errors and not outcome.finished:
        raise outcome.errors[0]
    if not outcome.finished:
        return _report_unfinished(outcome, output)
    code = report_runs(project, outcome.finished, output, standard=standard)
    for error in outcome.errors:
        print_error(error, as_json=False)
    return outcome.errors[0].exit_code if outcome.errors else code


def _report_unfinished(outcome: RunsOutcome, output: Output) -> int:
    """Prints a report of no run, or as JSON which runs were left."""
    if output.as_json:
        print_json([{"id": each.id, "definition": each.definition, "status": "NEW"} for each in outcome.left])
    elif not outcome.left and not output.is_for_people:
        from evalmeta import report  # noqa: PLC0415 - not needed for --help

        click.echo(report.render(output.result_format, []), nl=False)
    return 0


def _check_extend(running: Mapping[str, object], judging: Mapping[str, object], *, selects: bool) -> None:
    if running["iterations"] is None:
        raise UsageError("--extend needs --iterations: how many there are to be in all")
    others = (value for name, value in {**running, **judging}.items() if name != "iterations")
    if selects or any(value is not None for value in others):
        raise UsageError(
            "--extend asks and judges as the run that it extends did",
            actions=["Leave out what selects cases, and how they are asked and judged."],
        )
