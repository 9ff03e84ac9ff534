"""What an org has: components, which the Metadata API deploys, retrieves and lists, and the versions of agents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from evalmeta import limits
from evalmeta.errors import EvalmetaError, OrgFault
from evalmeta.protocol import soap
from evalmeta.protocol.json_fields import integer, list_of_objects, object_at, text
from evalmeta.protocol.metadata_api import (
    AsyncResult,
    CancelResult,
    DeployOptions,
    DeployResult,
    DescribeResult,
    FileProperties,
    RetrieveResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import Manifest


_DEFAULT_OPTIONS: Final = DeployOptions()


async def submit(connection: Connection, zip_file: bytes, *, options: DeployOptions = _DEFAULT_OPTIONS) -> str:
    """Send a zip and return the id of its deployment, which continues in the org.

    After OrgUnreachable, the org may have accepted the zip unless `is_undone`; otherwise the call is repeated.
    """
    call = soap.deploy_call(zip_file, options)
    job = await connection.retry(lambda: connection.call_for_one(call, AsyncResult), changes=True)
    return job.id


async def check(connection: Connection, job_id: str) -> DeployResult:
    """Return the current status of a deployment."""
    call = soap.call_of("checkDeployStatus", asyncProcessId=job_id, includeDetails="true")
    return await connection.call_for_one(call, DeployResult)


async def follow(
    connection: Connection,
    job_id: str,
    *,
    wait: float | None = limits.DEPLOY_WAIT_SECONDS,
    on_progress: Callable[[DeployResult], None] = lambda _: None,
) -> DeployResult:
    """Wait until a deployment has succeeded or failed, and report its progress; raise WaitRanOut after `wait`."""

    async def refresh() -> DeployResult:
        result = await check(connection, job_id)
        on_progress(result)
        return result

    return await connection.poll(refresh, lambda result: result.done, job_id=job_id, wait=wait)


async def deploy(
    connection: Connection,
    zip_file: bytes,
    *,
    options: DeployOptions = _DEFAULT_OPTIONS,
    wait: float | None = limits.DEPLOY_WAIT_SECONDS,
) -> DeployResult:
    """Send a zip and wait until its deployment is done; raise like `submit` and `follow`."""
    job_id = await submit(connection, zip_file, options=options)
    return await follow(connection, job_id, wait=wait)


async def cancel(connection: Connection, job_id: str) -> None:
    """Ask the org to cancel a deployment; `follow` returns the outcome.

    Raise OrgFault if it is already over (INVALID_ID_FIELD), or belongs to another user.
    """
    call = soap.call_of("cancelDeploy", String=job_id)
    await connection.retry(lambda: connection.call_for_one(call, CancelResult), changes=True)


async def quick_deploy(connection: Connection, validation_id: str) -> str:
    """Deploy exactly what the org has validated, and return the id of the deployment; raise like `submit`.

    Raise OrgFault if the validation failed, was used, is older than 10 days, or the org has changed since.
    """
    call = soap.call_of("deployRecentValidation", validationId=validation_id)
    return await connection.retry(lambda: connection.call_for_text(call), changes=True)


async def retrieve(
    connection: Connection,
    manifest: Manifest,
    *,
    single_package: bool = False,
    wait: float | None = limits.RETRIEVE_WAIT_SECONDS,
    on_progress: Callable[[RetrieveResult], None] = lambda _: None,
) -> RetrieveResult:
    """Retrieve the components of a manifest as a zip; members that are not in the org become messages.

    `single_package` omits the folder `unpackaged` in the zip, and `on_progress` is called with every status. Raise
    OrgFault if the retrieve failed, WaitRanOut if it is still in progress after `wait` seconds.
    """
    call = soap.retrieve_call(manifest, str(connection.api_version), single_package=single_package)
    job = await connection.retry(lambda: connection.call_for_one(call, AsyncResult))

    status = soap.call_of("checkRetrieveStatus", asyncProcessId=job.id, includeZip="true")

    async def refresh() -> RetrieveResult:
        result = await connection.call_for_one(status, RetrieveResult)
        on_progress(result)
        return result

    result = await connection.poll(refresh, lambda result: result.done, job_id=job.id, wait=wait)
    if not result.success:
        reason = result.error_message or "the org gave no reason"
        raise OrgFault(f"retrieve {job.id} failed: {reason}", code=result.error_status_code or "UNKNOWN_EXCEPTION")
    return result


async def list_components(connection: Connection, type_name: str) -> list[FileProperties]:
    """Return the org's components of a type."""
    call = soap.list_call(type_name, str(connection.api_version))
    return await connection.retry(lambda: connection.call(call, FileProperties))


async def describe(connection: Connection) -> DescribeResult:
    """Return the metadata types of the org."""
    call = soap.call_of("describeMetadata", asOfVersion=str(connection.api_version))
    return await connection.retry(lambda: connection.call_for_one(call, DescribeResult))


_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_VERSIONS: Final = (
    "SELECT DeveloperName, (SELECT DeveloperName, VersionNumber, Status FROM BotVersions)"
    " FROM BotDefinition WHERE DeveloperName = '{}'"
)


class AgentVersion(NamedTuple):
    """A version of an agent in an org."""

    name: str
    number: int
    is_active: bool

    def is_named(self, version: str) -> bool:
        """Return whether the <subjectVersion> of a test names this version."""
        return version.casefold() in {self.name.casefold(), f"v{self.number}"}


def names_a_version(subject_version: str | None) -> bool:
    """Return whether the <subjectVersion> of a test names a version, and not whichever is the latest."""
    return bool(subject_version) and str(subject_version).casefold() != "latest"


async def agent_versions(connection: Connection, agent: str) -> list[AgentVersion]:
    """Return the versions of an agent, the newest first; none if the org does not say."""
    if not _NAME.fullmatch(agent):
        return []
    try:
        reply = await connection.get(f"/query?q={quote(_VERSIONS.format(agent))}")
    except EvalmetaError:
        return []
    versions = [
        AgentVersion(
            text(value, "DeveloperName"), integer(value, "VersionNumber", 0), text(value, "Status") == "Active"
        )
        for agents in list_of_objects(reply, "records")
        for value in list_of_objects(object_at(agents, "BotVersions"), "records")
    ]
    return sorted(versions, key=lambda version: version.number, reverse=True)
