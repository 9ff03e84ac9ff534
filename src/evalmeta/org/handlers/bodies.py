"""Reading a request's body without taking more than the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.errors import OrgFault

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["read_body"]


async def read_body(request: Request, *, limit: int) -> bytes:
    """Gives the body's bytes.

    Raises:
        OrgFault: it is larger than `limit` bytes; the rest is not read.
    """
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise OrgFault(f"a message may have {limit:,} bytes", code="REQUEST_TOO_LARGE")
        pieces.append(piece)
    return b"".join(pieces)
