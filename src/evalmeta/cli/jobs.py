"""What commands about jobs share: how long to wait, which job, how to find it again, and a deployment's result."""

from __future__ import annotations

import math
from asyncio import CancelledError
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api, limits
from evalmeta.cli.completions import complete_runs
from evalmeta.cli.options import Command, Decorator, option_group
from evalmeta.cli.output import console, note, print_json, print_problems, print_table, print_warnings, warn
from evalmeta.errors import EXIT_PARTIAL, EXIT_PASSED, EXIT_WAIT_RAN_OUT, OrgError, Suggestion, WaitRanOut
from evalmeta.report.problems import problem_json
from evalmeta.report.progress import JobProgress
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.deployments import Deployment
    from evalmeta.api.packages import DeployPackage
    from evalmeta.client.connection import Connection
    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployResult


_UNTIL_DONE = "until it is done"
_SHOWN_MESSAGES: Final = 5
_TESTS: Final = ", and all tests that never started"
_NAMES: Final = ", latest or previous for all runs of a command, or latest:TEST or previous:TEST"


def _read_wait(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    if text is None or text == _UNTIL_DONE:
        return None if text is None else math.inf
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= limits.MAX_WAIT_MINUTES:
        raise click.BadParameter(
            f"{text!r} is not a valid number of minutes: it must be above 0 and at most {limits.MAX_WAIT_MINUTES:,}"
        )
    return minutes * 60


def wait_option(default: str) -> Decorator:
    """Add -w, --wait [MINUTES], as `wait` in seconds: None if it is not given, infinite without a number."""
    return click.option(
        "-w",
        "--wait",
        is_flag=False,
        flag_value=_UNTIL_DONE,
        callback=_read_wait,
        metavar="[MINUTES]",
        help=f"Minutes to wait; without a number, wait until it is done.  [default: {default}]",
    )


def wait_seconds(wait: float | None, *, default: float | None) -> float | None:
    """Return the seconds to wait, None for no limit; `default` if --wait is not given."""
    if wait is None:
        return default
    return None if wait == math.inf else wait


def results_options(command: Command) -> Command:
    """Add the options of `job_options`, and an archive or a run as an argument, which is then the `job_id`."""

    def build(*, source: str | None, job_id: str | None, use_most_recent: bool) -> str | None:
        if [source is not None, job_id is not None, use_most_recent].count(True) != 1:
            raise click.UsageError("Give one of RUN or ARCHIVE, --job-id and --use-most-recent.")
        return source if job_id is None else job_id

    argument = click.argument("source", required=False, metavar="[RUN|ARCHIVE]", shell_complete=complete_runs)
    return option_group("job_id", build, (argument, *_job_options("run")))(command)


def job_options(what: str) -> Decorator:
    """Add -i, --job-id and -r, --use-most-recent, as the parameter `job_id`: None is the most recent job."""

    def build(*, job_id: str | None, use_most_recent: bool) -> str | None:
        if use_most_recent == (job_id is not None):
            raise click.UsageError("Give either --job-id or --use-most-recent.")
        return job_id

    return option_group("job_id", build, _job_options(what))


class JobChoice(NamedTuple):
    """One or several jobs: the named ones, all that are unfinished, or else the most recent one."""

    ids: tuple[str, ...]
    is_unfinished: bool


def jobs_option(what: str) -> Decorator:
    """Add the options of `job_options` for several jobs, and --unfinished, as the parameter `jobs`."""
    unfinished = click.option(
        "--unfinished", is_flag=True, help=f"All {what}s in this project's own org that are not finished."
    )

    def build(*, job_id: tuple[str, ...], use_most_recent: bool, unfinished: bool) -> JobChoice:
        if [bool(job_id), use_most_recent, unfinished].count(True) != 1:
            raise click.UsageError("Give one of --job-id, --use-most-recent and --unfinished.")
        return JobChoice(tuple(dict.fromkeys(job_id)), unfinished)

    return option_group("jobs", build, (*_job_options(what, multiple=True), unfinished))


def _job_options(what: str, *, multiple: bool = False) -> Sequence[Decorator]:
    is_run = what == "run"
    recent = f"Use this project's most recent {what} in the org."
    return (
        click.option(
            "-i",
            "--job-id",
            metavar="ID",
            multiple=multiple,
            shell_complete=complete_runs if is_run else None,
            help=f"The {what}'s id, as it was printed{_NAMES if is_run else ''}{'; repeatable' if multiple else ''}.",
        ),
        click.option("-r", "--use-most-recent", is_flag=True, help=recent),
    )


@contextmanager
def job_continues(job_id: str, suggestions: Sequence[str]) -> Iterator[None]:
    """Suggest how to find a job that continues when waiting for it is interrupted, fails or times out."""
    try:
        yield
    except CancelledError:
        note(f"\nJob {job_id} continues in the org.")
        print_suggestions(suggestions)
        raise
    except WaitRanOut as timed_out:
        raise WaitRanOut(str(timed_out), job_id=job_id, actions=suggestions) from None
    except OrgError:
        note(f"The state of job {job_id} is unknown; it may continue in the org.")
        print_suggestions(suggestions)
        raise


def print_suggestions(suggestions: Sequence[str]) -> None:
    """Print suggested commands, one a line."""
    for suggestion in suggestions:
        note(suggestion, indent="  ")


_WOULD: Final = {"Created": "Would create", "Changed": "Would change", "Deleted": "Would delete"}


async def finish_deployment(
    connection: Connection,
    project: Project,
    job_id: str,
    *,
    wait: float | None,
    as_json: bool,
    package: DeployPackage | None = None,
) -> int:
    """Show a deployment's progress until it is done, print its result, and return the exit code.

    `wait` is seconds, as `wait_option` reads them. A time-out raises `WaitRanOut`, or is printed with `as_json`.
    """
    seconds = wait_seconds(wait, default=limits.DEPLOY_WAIT_SECONDS)
    with JobProgress(console(err=True), f"Deployment {job_id}", enabled=not as_json) as progress:

        def show(now: DeployResult) -> None:
            progress.update(now.state_detail or now.status, now.number_components_deployed, now.number_components_total)

        try:
            with job_continues(job_id, job_suggestions(job_id)):
                outcome = await api.deployments.finish(
                    connection, project, job_id, package=package, wait=seconds, on_progress=show
                )
        except WaitRanOut as timed_out:
            if not as_json:
                raise
            result: JsonObject = {"id": job_id, "status": "InProgress", "files": []}
            print_json(result, status=EXIT_WAIT_RAN_OUT, warnings=[str(timed_out)])
            return EXIT_WAIT_RAN_OUT
    return print_deployment(outcome, as_json=as_json)


def job_suggestions(job_id: str) -> tuple[Suggestion, ...]:
    """Return what can be done about a deployment that continues."""
    return (
        Suggestion("Wait for it", "deploy", "resume", "--job-id", job_id),
        Suggestion("Show its status", "deploy", "report", "--job-id", job_id),
        Suggestion("Cancel it", "deploy", "cancel", "--job-id", job_id),
    )


def print_started(job_id: str, what: str, *, as_json: bool) -> None:
    """Print that a deployment was started and continues in the org."""
    if as_json:
        print_json({"id": job_id, "status": "Queued", "files": []})
        return
    click.echo(f"{what} {job_id} continues in the org.")
    print_suggestions(job_suggestions(job_id))


def print_deployment(outcome: Deployment, *, as_json: bool) -> int:
    """Print a deployment that succeeded, completely or in part, and return the exit code."""
    is_partial = outcome.status == "SucceededPartial"
    code = EXIT_PARTIAL if is_partial else EXIT_PASSED
    if as_json:
        warnings = [*map(str, outcome.warnings), *outcome.messages]
        print_json(deployment_json(outcome), status=code, warnings=warnings)
        return code
    print_warnings(outcome.warnings)
    for message in outcome.messages[:_SHOWN_MESSAGES]:
        warn(message)
    if len(outcome.messages) > _SHOWN_MESSAGES:
        warn(f"the org reports {len(outcome.messages) - _SHOWN_MESSAGES:,} more, which --json lists")
    click.echo(_headline(outcome, is_partial=is_partial))
    states = _WOULD if outcome.result.check_only else {}
    ordered = sorted(outcome.components, key=lambda component: component.full_name.casefold())
    rows = [(states.get(file.state, file.state), file.full_name, file.file) for file in ordered]
    print_table(["State", "Name", "File"], rows)
    if outcome.problems:
        click.echo("\nRefused")
        print_problems(outcome.problems)
    if outcome.result.check_only and not is_partial:
        note(Suggestion("Deploy exactly this", "deploy", "quick", "--job-id", outcome.id))
    return code


def deployment_json(outcome: Deployment) -> JsonObject:
    """Return a deployment as `--json` prints it."""
    return {
        "id": outcome.id,
        "status": outcome.status,
        "checkOnly": outcome.result.check_only,
        "files": [asdict(component) for component in outcome.components],
        "failures": [problem_json(problem) for problem in outcome.problems],
    }


def _headline(outcome: Deployment, *, is_partial: bool) -> str:
    deleted = sum(component.state == "Deleted" for component in outcome.components)
    kept = len(outcome.components) - deleted
    what = count(kept, "component")
    if is_partial:
        refused = len({problem.component or problem.location.path for problem in outcome.problems})
        what = f"{kept} of {kept + refused} components"
    if outcome.result.check_only:
        would = f", would delete {deleted}" if deleted else ""
        return f"Validated {what}{would}; the org was not changed (deploy id {outcome.id})."
    return f"Deployed {what}{f', deleted {deleted}' if deleted else ''} (deploy id {outcome.id})."
