"""Deploying over the Metadata API.

Retrieving and listing over the Metadata API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.client.http import persist, poll
from evalmeta.errors import OrgFault
from evalmeta.protocol.metadata_api import (
    AsyncResult,
    CancelResult,
    DeployOptions,
    DeployResult,
    DescribeResult,
    FileProperties,
    RetrieveResult,
)
from evalmeta.protocol.soap import (
    cancel_deploy_call,
    check_deploy_call,
    check_retrieve_call,
    deploy_call,
    describe_call,
    list_call,
    quick_deploy_call,
    retrieve_call,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Manifest


async def submit(
    connection: Connection,
    zip_file: bytes,
    *,
    options: DeployOptions = DeployOptions(),  # noqa: B008 - immutable
) -> str:
    """Sends a zip and gives the id of its deployment, which goes on in the org.

    The call is made again only where the org surely did not accept the first one.

    Raises:
        OrgUnreachable: no answer came; the org may have accepted the zip unless `is_undone`.
        OrgError: the org refuses the call.
    """
    call = deploy_call(zip_file, options)
    receipt = await persist(
        lambda: connection.call_for_one(call, AsyncResult), every=connection.poll_seconds, changes=True
    )
    return receipt.id


async def check(connection: Connection, job_id: str) -> DeployResult:
    """Asks once how far a deployment is.

    Raises:
        OrgError: the org cannot be reached, or has no such deployment of this user's.
    """
    return await connection.call_for_one(check_deploy_call(job_id), DeployResult)


async def follow(
    connection: Connection,
    job_id: str,
    *,
    wait: float | None = limits.DEPLOY_WAIT_SECONDS,
    on_progress: Callable[[DeployResult], None] = lambda _: None,
) -> DeployResult:
    """Waits until a deployment is done, whether it succeeded or failed, and reports every answer on the way.

    Raises:
        OrgError: the org cannot be reached or refuses the call.
        WaitRanOut: the deployment goes on after `wait` seconds.
    """

    async def ask() -> DeployResult:
        result = await check(connection, job_id)
        on_progress(result)
        return result

    return await poll(ask, lambda result: result.done, job_id=job_id, wait=wait, every=connection.poll_seconds)


async def deploy(
    connection: Connection,
    zip_file: bytes,
    *,
    options: DeployOptions = DeployOptions(),  # noqa: B008 - immutable
    wait: float | None = limits.DEPLOY_WAIT_SECONDS,
) -> DeployResult:
    """Sends a zip and waits until its deployment is done; raises like `submit` and `follow`."""
    job_id = await submit(connection, zip_file, options=options)
    return await follow(connection, job_id, wait=wait)


async def cancel(connection: Connection, job_id: str) -> None:
    """Asks the org to cancel a deployment; `follow` tells what came of it.

    Raises:
        OrgFault: the deployment is over already (INVALID_ID_FIELD), or is not this user's.
        OrgError: the org cannot be reached.
    """
    await persist(
        lambda: connection.call_for_one(cancel_deploy_call(job_id), CancelResult),
        every=connection.poll_seconds,
        changes=True,
    )


async def quick_deploy(connection: Connection, validation_id: str) -> str:
    """Has the org deploy exactly what it validated, and gives the id of that deployment; raises like `submit`.

    Raises:
        OrgFault: the validation failed, was used, is older than 10 days, or the org has changed since.
    """
    call = quick_deploy_call(validation_id)
    return await persist(lambda: connection.call_for_text(call), every=connection.poll_seconds, changes=True)


async def retrieve(
    connection: Connection,
    manifest: Manifest,
    *,
    single_package: bool = False,
    wait: float | None = limits.RETRIEVE_WAIT_SECONDS,
    on_progress: Callable[[RetrieveResult], None] = lambda _: None,
) -> RetrieveResult:
    """Fetches what a manifest selects as a zip; members that the org does not have become messages.

    Args:
        connection: the org.
        manifest: what to fetch.
        single_package: leave out the folder `unpackaged` around what is in the zip.
        wait: seconds, at the most; None waits without end.
        on_progress: is told every answer on the way.

    Raises:
        OrgFault: the org could not carry it out.
        OrgError: the org cannot be reached or refuses the call.
        WaitRanOut: the retrieve goes on after `wait` seconds.
    """
    call = retrieve_call(manifest, str(connection.api_version), single_package=single_package)
    receipt = await persist(lambda: connection.call_for_one(call, AsyncResult), every=connection.poll_seconds)

    async def ask() -> RetrieveResult:
        result = await connection.call_for_one(check_retrieve_call(receipt.id), RetrieveResult)
        on_progress(result)
        return result

    result = await poll(ask, lambda answer: answer.done, job_id=receipt.id, wait=wait, every=connection.poll_seconds)
    if not result.success:
        reason = result.error_message or "the org gave no reason"
        raise OrgFault(f"retrieve {receipt.id} failed: {reason}", code=result.error_status_code or "UNKNOWN_EXCEPTION")
    return result


async def list_components(connection: Connection, type_name: str) -> list[FileProperties]:
    """Lists the org's components of a type."""
    call = list_call(type_name, str(connection.api_version))
    return await persist(lambda: connection.call(call, FileProperties), every=connection.poll_seconds)


async def describe(connection: Connection) -> DescribeResult:
    """Tells which metadata types the org has."""
    call = describe_call(str(connection.api_version))
    return await persist(lambda: connection.call_for_one(call, DescribeResult), every=connection.poll_seconds)
