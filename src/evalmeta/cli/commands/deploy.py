"""`evalmeta deploy`: send definitions to the org."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from click.core import ParameterSource

from evalmeta import limits
from evalmeta.cli.groups import LazyGroup
from evalmeta.cli.jobs import follow, print_going_on, print_outcome, run_async, seconds_of, wait_option
from evalmeta.cli.options import api_version_option, choose_target, connected, selection_options, target_org_option
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.errors import EXIT_PASSED, EXIT_WAIT_RAN_OUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.api.deployments import Deployment
    from evalmeta.api.org_targets import Target
    from evalmeta.api.packages import Parcel
    from evalmeta.client.connection import Connection
    from evalmeta.model.component import ComponentSet
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project
    from evalmeta.package.selection import Selection
    from evalmeta.protocol.metadata_api import DeployOptions, DeployResult

    _Command: TypeAlias = Callable[..., int]  # type: ignore[explicit-any]


_JOBS: Final = "evalmeta.cli.commands.deploy_jobs"
_HERE: Final = "evalmeta.cli.commands.deploy"
_TEST_LEVELS: Final = ("NoTestRun", "RunSpecifiedTests", "RunLocalTests", "RunAllTestsInOrg", "RunRelevantTests")


@dataclass(frozen=True, slots=True)
class _Order:
    """What a deployment is asked to do: a field for each option."""

    selection: Selection
    metadata_dir: Path | None
    single_package: bool
    pre_destructive_changes: Path | None
    post_destructive_changes: Path | None
    purge_on_delete: bool
    test_level: str | None
    tests: tuple[str, ...]
    ignore_conflicts: bool
    ignore_warnings: bool
    api_version: ApiVersion | None
    is_async: bool
    wait: float | None
    target_org: str | None
    as_json: bool
    dry_run: bool = False
    ignore_errors: bool = False

    @property
    def destructive(self) -> dict[str, Path]:
        """Gives the manifests of what is deleted, by their names in the zip."""
        from evalmeta.model.component import POST_DESTRUCTIVE_FILE, PRE_DESTRUCTIVE_FILE  # noqa: PLC0415 - likewise

        named = {
            PRE_DESTRUCTIVE_FILE: self.pre_destructive_changes,
            POST_DESTRUCTIVE_FILE: self.post_destructive_changes,
        }
        return {name: path for name, path in named.items() if path is not None}


def _order_options(command: _Command) -> _Command:
    file = click.Path(path_type=Path)
    for option in (
        json_option,
        target_org_option,
        api_version_option,
        click.option("--async", "is_async", is_flag=True, help="Do not wait; print the deployment's id."),
        wait_option("33"),
        click.option("-g", "--ignore-warnings", is_flag=True, help="Succeed in spite of warnings of the org's."),
        click.option("-c", "--ignore-conflicts", is_flag=True, help="Overwrite what was changed in the org."),
        click.option("-t", "--tests", multiple=True, help="An Apex test for RunSpecifiedTests; repeatable."),
        click.option("-l", "--test-level", type=click.Choice(_TEST_LEVELS), help="Which Apex tests the org runs."),
        click.option("--purge-on-delete", is_flag=True, help="Keep nothing deleted in the recycle bin."),
        click.option(
            "--post-destructive-changes", type=file, help="A manifest of what to delete last; needs --manifest."
        ),
        click.option(
            "--pre-destructive-changes", type=file, help="A manifest of what to delete first; needs --manifest."
        ),
        click.option("--single-package", is_flag=True, help="package.xml is in the root of --metadata-dir."),
        click.option(
            "--metadata-dir", type=file, help="Send this folder in metadata format, or this zip, instead of a project."
        ),
    ):
        command = option(command)
    return selection_options()(command)


@click.group(
    cls=LazyGroup,
    rows={
        "cancel": f"{_JOBS}:cancel",
        "quick": f"{_JOBS}:quick",
        "report": f"{_JOBS}:report",
        "resume": f"{_JOBS}:resume",
        "start": f"{_HERE}:start",
        "validate": f"{_HERE}:validate",
    },
    otherwise="Files are named with --manifest or --source-dir, components with --metadata.",
    invoke_without_command=True,
)
@click.option("--dry-run", is_flag=True, help="Have the org check everything, and change nothing.")
@click.option("-r", "--ignore-errors", is_flag=True, help="Deploy what can be, though other components are refused.")
@_order_options
@click.pass_context
def deploy(ctx: click.Context, /, selection: Selection, **_: object) -> int:
    """Check definitions and send them to the org: all of them, or none.

    Without a selection every definition of the project is sent. What was changed in the
    org since the last deploy or retrieve is not overwritten, and then nothing is sent.

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
        return _carry_out(_order(ctx, selection))
    if any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ctx.params):
        raise click.UsageError(f"Options stand behind the command: evalmeta deploy {ctx.invoked_subcommand} OPTIONS")
    return EXIT_PASSED


