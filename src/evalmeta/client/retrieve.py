"""Retrieving and listing over the Metadata API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.client.polling import poll
from evalmeta.wire.messages import AsyncResult, DescribeResult, FileProperties, RetrieveResult
from evalmeta.wire.soap import check_retrieve_call, describe_call, list_call, retrieve_call

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.model.manifest import Manifest

__all__ = ["describe", "list_components", "retrieve"]


async def retrieve(
    connection: Connection, manifest: Manifest, *, wait: float | None = limits.RETRIEVE_WAIT_SECONDS
) -> RetrieveResult:
    """Fetches what a manifest selects as a zip; members that the org does not have become messages.

    Raises:
        OrgError: the org cannot be reached or refuses the call.
        WaitRanOut: the retrieve goes on after `wait` seconds.
    """
    receipt = await connection.call_for_one(retrieve_call(manifest, str(connection.api_version)), AsyncResult)

    async def check() -> RetrieveResult:
        return await connection.call_for_one(check_retrieve_call(receipt.id), RetrieveResult)

    return await poll(check, lambda result: result.done, job_id=receipt.id, wait=wait, every=connection.poll_seconds)


async def list_components(connection: Connection, type_name: str) -> list[FileProperties]:
    """Lists the org's components of a type."""
    return await connection.call(list_call(type_name, str(connection.api_version)), FileProperties)


async def describe(connection: Connection) -> DescribeResult:
    """Tells which metadata types the org has."""
    return await connection.call_for_one(describe_call(str(connection.api_version)), DescribeResult)
