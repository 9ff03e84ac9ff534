"""`evalmeta deploy report|resume|cancel|quick`: deployments that were begun before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import limits
from evalmeta.cli.jobs import (
    as_json_of,
    follow,
    going_on,
    job_options,
    print_going_on,
    print_outcome,
    run_async,
    seconds_of,
    wait_option,
    ways_on,
)
from evalmeta.cli.options import choose_target, connected, target_org_option
from evalmeta.cli.output import json_option, print_json, print_table
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, EXIT_WAIT_RAN_OUT, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalmeta.api.deployments import Deployment
    from evalmeta.client.connection import Connection
    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployResult


_async_option = click.option("--async", "is_async", is_flag=True, help="Do not wait for the outcome.")


@click.command()
@job_options("deployment")
@target_org_option
@json_option
def report(*, job_id: str | None, target_org: str | None, as_json: bool) -> int:
    """Show how far a deployment is, or how it ended."""

    async def look(connection: Connection, project: Project) -> int:
        from evalmeta.api import deployments  # noqa: PLC0415 - not needed for --help

        job = job_id or deployments.most_recent(connection, project)
        outcome = await deployments.look(connection, project, job)
        if as_json and not outcome.result.done:
            print_json({**as_json_of(outcome), "deployResult": _scalars(outcome.result)})
            return EXIT_PASSED
        if not as_json:
            print_table(["Property", "Value"], [row for row in _rows(outcome.result) if row[1]])
        if not outcome.result.done:
            return EXIT_PASSED
        if not as_json:
            click.echo()
        if outcome.status in {"Failed", "Canceled"}:
            raise deployments.failure_of(outcome)
        return print_outcome(outcome, as_json=as_json)

    return _within(target_org, look)


@click.command()
@job_options("deployment")
@wait_option("33")
@target_org_option
@json_option
def resume(*, job_id: str | None, wait: float | None, target_org: str | None, as_json: bool) -> int:
    """Wait for a deployment that goes on, and show how it ends."""

    async def go(connection: Connection, project: Project) -> int:
        from evalmeta.api import deployments  # noqa: PLC0415 - not needed for --help

        job = job_id or deployments.most_recent(connection, project)
        return await _finish(connection, project, job, wait, as_json=as_json)

    return _within(target_org, go)


@click.command()
@job_options("validation")
@_async_option
@wait_option("33")
@target_org_option
@json_option
def quick(*, job_id: str | None, is_async: bool, wait: float | None, target_org: str | None, as_json: bool) -> int:
    """Deploy exactly what was validated, once and within ten days.

    \b
    evalmeta deploy validate
    evalmeta deploy quick --use-most-recent
    """
    _check(wait, is_async=is_async)

    async def go(connection: Connection, project: Project) -> int:
        from evalmeta.api import deployments  # noqa: PLC0415 - not needed for --help

        validation = job_id or deployments.most_recent(connection, project, validation=True)
        job = await deployments.quick_deploy(connection, project, validation)
        if is_async:
            print_going_on(job, "Deployment", as_json=as_json)
            return EXIT_PASSED
        return await _finish(connection, project, job, wait, as_json=as_json)

    return _within(target_org, go)


@click.command()
@job_options("deployment")
@_async_option
@wait_option("33")
@target_org_option
@json_option
def cancel(*, job_id: str | None, is_async: bool, wait: float | None, target_org: str | None, as_json: bool) -> int:
    """Cancel a deployment: it changes nothing any more, or it is too late for that."""
    _check(wait, is_async=is_async)

    async def go(connection: Connection, project: Project) -> int:
        from evalmeta.api import deployments  # noqa: PLC0415 - not needed for --help

        job = job_id or deployments.most_recent(connection, project)
        seconds = 0 if is_async else seconds_of(wait, otherwise=limits.DEPLOY_WAIT_SECONDS)
        with going_on(job, *ways_on(job)):
            result = await deployments.cancel(connection, job, wait=seconds)
        return _print_canceled(job, result, as_json=as_json)

    return _within(target_org, go)


def _print_canceled(job_id: str, result: DeployResult | None, *, as_json: bool) -> int:
    status = "Canceling" if result is None else result.status
    code = EXIT_PASSED if status in {"Canceling", "Canceled"} else EXIT_FAILED
    if as_json:
        print_json({"id": job_id, "status": status}, status=code)
    elif result is None:
        click.echo(f"Deployment {job_id} is to be canceled.")
    elif code:
        click.echo(f"Deployment {job_id} was over before it could be canceled: {status}.")
    else:
        click.echo(f"Canceled deployment {job_id}; the org was not changed.")
    return code


async def _finish(connection: Connection, project: Project, job_id: str, wait: float | None, *, as_json: bool) -> int:
    from evalmeta.api import deployments  # noqa: PLC0415 - not needed for --help

    seconds = seconds_of(wait, otherwise=limits.DEPLOY_WAIT_SECONDS)

    async def finish(show: Callable[[DeployResult], None]) -> Deployment:
        return await deployments.finish(connection, project, job_id, wait=seconds, on_progress=show)

    outcome = await follow(finish, job_id, as_json=as_json)
    if outcome is None:
        return EXIT_WAIT_RAN_OUT
    return print_outcome(outcome, as_json=as_json)


def _within(target_org: str | None, do: Callable[[Connection, Project], Awaitable[int]]) -> int:
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    project = find_project(Path.cwd())
    target = choose_target(project, target_org)

    async def go() -> int:
        async with connected(project, target) as connection:
            return await do(connection, project)

    return run_async(go())


def _check(wait: float | None, *, is_async: bool) -> None:
    if is_async and wait is not None:
        raise UsageError("--async and --wait exclude each other.")


def _rows(result: DeployResult) -> list[tuple[str, str]]:
    done, total = result.number_components_deployed, result.number_components_total
    moments = (("Begun", result.start_date), ("Ended", result.completed_date))
    return [
        ("Validation" if result.check_only else "Deployment", result.id),
        ("Status", result.status),
        ("By", result.created_by_name),
        *((name, (moment or "")[:19].replace("T", " ")) for name, moment in moments),
        ("Components", f"{done:,} of {total:,}"),
        ("Refused", f"{result.number_component_errors:,}" if result.number_component_errors else ""),
        ("Canceled by", result.canceled_by_name or ""),
    ]


def _scalars(result: DeployResult) -> JsonObject:
    from evalmeta.protocol.soap import to_json  # noqa: PLC0415 - not needed for --help

    return {name: value for name, value in to_json(result).items() if isinstance(value, str | int | float)}
