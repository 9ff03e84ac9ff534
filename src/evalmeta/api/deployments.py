"""Deployments: started, followed, looked at, canceled, repeated from a validation; what they did is remembered.

Outcomes: what became of a deployment, in terms of the project that it came from.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from evalmeta import limits
from evalmeta.api.files import shown
from evalmeta.api.packages import pack_project
from evalmeta.api.sync import hashes_of, receipts_of, refuse_newer_in_org, remember_deployment, tracking_of
from evalmeta.client import metadata as deploying
from evalmeta.errors import DeployFailed, EvalmetaError, NotFound, OrgFault, Suggestion, UsageError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.resolver import find_components
from evalmeta.protocol.metadata_api import DeployOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evalmeta.api.packages import Parcel
    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component, ComponentSet
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployMessage, DeployResult
    from evalmeta.store.tracking import ReceiptKind


_JOB_ID: Final = re.compile(r"0Af[A-Za-z0-9]{12}(?:[A-Za-z0-9]{3})?")
_DEFAULT: Final = DeployOptions()


async def deploy(
    connection: Connection, project: Project, components: ComponentSet, *, ignore_conflicts: bool = False
) -> Deployment:
    """Checks components, sends them, and waits for the outcome: all of them are deployed, or none.

    Args:
        connection: the org.
        project: whose components they are.
        components: what to deploy.
        ignore_conflicts: overwrite what was changed in the org.

    Raises:
        InvalidMetadata: the check found errors; nothing was sent.
        Conflict: the org has changes since both sides had the same; nothing was sent.
        DeployFailed: the org refused something; nothing was changed.
        OrgError: the org cannot be reached or refuses the call.
    """
    parcel = pack_project(project, components, newest=connection.api_version)
    job_id = await start(connection, project, parcel, ignore_conflicts=ignore_conflicts)
    return await finish(connection, project, job_id, parcel=parcel)


async def start(
    connection: Connection,
    project: Project,
    parcel: Parcel,
    *,
    options: DeployOptions = _DEFAULT,
    ignore_conflicts: bool = False,
) -> str:
    """Sends a parcel and gives the id of its deployment, which is remembered as the project's most recent one.

    Raises:
        Conflict: the org has changes since both sides had the same; nothing was sent.
        OrgError: the org cannot be reached or refuses the call.
    """
    if parcel.components and not ignore_conflicts:
        with tracking_of(project, connection) as tracking:
            await refuse_newer_in_org(connection, tracking, parcel.components)
    options = replace(options, single_package=parcel.single_package)
    job_id = await deploying.submit(connection, parcel.zip_file, options=options)
    kind: ReceiptKind = "validate" if options.check_only else "deploy"
    with receipts_of(project, connection) as receipts:
        receipts.keep(kind, job_id, now=time.time(), sent=hashes_of(parcel.zip_file))
    return job_id


async def finish(
    connection: Connection,
    project: Project,
    job_id: str,
    *,
    parcel: Parcel | None = None,
    wait: float | None = limits.DEPLOY_WAIT_SECONDS,
    on_progress: Callable[[DeployResult], None] = lambda _: None,
) -> Deployment:
    """Waits for a deployment and gives its outcome; what both sides have then is remembered.

    Args:
        connection: the org.
        project: that what was deployed belongs to.
        job_id: the deployment.
        parcel: what was sent, if it is at hand.
        wait: seconds, at the most; None waits without end.
        on_progress: is told every answer on the way.

    Raises:
        DeployFailed: the org refused something, or somebody canceled it; nothing was changed.
        NotFound: the org has no such deployment.
        WaitRanOut: it goes on.
        OrgError: the org cannot be reached or refuses the call.
    """
    with _named_job(job_id):
        result = await deploying.follow(connection, job_id, wait=wait, on_progress=on_progress)
    _remember(connection, project, result)
    outcome = outcome_of(result, project, parcel)
    if result.status in {"Succeeded", "SucceededPartial"}:
        return outcome
    raise failure_of(outcome)


async def look(connection: Connection, project: Project, job_id: str) -> Deployment:
    """Gives a deployment as far as it is, without waiting; one that is over is remembered as `finish` does.

    Raises:
        NotFound: the org has no such deployment.
        OrgError: the org cannot be reached or refuses the call.
    """
    with _named_job(job_id):
        result = await deploying.check(connection, job_id)
    if result.done:
        _remember(connection, project, result)
    return outcome_of(result, project)


async def cancel(
    connection: Connection, job_id: str, *, wait: float | None = limits.DEPLOY_WAIT_SECONDS
) -> DeployResult | None:
    """Cancels a deployment and gives how it ended: canceled, or done before that; with `wait` 0 None.

    Raises:
        EvalmetaError: it is over already.
        NotFound: the org has no such deployment.
        WaitRanOut: the org has not canceled it yet.
        OrgError: the org cannot be reached.
    """
    with _named_job(job_id):
        await deploying.cancel(connection, job_id)
        return None if wait == 0 else await deploying.follow(connection, job_id, wait=wait)


async def quick_deploy(connection: Connection, project: Project, validation_id: str) -> str:
    """Has the org deploy exactly what it validated, and gives the id of that deployment, for `finish`.

    Raises:
        EvalmetaError: the validation failed, was used, is older than 10 days, or the org has changed since.
        NotFound: the org has no such validation.
        OrgError: the org cannot be reached.
    """
    with _named_job(validation_id):
        job_id = await deploying.quick_deploy(connection, validation_id)
    with receipts_of(project, connection) as receipts:
        receipts.keep("deploy", job_id, now=time.time(), sent=receipts.sent(validation_id))
    return job_id


def most_recent(connection: Connection, project: Project, *, validation: bool = False) -> str:
    """Gives the id of the project's most recent deployment in an org; of its most recent validation, if that is asked.

    Raises:
        NotFound: there is none.
    """
    with receipts_of(project, connection) as receipts:
        job_id = receipts.latest("validate") if validation else receipts.latest("deploy", "validate")
    if job_id is None:
        what = "validation" if validation else "deployment"
        raise NotFound(f"no {what} of this project in this org is remembered", actions=["Name it: --job-id"])
    return job_id


def _remember(connection: Connection, project: Project, result: DeployResult) -> None:
    with receipts_of(project, connection) as receipts:
        sent = receipts.sent(result.id)
        if sent is None or result.check_only:
            return
        with tracking_of(project, connection) as tracking:
            remember_deployment(tracking, result, sent)
        receipts.delete_sent(result.id)


@contextmanager
def _named_job(job_id: str) -> Iterator[None]:
    """Refuses what is no deployment's id, and puts into words what an org says about one."""
    _check_id(job_id)
    try:
        yield
    except OrgFault as fault:
        if fault.code == "INVALID_CROSS_REFERENCE_KEY":
            raise NotFound(f"the org has no deployment {job_id} that you may see") from None
        if fault.code == "INVALID_ID_FIELD":
            reason = str(fault).removeprefix(f"{fault.code}: ")
            way_out = Suggestion("See how it ended", "deploy", "report", "--job-id", job_id)
            raise EvalmetaError(f"deployment {job_id}: {reason}", actions=[way_out]) from None
        raise


