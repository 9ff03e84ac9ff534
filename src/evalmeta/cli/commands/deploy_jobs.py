"""`evalmeta deploy report|resume|cancel|quick`: deployments that were started before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta import api, limits
from evalmeta.cli.deployments import (
    deployment_json,
    finish_deployment,
    job_suggestions,
    print_deployment,
    print_started,
)
from evalmeta.cli.jobs import job_continues, job_options, wait_option, wait_seconds
from evalmeta.cli.orgs import run_in_org, target_org_option
from evalmeta.cli.output import json_option, print_json, print_table
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, UsageError
from evalmeta.protocol.soap import to_json

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployResult


_async_option = click.option("--async", "is_async", is_flag=True, help="Do not wait for the result.")


@click.command()
@job_options("deployment")
@target_org_option
@json_option
def report(*, job_id: str | None, target_org: str | None, as_json: bool) -> int:
    """Show the status or the result of a deployment."""

    async def show(connection: Connection, project: Project) -> int:
        job = job_id or api.deployments.most_recent(connection, project)
        outcome = await api.deployments.fetch(connection, project, job)
        if as_json and not outcome.result.done:
            fields = to_json(outcome.result).items()
            result = {name: value for name, value in fields if isinstance(value, str | int | float)}
            print_json({**deployment_json(outcome), "deployResult": result})
            return EXIT_PASSED
        if not as_json:
            print_table(["Property", "Value"], [row for row in _rows(outcome.result) if row[1]])
        if not outcome.result.done:
            return EXIT_PASSED
        if not as_json:
            click.echo()
        if outcome.status in {"Failed", "Canceled"}:
            raise api.deployments.failure_of(outcome)
        return print_deployment(outcome, as_json=as_json)

    return run_in_org(target_org, show)


@click.command()
@job_options("deployment")
@wait_option("33")
@target_org_option
@json_option
def resume(*, job_id: str | None, wait: float | None, target_org: str | None, as_json: bool) -> int:
    """Wait for a deployment that continues, and show its result."""

    async def finish(connection: Connection, project: Project) -> int:
        job = job_id or api.deployments.most_recent(connection, project)
        return await finish_deployment(connection, project, job, wait=wait, as_json=as_json)

    return run_in_org(target_org, finish)


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

    async def start(connection: Connection, project: Project) -> int:
        validation = job_id or api.deployments.most_recent(connection, project, validation=True)
        job = await api.deployments.quick_deploy(connection, project, validation)
        if is_async:
            print_started(job, "Deployment", as_json=as_json)
            return EXIT_PASSED
        return await finish_deployment(connection, project, job, wait=wait, as_json=as_json)

    return run_in_org(target_org, start)


@click.command()
@job_options("deployment")
@_async_option
@wait_option("33")
@target_org_option
@json_option
def cancel(*, job_id: str | None, is_async: bool, wait: float | None, target_org: str | None, as_json: bool) -> int:
    """Cancel a deployment that is not done."""
    _check(wait, is_async=is_async)

    async def cancel_job(connection: Connection, project: Project) -> int:
        job = job_id or api.deployments.most_recent(connection, project)
        seconds = 0 if is_async else wait_seconds(wait, default=limits.DEPLOY_WAIT_SECONDS)
        with job_continues(job, job_suggestions(job)):
            result = await api.deployments.cancel(connection, job, wait=seconds)
        return _print_canceled(job, result, as_json=as_json)

    return run_in_org(target_org, cancel_job)


def _check(wait: float | None, *, is_async: bool) -> None:
    if is_async and wait is not None:
        raise UsageError("--async and --wait cannot be combined.")


def _print_canceled(job_id: str, result: DeployResult | None, *, as_json: bool) -> int:
    status = "Canceling" if result is None else result.status
    code = EXIT_PASSED if status in {"Canceling", "Canceled"} else EXIT_FAILED
    if as_json:
        print_json({"id": job_id, "status": status}, status=code)
    elif result is None:
        click.echo(f"Deployment {job_id} will be canceled.")
    elif code:
        click.echo(f"Deployment {job_id} was done before it could be canceled: {status}.")
    else:
        click.echo(f"Canceled deployment {job_id}; the org was not changed.")
    return code


def _rows(result: DeployResult) -> list[tuple[str, str]]:
    done, total = result.number_components_deployed, result.number_components_total
    times = (("Started", result.start_date), ("Ended", result.completed_date))
    return [
        ("Validation" if result.check_only else "Deployment", result.id),
        ("Status", result.status),
        ("By", result.created_by_name),
        *((name, (time or "")[:19].replace("T", " ")) for name, time in times),
        ("Components", f"{done:,} of {total:,}"),
        ("Refused", f"{result.number_component_errors:,}" if result.number_component_errors else ""),
        ("Canceled by", result.canceled_by_name or ""),
    ]
