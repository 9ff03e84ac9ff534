"""`evalmeta test list|resume|results|cancel|rescore`: the tests in the org, and runs that were started before."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.completions import complete_runs
from evalmeta.cli.groups import completed
from evalmeta.cli.jobs import JobChoice, jobs_option, results_options, wait_option
from evalmeta.cli.options import on_option, target_org_option
from evalmeta.cli.orgs import run_in_org
from evalmeta.cli.output import json_option, note, print_error, print_json, print_table
from evalmeta.cli.runs.baselines import BaselineOption, baseline_option
from evalmeta.cli.runs.observer import Printer
from evalmeta.cli.runs.options import (
    Values,
    checking_options,
    cost_option,
    policy_options,
    run_options,
    scoring_options,
)
from evalmeta.cli.runs.report_files import ReportingCommand
from evalmeta.cli.runs.reports import Output, report_options, report_outcome
from evalmeta.errors import Suggestion
from evalmeta.package.project import find_project
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.api.runs.finding import RunHandle, SuiteHandle
    from evalmeta.api.runs.verification import Checking


@click.command("list")
@target_org_option
@json_option
def list_tests(*, target_org: str | None, as_json: bool) -> None:
    """List the agent tests in the org.

    \b
    evalmeta test list
    evalmeta test list --target-org dev
    """
    tests = run_in_org(target_org, lambda connection, _: api.agent_tests.list_tests(connection))
    if as_json:
        print_json([{"fullName": test.full_name, "id": test.id, "type": test.type} for test in tests])
        return
    if not tests:
        click.echo(completed(Suggestion("No agent tests in the org. Deploy some first", "deploy")))
    rows = [(test.full_name, test.type, test.id, test.last_modified_date[:19].replace("T", " ")) for test in tests]
    print_table(["API Name", "Type", "Id", "Deployed (UTC)"], rows)


@click.command("resume", cls=ReportingCommand)
@jobs_option("run")
@wait_option("until it is done")
@click.option(
    "--ignore-changes",
    is_flag=True,
    help="Resume with the original definition if another one is deployed; start changed tests that have no run.",
)
@click.option("--mixed", is_flag=True, help="Ask the missing cases even if the agent has changed.")
@cost_option
@target_org_option
@on_option
@checking_options
@baseline_option
@report_options
def resume(
    *,
    jobs: JobChoice,
    wait: float | None,
    ignore_changes: bool,
    mixed: bool,
    max_cost: float | None,
    target_org: str | None,
    on: str | None,
    checking: Checking,
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Complete what a command began: resume its runs, and start its tests that never started.

    Only the missing cases are run. The report has all runs of the command, whichever of them is named.

    \b
    evalmeta test resume --job-id 4KB000000000001GAA
    evalmeta test resume --unfinished
    evalmeta test resume --job-id 4KB000000000001GAA --max-cost 20
    """
    suites = _find_suites(jobs, target_org, is_whole=True)
    project = api.runs.calls.on_cluster(suites[0].project if suites else find_project(Path.cwd()), on)
    suites = [replace(suite, project=replace(suite.project, on=project.on)) for suite in suites]
    comparator = baseline.open(project) if baseline else None
    wait = math.inf if wait is None else wait
    resumption = api.runs.reruns.Resumption(wait, checking, ignore_changes, mixed, max_cost)
    outcome = api.runs.reruns.resume_suites(suites, resumption, output.printer())
    return report_outcome(project, outcome, output, comparator)


