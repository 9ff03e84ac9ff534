"""`evalmeta test list|resume|results|cancel`: the tests that are in the org, and runs that were begun."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.comparisons import Against, baseline_option
from evalmeta.cli.jobs import job_options, run_async, wait_option
from evalmeta.cli.options import choose_target, connected, report_options, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_table
from evalmeta.cli.reruns import cancel as cancel_run
from evalmeta.cli.reruns import carry_on, locate_run, reach_run
from evalmeta.cli.run_reports import Output, report_runs
from evalmeta.cli.suggestions import repeated

if TYPE_CHECKING:
    from evalmeta.api.org_targets import Target
    from evalmeta.api.run_location import Whereabouts
    from evalmeta.api.runs import FinishedRun
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import FileProperties


@click.command("list")
@target_org_option
@json_option
def list_tests(*, target_org: str | None, as_json: bool) -> None:
    """List the agent tests in the org."""
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    project = find_project(Path.cwd())
    target = choose_target(project, target_org)
    tests = run_async(_list(project, target))
    if as_json:
        print_json([{"fullName": each.full_name, "id": each.id, "type": each.type} for each in tests])
        return
    if not tests:
        click.echo(repeated("No agent tests in the org. Deploy some first: evalmeta deploy"))
    rows = [(each.full_name, each.type, each.id, each.last_modified_date[:19].replace("T", " ")) for each in tests]
    print_table(["API Name", "Type", "Id", "Deployed (UTC)"], rows)


async def _list(project: Project, target: Target | None) -> list[FileProperties]:
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        return await runs.list_tests(connection)


@click.command("resume")
@job_options("run")
@wait_option("until it is done")
@click.option(
    "--ignore-changes",
    is_flag=True,
    help="Go on by the definition as it was when the run began, although another one is deployed now.",
)
@target_org_option
@baseline_option
@report_options
def resume(
    *,
    job_id: str | None,
    wait: float | None,
    ignore_changes: bool,
    target_org: str | None,
    against: Against | None,
    output: Output,
) -> int:
    """Go on with a run that was interrupted, or wait for one that goes on by itself.

    Only what is missing is asked.
    """
    wait = math.inf if wait is None else wait
    project, place = locate_run(job_id, target_org)
    standard = against.open(project) if against else None
    finished = _carry_on(project, place, wait=wait, ignore_changes=ignore_changes)
    return report_runs(project, [finished], output, standard=standard)


@click.command("results")
@job_options("run")
@target_org_option
@baseline_option
@report_options
def results(*, job_id: str | None, target_org: str | None, against: Against | None, output: Output) -> int:
    """Show the results that a run has so far."""
    project, place = locate_run(job_id, target_org)
    standard = against.open(project) if against else None
    finished = _carry_on(project, place, wait=None)
    return report_runs(project, [finished], output, standard=standard)


@click.command("cancel")
@job_options("run")
@target_org_option
@json_option
def cancel(*, job_id: str | None, target_org: str | None, as_json: bool) -> None:
    """End a run; the results that it has are kept."""
    project, place = locate_run(job_id, target_org)
    run = run_async(cancel_run(project, place, reach_run(project, place))).run
    if as_json:
        print_json({"id": run.id, "status": run.status.value, "testCases": len(run.cases)})
        return
    click.echo(f"Canceled run {run.id}; {len(run.cases):,} of {run.total:,} case results are kept.")


def _carry_on(project: Project, place: Whereabouts, *, wait: float | None, ignore_changes: bool = False) -> FinishedRun:
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help

    if (finished := runs.load(place)) is not None:
        note(f"Kept here: run {place.run_id}, which is over at {place.org_url}")
        return finished
    target = reach_run(project, place)
    return run_async(carry_on(project, place, target, wait=wait, ignore_changes=ignore_changes))
