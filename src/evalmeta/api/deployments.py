"""Deployments: start, follow, look up and cancel them, and remember what they changed."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta import limits
from evalmeta.api.packages import DeployPackage, pack_project
from evalmeta.api.sync import hashes_of, receipts_of, refuse_newer_in_org, remember_deployment, tracking_of
from evalmeta.client import metadata
from evalmeta.errors import DeployFailed, EvalmetaError, NotFound, OrgFault, Suggestion, UsageError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.components import entries_of
from evalmeta.package.files import ComponentFile, FileState, shown
from evalmeta.package.folders import find_components
from evalmeta.protocol.metadata_api import DeployMessage, DeployOptions, DeployResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import ComponentSet
    from evalmeta.package.project import Project
    from evalmeta.package.replacements import Replacements
    from evalmeta.store.components import Sent


_JOB_ID: Final = re.compile(r"0Af[A-Za-z0-9]{12}(?:[A-Za-z0-9]{3})?")
_DEFAULT: Final = DeployOptions()


@dataclass(frozen=True, slots=True)
class Deployment:
    """The state of a deployment: the org's reply, and what was deployed and deleted, or would have been.

    Problems say why components were refused; warnings are about files, messages about the deployment as a whole.
    """

    result: DeployResult
    components: tuple[ComponentFile, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Return its id."""
        return self.result.id

    @property
    def status(self) -> str:
        """Return its status, such as `Succeeded`, `SucceededPartial` or `InProgress`."""
        return self.result.status


async def deploy(
    connection: Connection, project: Project, components: ComponentSet, *, ignore_conflicts: bool = False
) -> Deployment:
    """Validate components, send them, and wait for the outcome: all of them are deployed, or none.

    Args:
        connection: the org.
        project: the project of the components.
        components: what to deploy.
        ignore_conflicts: overwrite changes that were made in the org.

    Raises:
        InvalidMetadata: the components have errors; nothing was sent.
        Conflict: components were changed in the org; nothing was sent.
        DeployFailed: the org refused a component; the org was not changed.
        OrgError: the org cannot be reached or refuses the call.
    """
    package = pack_project(project, components, newest=connection.api_version, connection=connection)
    job_id = await start(connection, project, package, ignore_conflicts=ignore_conflicts)
    return await finish(connection, project, job_id, package=package)


async def start(
    connection: Connection,
    project: Project,
    package: DeployPackage,
    *,
    options: DeployOptions = _DEFAULT,
    ignore_conflicts: bool = False,
) -> str:
    """Send a package, remember its deployment as the project's most recent one, and return its id."""
    if package.components and not ignore_conflicts:
        with tracking_of(project, connection) as tracking:
            await refuse_newer_in_org(connection, project, tracking, package.components)
    options = replace(options, single_package=package.single_package)
    kind: Literal["validate", "deploy"] = "validate" if options.check_only else "deploy"
    submit = partial(metadata.submit, connection, package.zip_file, options=options)
    return await _with_receipt(connection, project, submit, kind=kind, sent=hashes_of(package.zip_file))


async def finish(
    connection: Connection,
    project: Project,
    job_id: str,
    *,
    package: DeployPackage | None = None,
    wait: float | None = limits.DEPLOY_WAIT_SECONDS,
    on_progress: Callable[[DeployResult], None] = lambda _: None,
) -> Deployment:
    """Wait for a deployment, remember what it changed, and return its outcome; `package` is what was sent, if known."""
    with _job_errors(job_id):
        result = await metadata.follow(connection, job_id, wait=wait, on_progress=on_progress)
    _remember(connection, project, result)
    outcome = outcome_of(result, project, package)
    if result.status in {"Succeeded", "SucceededPartial"}:
        return outcome
    raise failure_of(outcome)


async def fetch(connection: Connection, project: Project, job_id: str) -> Deployment:
    """Return the current state of a deployment; if it is done, remember what it changed."""
    with _job_errors(job_id):
        result = await metadata.check(connection, job_id)
    if result.done:
        _remember(connection, project, result)
    return outcome_of(result, project)


async def cancel(
    connection: Connection, job_id: str, *, wait: float | None = limits.DEPLOY_WAIT_SECONDS
) -> DeployResult | None:
    """Cancel a deployment and return its final state; with `wait` 0 return None at once."""
    with _job_errors(job_id):
        await metadata.cancel(connection, job_id)
        return None if wait == 0 else await metadata.follow(connection, job_id, wait=wait)


async def quick_deploy(connection: Connection, project: Project, validation_id: str) -> str:
    """Deploy exactly what the org validated before, and return the id of the deployment for `finish`."""
    with receipts_of(project, connection) as receipts:
        sent = receipts.sent(validation_id)
    with _job_errors(validation_id):
        submit = partial(metadata.quick_deploy, connection, validation_id)
        return await _with_receipt(connection, project, submit, kind="deploy", sent=sent)


async def _with_receipt(
    connection: Connection,
    project: Project,
    submit: Callable[[], Awaitable[str]],
    *,
    kind: Literal["validate", "deploy"],
    sent: Sent | None,
) -> str:
    """Submit a job and return its id; what it sends is on disk before, because this process may be killed."""
    with receipts_of(project, connection) as receipts:
        number = receipts.keep(kind, "", now=time.time(), sent=sent)
        job_id = await submit()
        receipts.name(number, job_id)
    return job_id