@click.command("results", cls=ReportingCommand)
@results_options
@target_org_option
@checking_options
@baseline_option
@report_options
def results(
    *, job_id: str | None, target_org: str | None, checking: Checking, baseline: BaselineOption | None, output: Output
) -> int:
    """Show the results that a run has so far, or all runs of a command with `latest` or `previous`.

    ARCHIVE is the folder or the address of runs that `evalmeta test archive` wrote.

    \b
    evalmeta test results latest
    evalmeta test results archives/2026-11-25
    evalmeta test results --job-id 4KB000000000001GAA --result-format html > run.html
    """
    suite = api.runs.reruns.find_suite(Path.cwd(), job_id, named=target_org, or_archive=True)
    comparator = baseline.open(suite.project) if baseline else None
    outcome = api.runs.reruns.fetch_suite(suite, checking, output.printer())
    code = report_outcome(suite.project, outcome, output, comparator, is_whole_call=False)
    for run in suite.runs:
        _note_judgements(run)
    return code


def _find_suites(jobs: JobChoice, target_org: str | None, *, is_whole: bool = False) -> list[SuiteHandle]:
    """Find the chosen suites, each once, and say so if none is unfinished; `is_whole` is as in `locate_suite`."""
    reruns, folder = api.runs.reruns, Path.cwd()
    if jobs.is_unfinished:
        return reruns.find_unfinished(folder, Printer(), named=target_org, stopped=is_whole)
    suites = [reruns.find_suite(folder, name, named=target_org, is_whole=is_whole) for name in jobs.ids or (None,)]
    return [suite for place, suite in enumerate(suites) if suite not in suites[:place]]


def _note_judgements(run: RunHandle) -> None:
    run_id = run.remote.run.id if run.remote else run.id
    if wrong := api.judging.marks.count_wrong(run.project, run_id, org_url=run.stored_at):
        what = f"People marked {count(wrong, 'verdict')} as wrong"
        list_them = Suggestion(f"{what}. List them", "test", "marks", "--job-id", run_id)
        note(f"{what}." if run.project.is_archive else list_them)


@click.command("cancel")
@jobs_option("run")
@target_org_option
@json_option
def cancel(*, jobs: JobChoice, target_org: str | None, as_json: bool) -> int:
    """Cancel runs; their finished results are kept.

    \b
    evalmeta test cancel --use-most-recent
    """
    outcome = api.runs.reruns.cancel_suites(_find_suites(jobs, target_org), Printer())
    runs = [finished.run for finished in outcome.finished]
    if not runs and outcome.errors:
        raise outcome.errors[0]
    if as_json:
        canceled = [{"id": run.id, "status": run.status.value, "testCases": len(run.cases)} for run in runs]
        print_json(canceled[0] if len(canceled) == 1 else canceled)
    for run in () if as_json else runs:
        click.echo(f"Canceled run {run.id}; {len(run.cases):,} of {run.total:,} case results are kept.")
    for error in outcome.errors:
        print_error(error, as_json=False)
    return outcome.errors[0].exit_code if outcome.errors else 0


@click.command("rescore", cls=ReportingCommand)
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@click.option("--as-deployed", is_flag=True, help="Use the definition that is deployed now, not that of the run.")
@scoring_options
@policy_options
@click.option("-o", "--target-org", metavar="ORG", help="The org that has the run, if several may have it.")
@baseline_option
@report_options
def rescore(
    run: str,
    *,
    as_deployed: bool,
    scoring: Values,
    policy: Values,
    target_org: str | None,
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Score the answers of a run again with other rules, without asking the agent.

    \b
    evalmeta test rescore 4KB000000000001GAA --scoring testing-center
    evalmeta test rescore 4KB000000000001GAA --rater judge --baseline 4KB000000000001GAA

    The answers of a run in a Salesforce org are scored here, by the definition that the org had.
    The result is a new run; the first one does not change. What passes is decided as in
    the first run, unless options say otherwise.
    """
    first = api.runs.reruns.find_run(Path.cwd(), run, named=target_org)
    rules = run_options(first.project, scoring).scoring
    comparator = baseline.open(first.project) if baseline else None
    outcome = api.runs.reruns.rescore_run(first, rules, policy, output.printer(), as_deployed=as_deployed)
    return report_outcome(first.project, outcome, output, comparator)
