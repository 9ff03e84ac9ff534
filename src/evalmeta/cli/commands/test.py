"""`evalmeta test`: run deployed definitions and report what came out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import limits
from evalmeta.cli.calls import repeated
from evalmeta.cli.commands.test_baseline import baseline
from evalmeta.cli.commands.test_compare import compare
from evalmeta.cli.commands.test_history import history
from evalmeta.cli.groups import OptionsOnly
from evalmeta.cli.jobs import job_options, wait_option
from evalmeta.cli.loop import run_async
from evalmeta.cli.output import json_option, note, print_error, print_json, print_table, say_target
from evalmeta.cli.resultformats import result_format_option
from evalmeta.cli.runreports import prepare_folder, report_runs
from evalmeta.cli.runs import cancel as cancel_run
from evalmeta.cli.runs import carry_on, check_id, run_tests
from evalmeta.cli.targets import choose_target, connected, target_org_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.api.targets import Target
    from evalmeta.api.tests import FinishedRun
    from evalmeta.api.whereabouts import Whereabouts
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project
    from evalmeta.wire.messages import FileProperties

__all__ = ["test"]


def _report_options(command: Callable[..., int]) -> Callable[..., int]:  # type: ignore[explicit-any]
    """Adds the options of everything that reports on runs."""
    for option in (
        json_option,
        click.option(
            "-d",
            "--output-dir",
            type=click.Path(path_type=Path, file_okay=False),
            help="Also write each run to a file test-result-ID there.",
        ),
        result_format_option,
    ):
        command = option(command)
    return command


@click.group()
def test() -> None:
    """Run agent tests and look at their results."""


@test.command("list")
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
    from evalmeta.api import tests  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        return await tests.list_tests(connection)


@test.command("run", cls=OptionsOnly, instead="-n")
@click.option(
    "-n",
    "--api-name",
    "names",
    multiple=True,
    help="A test to run, Type:Name when tests of two types have the name; repeat it for more. All without it.",
)
@wait_option("not at all; the run goes on by itself")
@click.option("--iterations", type=click.IntRange(1, limits.MAX_ITERATIONS), help="Ask every case so many times.")
@click.option("--min-pass-rate", type=click.FloatRange(0, 1), help="The share of cases that must pass, 0 to 1.")
@click.option(
    "--concurrency", type=click.IntRange(1, limits.MAX_CONCURRENCY), help="Ask so many cases at the same time."
)
@click.option(
    "--case-timeout",
    type=click.FloatRange(0, limits.MAX_CASE_TIMEOUT_SECONDS, min_open=True),
    help="Seconds one case may take.",
)
@click.option(
    "--undecided", type=click.Choice(("ignore", "fail")), help="What a result that nothing could judge counts as."
)
@target_org_option
@_report_options
def run(  # noqa: PLR0913 - one parameter for each option
    names: tuple[str, ...],
    *,
    wait: float | None,
    iterations: int | None,
    min_pass_rate: float | None,
    concurrency: int | None,
    case_timeout: float | None,
    undecided: str | None,
    target_org: str | None,
    result_format: str,
    output_dir: Path | None,
    as_json: bool,
) -> int:
    """Run agent tests that are in the org.

    \b
    evalmeta test run --wait
    evalmeta test run --wait 10
    evalmeta test run -n Order_Desk --wait --result-format junit --output-dir results

    Defaults of the options stand under [run] in evalmeta.toml.
    """
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    project = find_project(Path.cwd())
    target = choose_target(project, target_org)
    options = _options(
        project,
        iterations=iterations,
        min_pass_rate=min_pass_rate,
        concurrency=concurrency,
        case_timeout=case_timeout,
        undecided=undecided,
    )
    prepare_folder(output_dir)
    outcome = run_async(run_tests(project, target, names, options, wait=wait))
    if outcome.errors and not outcome.finished:
        raise outcome.errors[0]
    if wait is None:
        return 0
    code = report_runs(project, outcome.finished, result_format=result_format, output_dir=output_dir, as_json=as_json)
    for error in outcome.errors:
        print_error(error, as_json=False)
    return outcome.errors[0].exit_code if outcome.errors else code


@test.command("resume")
@job_options("run")
@wait_option("until it is done")
@target_org_option
@_report_options
def resume(
    *,
    job_id: str | None,
    wait: float | None,
    target_org: str | None,
    result_format: str,
    output_dir: Path | None,
    as_json: bool,
) -> int:
    """Go on with a run that was interrupted, or wait for one that goes on by itself.

    Only what is missing is asked.
    """
    prepare_folder(output_dir)
    project, finished = _carry_on(job_id, target_org, wait=math.inf if wait is None else wait)
    return report_runs(project, [finished], result_format=result_format, output_dir=output_dir, as_json=as_json)


@test.command("results")
@job_options("run")
@target_org_option
@_report_options
def results(
    *, job_id: str | None, target_org: str | None, result_format: str, output_dir: Path | None, as_json: bool
) -> int:
    """Show the results that a run has so far."""
    prepare_folder(output_dir)
    project, finished = _carry_on(job_id, target_org, wait=None)
    return report_runs(project, [finished], result_format=result_format, output_dir=output_dir, as_json=as_json)


@test.command("cancel")
@job_options("run")
@target_org_option
@json_option
def cancel(*, job_id: str | None, target_org: str | None, as_json: bool) -> None:
    """End a run; the results that it has are kept."""
    project, place = _locate(job_id, target_org)
    run = run_async(cancel_run(project, place, _reach(project, place))).run
    if as_json:
        print_json({"id": run.id, "status": run.status.value, "testCases": len(run.cases)})
        return
    click.echo(f"Canceled run {run.id}; {len(run.cases):,} of {run.total:,} case results are kept.")


def _carry_on(job_id: str | None, target_org: str | None, *, wait: float | None) -> tuple[Project, FinishedRun]:
    from evalmeta.api import remote_runs  # noqa: PLC0415 - not needed for --help

    project, place = _locate(job_id, target_org)
    if (finished := remote_runs.load(place)) is not None:
        note(f"Kept here: run {place.run_id}, which is over at {place.org_url}")
        return project, finished
    return project, run_async(carry_on(project, place, _reach(project, place), wait=wait))


def _locate(job_id: str | None, target_org: str | None) -> tuple[Project, Whereabouts]:
    from evalmeta.api.whereabouts import locate  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    check_id(job_id)
    project = find_project(Path.cwd())
    return project, locate(project, job_id, named=target_org)


def _reach(project: Project, place: Whereabouts) -> Target | None:
    from evalmeta.api.whereabouts import target_of  # noqa: PLC0415 - not needed for --help

    target = target_of(place)
    say_target(project, target)
    return target


def _options(project: Project, **given: float | str | None) -> RunOptions:
    from evalmeta.model.run import RunOptions  # noqa: PLC0415 - not needed for --help

    settings = project.settings.run.model_dump()
    return RunOptions(**settings | {name: value for name, value in given.items() if value is not None})


for _command in (baseline, compare, history):
    test.add_command(_command)