@click.command()
@click.option("--dry-run", is_flag=True, help="Have the org check everything, and change nothing.")
@click.option("-r", "--ignore-errors", is_flag=True, help="Deploy what can be, though other components are refused.")
@_order_options
@click.pass_context
def start(ctx: click.Context, /, selection: Selection, **_: object) -> int:
    """Do what `evalmeta deploy` does."""
    return _carry_out(_order(ctx, selection))


@click.command()
@_order_options
@click.pass_context
def validate(ctx: click.Context, /, selection: Selection, **_: object) -> int:
    """Have the org check everything and change nothing; `deploy quick` deploys what passed.

    \b
    evalmeta deploy validate --manifest package.xml
    evalmeta deploy quick --use-most-recent
    """
    return _carry_out(_order(ctx, selection, dry_run=True))


def _order(ctx: click.Context, selection: Selection, **more: bool) -> _Order:
    known = {field.name for field in fields(_Order)}
    given = {name: value for name, value in ctx.params.items() if name in known}
    order = _Order(selection=selection, **given | more)
    _check(order)
    return order


def _check(order: _Order) -> None:
    """Refuses options that exclude each other."""
    if order.metadata_dir and not order.selection.is_everything:
        raise click.UsageError("--metadata-dir goes without --source-dir, --manifest and --metadata.")
    if order.single_package and not order.metadata_dir:
        raise click.UsageError("--single-package needs --metadata-dir.")
    if order.destructive and not order.selection.manifest:
        raise click.UsageError("Destructive changes need --manifest; the package.xml may be empty.")
    if order.is_async and order.wait is not None:
        raise click.UsageError("--async and --wait exclude each other.")
    if bool(order.tests) != (order.test_level == "RunSpecifiedTests"):
        raise click.UsageError("--tests and --test-level RunSpecifiedTests need each other.")


def _carry_out(order: _Order) -> int:
    from evalmeta.api import packages, selections  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    project = find_project(Path.cwd())
    target = choose_target(project, order.target_org)
    if order.metadata_dir:
        parcel = packages.pack_folder(order.metadata_dir, single_package=order.single_package)
        return run_async(_send(project, target, order, lambda _: parcel))
    components = selections.resolve(
        project, order.selection, api_version=order.api_version, may_be_empty=bool(order.destructive)
    )
    _tell_of_destructive(order)
    if not (components.components or order.destructive):
        note("Nothing to deploy: the project has no definitions.")
        if order.as_json:
            print_json({"id": None, "status": "Succeeded", "files": []})
        return EXIT_PASSED
    return run_async(_send(project, target, order, lambda connection: _pack(connection, project, components, order)))


def _tell_of_destructive(order: _Order) -> None:
    """Says how destructive changes that stand beside the manifest are sent, for none is by itself."""
    from evalmeta.model.component import DESTRUCTIVE_FILES, PRE_DESTRUCTIVE_FILE  # noqa: PLC0415 - not for --help

    manifest = order.selection.manifest
    named = {path.resolve() for path in order.destructive.values()}
    for name in DESTRUCTIVE_FILES if manifest else ():
        path = manifest.parent / name if manifest else Path(name)
        if path.is_file() and path.resolve() not in named:
            when = "pre" if name == PRE_DESTRUCTIVE_FILE else "post"
            note(f"Warning: {path} is not sent. To delete what it names: --{when}-destructive-changes {path}")


def _pack(connection: Connection, project: Project, components: ComponentSet, order: _Order) -> Parcel:
    from evalmeta.api import packages  # noqa: PLC0415 - not needed for --help

    return packages.pack_project(project, components, destructive=order.destructive, newest=connection.api_version)


async def _send(project: Project, target: Target | None, order: _Order, pack: Callable[[Connection], Parcel]) -> int:
    from evalmeta.api import deployments  # noqa: PLC0415 - not needed for --help

    async with connected(project, target, api_version=order.api_version) as connection:
        parcel = pack(connection)
        job_id = await deployments.start(
            connection, project, parcel, options=_options(order), ignore_conflicts=order.ignore_conflicts
        )
        if order.is_async:
            what = "Validation" if order.dry_run else "Deployment"
            print_going_on(job_id, what, as_json=order.as_json)
            return EXIT_PASSED
        wait = seconds_of(order.wait, otherwise=limits.DEPLOY_WAIT_SECONDS)

        async def finish(show: Callable[[DeployResult], None]) -> Deployment:
            return await deployments.finish(connection, project, job_id, parcel=parcel, wait=wait, on_progress=show)

        outcome = await follow(finish, job_id, as_json=order.as_json)
    if outcome is None:
        return EXIT_WAIT_RAN_OUT
    return print_outcome(outcome, as_json=order.as_json)


def _options(order: _Order) -> DeployOptions:
    from evalmeta.protocol.metadata_api import DeployOptions  # noqa: PLC0415 - not needed for --help

    return DeployOptions(
        check_only=order.dry_run,
        ignore_warnings=order.ignore_warnings,
        purge_on_delete=order.purge_on_delete,
        rollback_on_error=not order.ignore_errors,
        run_tests=order.tests,
        test_level=order.test_level,
    )
