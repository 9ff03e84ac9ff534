"""Deploying over the Metadata API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.client.polling import poll
from evalmeta.client.retries import persist
from evalmeta.wire.messages import AsyncResult, CancelResult, DeployOptions, DeployResult
from evalmeta.wire.soap import cancel_deploy_call, check_deploy_call, deploy_call, quick_deploy_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection

__all__ = ["cancel", "check", "deploy", "follow", "quick_deploy", "submit"]


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