def _check_id(job_id: str) -> None:
    if not _JOB_ID.fullmatch(job_id):
        raise UsageError(
            f"{job_id!r} is no deployment's id: they begin with 0Af", actions=["Take the one that deploy printed."]
        )


@dataclass(frozen=True, slots=True)
class DeployedComponent:
    """What a deployment did to one component."""

    state: FileState | Literal["Deleted"]
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment as far as it is.

    Attributes:
        result: what the org says of it.
        components: what was deployed and deleted, or would have been.
        problems: why components were refused.
        warnings: about files.
        messages: remarks on the whole.
    """

    result: DeployResult
    components: tuple[DeployedComponent, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Gives its id."""
        return self.result.id

    @property
    def status(self) -> str:
        """Gives its status, such as `Succeeded`, `SucceededPartial` or `InProgress`."""
        return self.result.status


def outcome_of(result: DeployResult, project: Project, parcel: Parcel | None = None) -> Deployment:
    """Reads what an org says of a deployment; `parcel` is what was sent, if it is at hand."""
    files = _files(_components(project) if parcel is None else parcel.components)
    warnings = () if parcel is None else parcel.warnings
    told = () if parcel is None else parcel.messages
    done = [message for message in result.details.component_successes if message.component_type]
    return Deployment(
        result,
        tuple(DeployedComponent(_state(each), each.full_name, _file(each, files)) for each in done),
        tuple(_problem(failure, files) for failure in result.details.component_failures),
        warnings,
        (*told, *_org_warnings(result, {problem.location.path for problem in warnings}, files)),
    )


def failure_of(outcome: Deployment) -> DeployFailed:
    """Gives the error that a deployment which failed or was canceled stands for."""
    result = outcome.result
    if result.status == "Canceled":
        who = f" by {result.canceled_by_name}" if result.canceled_by_name else ""
        return DeployFailed(f"deployment {result.id} was canceled{who}; the org was not changed")
    reason = f": {result.error_message}" if result.error_message else ""
    what = "validation" if result.check_only else "deployment"
    return DeployFailed(f"{what} {result.id} failed{reason}; the org was not changed", problems=outcome.problems)


def _components(project: Project) -> tuple[Component, ...]:
    # Files that stand in each other's way do not matter to what an org has done already.
    with suppress(EvalmetaError):
        return find_components(project)
    return ()


def _files(components: Iterable[Component]) -> dict[tuple[str, str], str]:
    """Gives where components stand here, by type and full name."""
    return {(each.type.name, each.full_name): shown(each.path) for each in components}


def _file(message: DeployMessage, files: Mapping[tuple[str, str], str]) -> str:
    return files.get((message.component_type, message.full_name), message.file_name)


def _state(message: DeployMessage) -> FileState | Literal["Deleted"]:
    if message.created:
        return "Created"
    if message.deleted:
        return "Deleted"
    return "Changed" if message.changed else "Unchanged"


def _org_warnings(result: DeployResult, known: set[str], files: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Gives what the org warns of, except about files that were warned of here already."""
    for each in result.details.component_successes:
        if each.problem and _file(each, files) not in known:
            yield f"{_file(each, files)}: {each.problem}"


def _problem(failure: DeployMessage, files: Mapping[tuple[str, str], str]) -> Problem:
    return Problem(
        "refused",
        Severity.ERROR,
        Location(_file(failure, files), failure.line_number or 0, failure.column_number or 0),
        failure.problem or "the org gave no reason",
        component=f"{failure.component_type}:{failure.full_name}" if failure.component_type else "",
    )
