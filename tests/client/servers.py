"""Orgs that answer as they are told: through httpx's own transport for that, or on loopback."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import httpx

from evalmeta.client.connection import Connection
from evalmeta.model.registry import ApiVersion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

T = TypeVar("T")

TOKEN = "00D000000000001!top.secret_token"  # noqa: S105 - of no org
URL = "https://desk.example.invalid"


def connect(transport: httpx.AsyncBaseTransport, do: Callable[[Connection], Awaitable[T]], *, token: str = TOKEN) -> T:
    """Opens a connection by way of a transport, does something, and gives what came of it."""

    async def go() -> T:
        version = ApiVersion(66)
        async with Connection(
            url=URL, token=token, api_version=version, transport=transport, poll_seconds=0.001
        ) as connection:
            return await do(connection)

    return asyncio.run(go())


def answering(*replies: tuple[int, bytes]) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """Gives a transport that answers with these statuses and bodies in turn, and the requests it gets."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        status, body = replies[min(len(requests), len(replies)) - 1]
        return httpx.Response(status, content=body)

    return httpx.MockTransport(answer), requests


def failing(error: Exception) -> httpx.MockTransport:
    """Gives a transport that raises."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    return httpx.MockTransport(answer)


@asynccontextmanager
async def replying(*bodies: bytes) -> AsyncIterator[str]:
    """Listens on loopback, answers with these bodies in turn, whatever is asked, and gives the address."""
    waiting = list(bodies)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        body = waiting.pop(0)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
