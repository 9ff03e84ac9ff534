"""`evalmeta test list|resume|results|cancel`: the tests in the org, and runs that were started before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.comparisons import baseline_option
from evalmeta.cli.jobs import job_options, wait_option
from evalmeta.cli.orgs import run_in_org, target_org_option
from evalmeta.cli.output import json_option, print_json, print_table
from evalmeta.cli.reruns import cancel_run, find_run, resume_run
from evalmeta.cli.run_reports import Output, report_options, report_runs
from evalmeta.cli.suggestions import completed
from evalmeta.errors import Suggestion

if TYPE_CHECKING:
    from evalmeta.cli.comparisons import BaselineOption


@click.command("list")
@target_org_option
@json_option
def list_tests(*, target_org: str | None, as_json: bool) -> None:
    """List the agent tests in the org."""
    tests = run_in_org(target_org, lambda connection, _: api.runs.list_tests(connection))
    if as_json:
        print_json([{"fullName": each.full_name, "id": each.id, "type": each.type} for each in tests])
        return
    if not tests:
        click.echo(completed(Suggestion("No agent tests in the org. Deploy some first", "deploy")))
    rows = [(each.full_name, each.type, each.id, each.last_modified_date[:19].replace("T", " ")) for each in tests]
    print_table(["API Name", "Type", "Id", "Deployed (UTC)"], rows)


@click.command("resume")
@job_options("run")
@wait_option("until it is done")
@click.option(
    "--ignore-changes",
    is_flag=True,
    help="Use the definition as it was when the run started, even if another one is deployed now.",
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
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Resume a run that was interrupted, or wait for one that is in progress.

    Only the missing cases are run.
    """
    run = find_run(job_id, target_org)
    comparator = baseline.open(run.project) if baseline else None
    finished = resume_run(run, wait=math.inf if wait is None else wait, ignore_changes=ignore_changes)
    return report_runs(run.project, [finished], output, comparator=comparator)


@click.command("results")
@job_options("run")
@target_org_option
@baseline_option
@report_options
def results(*, job_id: str | None, target_org: str | None, baseline: BaselineOption | None, output: Output) -> int:
    """Show the results that a run has so far."""
    run = find_run(job_id, target_org)
    comparator = baseline.open(run.project) if baseline else None
    return report_runs(run.project, [resume_run(run, wait=None)], output, comparator=comparator)


@click.command("cancel")
@job_options("run")
@target_org_option
@json_option
def cancel(*, job_id: str | None, target_org: str | None, as_json: bool) -> None:
    """Cancel a run; its finished results are kept."""
    run = cancel_run(find_run(job_id, target_org)).run
    if as_json:
        print_json({"id": run.id, "status": run.status.value, "testCases": len(run.cases)})
        return
    click.echo(f"Canceled run {run.id}; {len(run.cases):,} of {run.total:,} case results are kept.")
