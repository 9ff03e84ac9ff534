"""Deploying over the Metadata API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.client.polling import poll
from evalmeta.wire.messages import AsyncResult, DeployOptions, DeployResult
from evalmeta.wire.soap import check_deploy_call, deploy_call

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection

__all__ = ["deploy"]


async def deploy(
    connection: Connection,
    zip_file: bytes,
    *,
    options: DeployOptions = DeployOptions(),  # noqa: B008 - immutable
    wait: float | None = limits.DEPLOY_WAIT_SECONDS,
) -> DeployResult:
    """Sends a zip and waits until its deployment is done, whether it succeeded or failed.

    Raises:
        OrgError: the org cannot be reached or refuses the call.
        WaitRanOut: the deployment goes on after `wait` seconds.
    """
    receipt = await connection.call_for_one(deploy_call(zip_file, options), AsyncResult)

    async def check() -> DeployResult:
        return await connection.call_for_one(check_deploy_call(receipt.id), DeployResult)

    return await poll(check, lambda result: result.done, job_id=receipt.id, wait=wait, every=connection.poll_seconds)
