"""Retrieving and listing over the Metadata API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.client.polling import poll
from evalmeta.client.retries import persist
from evalmeta.errors import OrgFault
from evalmeta.wire.messages import AsyncResult, DescribeResult, FileProperties, RetrieveResult
from evalmeta.wire.soap import check_retrieve_call, describe_call, list_call, retrieve_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.manifest import Manifest

__all__ = ["describe", "list_components", "retrieve"]


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
