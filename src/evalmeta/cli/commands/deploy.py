"""`evalmeta deploy`: deploy definitions to the org, and follow deployments that were started before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from evalmeta import api, limits
from evalmeta.cli.groups import LazyGroup
from evalmeta.cli.jobs import (
    deployment_json,
    finish_deployment,
    job_continues,
    job_options,
    job_suggestions,
    print_deployment,
    print_started,
    wait_option,
    wait_seconds,
)
from evalmeta.cli.options import PATH, api_version_option, option_group, selection_options, target_org_option
from evalmeta.cli.orgs import choose_target, run_in_org, run_in_target
from evalmeta.cli.output import json_option, note, print_json, print_table, warn
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, UsageError
from evalmeta.model.registry import DESTRUCTIVE_FILES, POST_DESTRUCTIVE_FILE, PRE_DESTRUCTIVE_FILE, ApiVersion
from evalmeta.package.project import Project, find_project
from evalmeta.protocol.metadata_api import TEST_LEVELS, DeployOptions, DeployResult
from evalmeta.protocol.soap import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.api.org_targets import Target
    from evalmeta.api.packages import DeployPackage
    from evalmeta.cli.options import Command, Decorator
    from evalmeta.client.connection import Connection
    from evalmeta.package.selection import Selection


_COMMANDS: Final = {
    "cancel": ("deploy:cancel", "Cancel a deployment that is not done."),
    "quick": ("deploy:quick", "Deploy exactly what was validated, once and within ten days."),
    "report": ("deploy:report", "Show the status or the result of a deployment."),
    "resume": ("deploy:resume", "Wait for a deployment that continues, and show its result."),
    "start": ("deploy:start", "Do the same as `evalmeta deploy`."),
    "validate": ("deploy:validate", "Let the org check everything without changing it, for `deploy quick`."),
}


@dataclass(frozen=True, slots=True)
class _Request:
    """What to deploy and how: a field for each option of the commands."""

    metadata_dir: Path | None
    single_package: bool
    pre_destructive_changes: Path | None
    post_destructive_changes: Path | None
    purge_on_delete: bool
    test_level: str | None
    tests: tuple[str, ...]
    ignore_conflicts: bool
    ignore_warnings: bool
    is_async: bool
    wait: float | None
    api_version: ApiVersion | None
    target_org: str | None
    as_json: bool
    dry_run: bool = True
    ignore_errors: bool = False

    @property
    def destructive(self) -> dict[str, Path]:
        """The manifests of what is deleted, by their names in the zip."""
        named = {
            PRE_DESTRUCTIVE_FILE: self.pre_destructive_changes,
            POST_DESTRUCTIVE_FILE: self.post_destructive_changes,
        }
        return {name: path for name, path in named.items() if path is not None}

    def check(self, selection: Selection) -> None:
        """Refuse options that cannot be combined."""
        if self.metadata_dir and not selection.is_everything:
            raise click.UsageError("--metadata-dir cannot be combined with --source-dir, --manifest and --metadata.")
        if self.single_package and not self.metadata_dir:
            raise click.UsageError("--single-package needs --metadata-dir.")
        if self.destructive and not selection.manifest:
            raise click.UsageError("Destructive changes need --manifest; the package.xml may be empty.")
        if self.is_async and self.wait is not None:
            raise click.UsageError("--async and --wait cannot be combined.")
        if bool(self.tests) != (self.test_level == "RunSpecifiedTests"):
            raise click.UsageError("--tests and --test-level RunSpecifiedTests need each other.")


_CHANGING: Sequence[Decorator] = (
    click.option("--dry-run", is_flag=True, help="Let the org check everything without changing it."),
    click.option("-r", "--ignore-errors", is_flag=True, help="Deploy valid components even if the org rejects others."),
)
_OPTIONS: Sequence[Decorator] = (
    click.option("--metadata-dir", type=PATH, help="Deploy this folder in metadata format, or this zip."),
    click.option("--single-package", is_flag=True, help="package.xml is in the root of --metadata-dir."),
    click.option("--pre-destructive-changes", type=PATH, help="Manifest of what to delete first; needs --manifest."),
    click.option("--post-destructive-changes", type=PATH, help="Manifest of what to delete last; needs --manifest."),
    click.option("--purge-on-delete", is_flag=True, help="Do not keep deleted components in the recycle bin."),
    click.option("-l", "--test-level", type=click.Choice(TEST_LEVELS), help="Which Apex tests the org runs."),
    click.option("-t", "--tests", multiple=True, help="An Apex test for RunSpecifiedTests; repeatable."),
    click.option("-c", "--ignore-conflicts", is_flag=True, help="Overwrite what was changed in the org."),
    click.option("-g", "--ignore-warnings", is_flag=True, help="Succeed even if the org reports warnings."),
    wait_option("33"),
    click.option("--async", "is_async", is_flag=True, help="Do not wait; print the deployment's id."),
    api_version_option,
    target_org_option,
    json_option,
)


def _request_options(*options: Decorator) -> Decorator:
    def decorate(command: Command) -> Command:
        return selection_options()(option_group("request", _Request, (*options, *_OPTIONS))(command))

    return decorate


@click.group(
    cls=LazyGroup,
    module="evalmeta.cli.commands",
    rows=_COMMANDS,
    hints={"preview": "Use 'evalmeta status' or 'evalmeta deploy validate'."},
    unknown="Files are named with --manifest or --source-dir, components with --metadata.",
    invoke_without_command=True,
)
@_request_options(*_CHANGING)
@click.pass_context
def deploy(ctx: click.Context, /, selection: Selection, request: _Request) -> int:
    """Check components and deploy them to the org: all of them, or none.

    Without a selection, every component of the project is deployed. If a component was
    changed in the org since the last deploy or retrieve, nothing is deployed.

    \b
    evalmeta deploy
    evalmeta deploy --manifest package.xml
    evalmeta deploy --target-org staging --dry-run
    evalmeta deploy --source-dir force-app/orders --source-dir force-app/returns
    evalmeta deploy --metadata 'AiEvaluationDefinition:Order_*'
    evalmeta deploy --manifest package.xml --post-destructive-changes destructiveChanges.xml
    evalmeta deploy --async
    """
    if ctx.invoked_subcommand is None:
        return _deploy(selection, request)
    if any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ctx.params):
        raise click.UsageError(f"Put the options after the command: evalmeta deploy {ctx.invoked_subcommand} OPTIONS")
    return EXIT_PASSED


@click.command()
@_request_options(*_CHANGING)
def start(selection: Selection, request: _Request) -> int:
    """Do the same as `evalmeta deploy`.

    \b
    evalmeta deploy start --manifest package.xml
    """
    return _deploy(selection, request)


@click.command()
@_request_options()
def validate(selection: Selection, request: _Request) -> int:
    """Let the org check everything without changing it, for `deploy quick`.

    \b
    evalmeta deploy validate --manifest package.xml
    evalmeta deploy quick --use-most-recent
    """
    return _deploy(selection, request)


def _deploy(selection: Selection, request: _Request) -> int:
    request.check(selection)
    project = find_project(Path.cwd())
    target = choose_target(project, request.target_org)
    if request.metadata_dir:
        package = api.packages.pack_folder(request.metadata_dir, single_package=request.single_package)
        return _send(project, target, request, lambda _: package)
    destructive = request.destructive
    components = api.selections.resolve(
        project, selection, api_version=request.api_version, may_be_empty=bool(destructive)
    )
    if selection.manifest:
        _warn_of_unsent_deletions(selection.manifest.parent, destructive)
    if not (components.components or destructive):
        note("Nothing to deploy: the project has no components.")
        if request.as_json:
            print_json({"id": None, "status": "Succeeded", "files": []})
        return EXIT_PASSED

    def pack(connection: Connection) -> DeployPackage:
        return api.packages.pack_project(
            project, components, destructive=destructive, newest=connection.api_version, connection=connection
        )

    return _send(project, target, request, pack)


def _warn_of_unsent_deletions(folder: Path, destructive: Mapping[str, Path]) -> None:
    """Warn of destructive changes beside the manifest: they are sent only if an option names them."""
    sent = {path.resolve() for path in destructive.values()}
    for name in DESTRUCTIVE_FILES:
        path = folder / name
        if path.is_file() and path.resolve() not in sent:
            when = "pre" if name == PRE_DESTRUCTIVE_FILE else "post"
            warn(f"{path} is not sent. To delete what it names, add --{when}-destructive-changes {path}")


def _send(
    project: Project, target: Target | None, request: _Request, pack: Callable[[Connection], DeployPackage]
) -> int:
    options = DeployOptions(
        check_only=request.dry_run,
        ignore_warnings=request.ignore_warnings,
        purge_on_delete=request.purge_on_delete,
        rollback_on_error=not request.ignore_errors,
        run_tests=request.tests,
        test_level=request.test_level,
    )

    async def send(connection: Connection) -> int:
        package = pack(connection)
        job_id = await api.deployments.start(
            connection, project, package, options=options, ignore_conflicts=request.ignore_conflicts
        )
        if request.is_async:
            print_started(job_id, "Validation" if request.dry_run else "Deployment", as_json=request.as_json)
            return EXIT_PASSED
        return await finish_deployment(
            connection, project, job_id, wait=request.wait, as_json=request.as_json, package=package
        )

    return run_in_target(project, target, send, api_version=request.api_version)


_async_option = click.option("--async", "is_async", is_flag=True, help="Do not wait for the result.")


@click.command()
@job_options("deployment")
@target_org_option
@json_option
def report(*, job_id: str | None, target_org: str | None, as_json: bool) -> int:
    """Show the status or the result of a deployment.

    \b
    evalmeta deploy report --use-most-recent
    """

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
    """Wait for a deployment that continues, and show its result.

    \b
    evalmeta deploy resume --use-most-recent
    evalmeta deploy resume --job-id 0Af000000000001AAA --wait 10
    """

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
    """Cancel a deployment that is not done.

    \b
    evalmeta deploy cancel --use-most-recent
    """
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
