"""Orgs that answer as they are told, reached through httpx's own transport for that."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import httpx

from evalmeta.client.connection import Connection
from evalmeta.model.registry import ApiVersion

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
