"""Orgs that answer as they are told: through httpx's own transport for that, or on loopback."""

from __future__ import annotations

import asyncio
import re
import socketserver
import threading
from contextlib import asynccontextmanager, contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import httpx

from evalmeta.client.connection import Connection
from evalmeta.model.registry import ApiVersion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

T = TypeVar("T")

TOKEN = "00D000000000001!top.secret_token"  # noqa: S105 - of no org
URL = "https://desk.example.invalid"


def connect(transport: httpx.AsyncBaseTransport, do: Callable[[Connection], Awaitable[T]], *, token: str = TOKEN) -> T:
    """Open a connection over a transport, use it, and return the result."""

    async def go() -> T:
        version = ApiVersion(66)
        async with Connection(
            url=URL, token=token, api_version=version, transport=transport, poll_seconds=0.001
        ) as connection:
            return await do(connection)

    return asyncio.run(go())


def answering(*replies: tuple[int, bytes]) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """Return a transport that answers with these statuses and bodies in turn, and the requests that it receives."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        status, body = replies[min(len(requests), len(replies)) - 1]
        return httpx.Response(status, content=body)

    return httpx.MockTransport(answer), requests


def failing(error: Exception) -> httpx.MockTransport:
    """Return a transport that raises."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    return httpx.MockTransport(answer)


@asynccontextmanager
async def replying(*bodies: bytes) -> AsyncIterator[str]:
    """Listen on loopback, answer any request with these bodies in turn, and yield the address."""
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


class _HasAddress(Protocol):
    @property
    def url(self) -> str: ...


class Loopback(NamedTuple):
    """A server on loopback: its address, and the requests that it got, heads and bodies."""

    url: str
    requests: list[bytes]


def http_reply(status: int, body: bytes, *headers: str) -> bytes:
    """Write a whole reply."""
    head = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


@contextmanager
def listening(answer: Callable[[bytes], bytes]) -> Iterator[Loopback]:
    """Listen on loopback in a thread, write the bytes that `answer` returns for each request, and disconnect."""
    requests: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b"".join(takewhile(lambda line: line != b"\r\n", self.rfile))
            length = re.search(rb"(?i)content-length: (\d+)", head)
            requests.append(head + b"\r\n" + self.rfile.read(int(length[1]) if length else 0))
            self.wfile.write(answer(requests[-1]))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Loopback(f"http://127.0.0.1:{server.server_address[1]}", requests)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def replying_with(*replies: bytes) -> Iterator[Loopback]:
    """Listen like `listening` and send these replies in turn, then repeat the last one."""
    waiting = list(replies)
    with listening(lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0]) as server:
        yield server


def visit(server: _HasAddress, do: Callable[[Connection], Awaitable[T]]) -> T:
    """Connect to a server on loopback, use the connection, and return the result."""

    async def go() -> T:
        async with Connection(
            url=server.url, token=TOKEN, api_version=ApiVersion(66), poll_seconds=0.001
        ) as connection:
            return await do(connection)

    return asyncio.run(go())
