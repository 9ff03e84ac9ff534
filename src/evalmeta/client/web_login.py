"""A login with a browser: the authorization code flow with PKCE, and a callback on this machine."""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.client.auth import post_grant
from evalmeta.errors import LoginFailed, UsageError
from evalmeta.wire.oauth import authorize_url, challenge_of, code_grant, read_callback

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from evalmeta.wire.oauth import TokenReply

__all__ = ["CALLBACK_PORT", "log_in_with_browser"]

# What the sf CLI uses, and so what its connected app and most people's own take as callback.
CALLBACK_PORT: Final = 1717
_PATH: Final = "/OauthRedirect"
_REQUEST: Final = re.compile(rb"GET (/[^ ?]*)(?:\?([!-~]*))? HTTP/1\.[01]\r\n")
_READ_SECONDS: Final = 10.0
_MAX_BYTES: Final = limits.MAX_CALLBACK_BYTES
_PAGE: Final = "<!DOCTYPE html><meta charset=utf-8><title>evalmeta</title><p>{text}</p>\n"


async def log_in_with_browser(
    login_url: str,
    client_id: str,
    *,
    show: Callable[[str], None],
    client_secret: str = "",
    port: int = CALLBACK_PORT,
    wait: float = limits.WEB_LOGIN_SECONDS,
) -> TokenReply:
    """Waits until somebody has logged in with a browser, and gives the session.

    Args:
        login_url: where people log in.
        client_id: the connected app's consumer key.
        show: is called with the address to open, when the callback is ready.
        client_secret: the app's secret, if it wants one.
        port: of the callback `http://localhost:PORT/OauthRedirect`; 0 is any.
        wait: seconds, at the most.

    Raises:
        LoginFailed: the org refused, or nobody logged in within the wait.
        UsageError: the port is taken.
    """
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    arrived: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    try:
        server = await asyncio.start_server(_callback(state, arrived), "127.0.0.1", port, limit=_MAX_BYTES)
    except OSError as error:
        reason = f"the callback cannot listen on port {port}: {error.strerror}"
        raise UsageError(reason, actions=["Free the port, or give --callback-port one that your app allows."]) from None
    async with server:
        redirect_uri = f"http://localhost:{server.sockets[0].getsockname()[1]}{_PATH}"
        challenge = challenge_of(verifier)
        show(authorize_url(login_url, client_id, redirect_uri=redirect_uri, state=state, challenge=challenge))
        try:
            async with asyncio.timeout(wait):
                code = await arrived
        except TimeoutError:
            raise LoginFailed(f"nobody logged in within {wait:g} seconds") from None
    grant = code_grant(client_id, code, verifier=verifier, redirect_uri=redirect_uri, client_secret=client_secret)
    return await post_grant(login_url, grant)


def _callback(
    state: str, arrived: asyncio.Future[str]
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, said = _answer(head, state, arrived)
                writer.write(_reply(status, said))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    return handle


def _answer(head: bytes, state: str, arrived: asyncio.Future[str]) -> tuple[str, str]:
    """Takes what a browser brought; whatever was not sent by this login is refused and changes nothing."""
    request = _REQUEST.match(head)
    if request is None or request[1] != _PATH.encode():
        return "404 Not Found", "Nothing is here."
    try:
        code = read_callback((request[2] or b"").decode("ascii"), state=state)
    except LoginFailed as error:
        if not arrived.done():
            arrived.set_exception(error)
        return "200 OK", "The org refused the login; the terminal says why."
    except ValueError:
        code = None
    if code is None:
        return "400 Bad Request", "This is not the answer to the login that is going on."
    if not arrived.done():
        arrived.set_result(code)
    return "200 OK", "evalmeta has what it needs. You can close this window."


def _reply(status: str, said: str) -> bytes:
    page = _PAGE.format(text=said).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
        "Connection: close\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode("ascii") + page