def most_recent(connection: Connection, project: Project, *, validation: bool = False) -> str:
    """Return the id of the project's most recent deployment in an org, or of its most recent validation."""
    with receipts_of(project, connection) as receipts:
        job_id = receipts.latest("validate") if validation else receipts.latest("deploy", "validate")
    if job_id is None:
        what = "validation" if validation else "deployment"
        raise NotFound(f"no {what} of this project in this org is known", actions=["Name it: --job-id"])
    return job_id


class _Files(NamedTuple):
    """The user's files that were sent: components by type and name, and other files by their names in the zip."""

    components: Mapping[tuple[str, str], str]
    in_bundles: Mapping[str, str]
    destructive: Mapping[str, str]

    def of(self, message: DeployMessage) -> str:
        """Return the file that an org's message is about; the name in the zip if the file is not known."""
        of_component = self.components.get((message.component_type, message.full_name))
        in_bundle = self.in_bundles.get(message.file_name)
        return self.destructive_of(message) or in_bundle or of_component or message.file_name

    def destructive_of(self, message: DeployMessage) -> str:
        """Return the file of destructive changes that a message is about; empty if it is about something else."""
        return self.destructive.get(message.file_name.rpartition("/")[2], "")


def outcome_of(result: DeployResult, project: Project, package: DeployPackage | None = None) -> Deployment:
    """Return a deployment with the project's files; `package` is what was sent, if it is known."""
    components = () if package is None else package.components
    if package is None:
        # Errors in the project's files do not matter to what an org has done already.
        with suppress(EvalmetaError):
            components = find_components(project)
    destructive = package.destructive if package else {}
    files = _Files(
        {(component.type.name, component.full_name): shown(component.path) for component in components},
        {
            entry: shown(path)
            for component in components
            if component.type.is_bundle
            for entry, path in entries_of(component)
        },
        {name: shown(path) for name, path in destructive.items()},
    )
    warnings, messages = (package.warnings, package.messages) if package else ((), ())
    known = {problem.location.path for problem in warnings}
    return Deployment(
        result,
        tuple(
            ComponentFile(_state(success), success.full_name, files.of(success))
            for success in result.details.component_successes
            if success.component_type
        ),
        tuple(_problem(failure, files, project.replacements) for failure in result.details.component_failures),
        warnings,
        (*messages, *map(project.replacements.hide_values, _org_warnings(result, known, files))),
    )


def failure_of(outcome: Deployment) -> DeployFailed:
    """Return the error for a deployment that failed or was canceled."""
    result = outcome.result
    if result.status == "Canceled":
        who = f" by {result.canceled_by_name}" if result.canceled_by_name else ""
        return DeployFailed(f"deployment {result.id} was canceled{who}; the org was not changed")
    reason = f": {result.error_message}" if result.error_message else ""
    what = "validation" if result.check_only else "deployment"
    return DeployFailed(f"{what} {result.id} failed{reason}; the org was not changed", problems=outcome.problems)


def _remember(connection: Connection, project: Project, result: DeployResult) -> None:
    with receipts_of(project, connection) as receipts:
        sent = receipts.sent(result.id)
        if sent is None or result.check_only:
            return
        with tracking_of(project, connection) as tracking:
            remember_deployment(tracking, result, sent)
        receipts.delete_sent(result.id)


@contextmanager
def _job_errors(job_id: str) -> Iterator[None]:
    """Check a deployment's id, and translate the org's errors about it."""
    if not _JOB_ID.fullmatch(job_id):
        raise UsageError(
            f"{job_id!r} is not a valid deployment id, which starts with 0Af",
            actions=["Use the id that `evalmeta deploy` printed."],
        )
    try:
        yield
    except OrgFault as fault:
        if fault.code == "INVALID_CROSS_REFERENCE_KEY":
            raise NotFound(f"the org has no deployment {job_id} that you can access") from None
        if fault.code == "INVALID_ID_FIELD":
            reason = str(fault).removeprefix(f"{fault.code}: ")
            way_out = Suggestion("See its result", "deploy", "report", "--job-id", job_id)
            raise EvalmetaError(f"deployment {job_id}: {reason}", actions=[way_out]) from None
        raise


def _state(message: DeployMessage) -> FileState | Literal["Deleted"]:
    if message.created:
        return "Created"
    if message.deleted:
        return "Deleted"
    return "Changed" if message.changed else "Unchanged"


def _org_warnings(result: DeployResult, known: set[str], files: _Files) -> Iterator[str]:
    """Yield the org's warnings, except those about components whose files already have a warning."""
    for success in result.details.component_successes:
        if success.problem and (files.destructive_of(success) or files.of(success) not in known):
            yield f"{files.of(success)}: {success.problem}"


def _problem(failure: DeployMessage, files: _Files, replacements: Replacements) -> Problem:
    return Problem(
        "refused",
        Severity.ERROR,
        Location(files.of(failure), failure.line_number or 0, failure.column_number or 0),
        replacements.hide_values(failure.problem or "the org gave no reason"),
        component=f"{failure.component_type}:{failure.full_name}" if failure.component_type else "",
    )
