"""Reading a request's body without taking more than the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.errors import OrgFault

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

__all__ = ["limited", "read_body"]


async def limited(request: Request, *, limit: int) -> AsyncGenerator[bytes, None]:
    """Yields the pieces of the body.

    Raises:
        OrgFault: it is larger than `limit` bytes; the rest is not read.
    """
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise OrgFault(f"a message may have {limit:,} bytes", code="REQUEST_TOO_LARGE")
        yield piece


async def read_body(request: Request, *, limit: int) -> bytes:
    """Gives the body's bytes; raises like `limited`."""
    return b"".join([piece async for piece in limited(request, limit=limit)])
