"""Logins: sessions by key, refresh token, sf CLI or browser, their renewal, and the identity of their user.

A browser login is the authorization code flow with PKCE and a callback on this machine. The sf CLI is called
for its session with an org; its files are never read.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import time
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from evalmeta import limits
from evalmeta.client.http import bearer, open_http, request
from evalmeta.errors import EvalmetaError, LoginFailed, MessageUnreadable, UsageError
from evalmeta.model.login import ByKey, ByRefreshToken, Login, Renewal, Secrets
from evalmeta.model.redaction import child_environment, redacted, redacted_bytes
from evalmeta.protocol import oauth
from evalmeta.protocol.json_fields import object_at, org_url, read_object, text

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    import httpx

    from evalmeta.client.logins import Logins
    from evalmeta.model.json_value import JsonObject


_T = TypeVar("_T")
# The fields of grants that no error may contain.
_SECRETS: Final = ("assertion", "client_secret", "code", "code_verifier", "refresh_token")
_NO_TOKEN: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
# A session id or a JWT. Since 2026 sf prints a note instead, and prints the token only with its own command.
_TOKEN: Final = re.compile(r"[\w.!-]{15,}", re.ASCII)
# The port of the sf CLI, which its connected app and most others allow as callback.
CALLBACK_PORT: Final = 1717
_PATH: Final = "/OauthRedirect"
_REQUEST: Final = re.compile(rb"GET (/[^ ?]*)(?:\?([!-~]*))? HTTP/1\.[01]\r\n")
_READ_SECONDS: Final = 10.0
_MAX_BYTES: Final = limits.MAX_CALLBACK_BYTES
_PAGE: Final = "<!DOCTYPE html><meta charset=utf-8><title>evalmeta</title><p>{text}</p>\n"


async def fetch_session(renewal: Renewal, *, username: str = "", secrets: Secrets | None = None) -> oauth.TokenReply:
    """Return a new session; raise LoginFailed if it is refused, UsageError if the key or sf cannot be used."""
    match renewal:
        case ByKey():
            assertion = oauth.write_assertion(
                _key(Path(renewal.key_file)),
                client_id=renewal.client_id,
                username=username,
                audience=renewal.audience,
                now=time.time(),
            )
            return await post_grant(renewal.login_url, oauth.jwt_grant(assertion))
        case ByRefreshToken():
            token, secret = (secrets.refresh_token, secrets.client_secret) if secrets else ("", "")
            grant = oauth.refresh_grant(renewal.client_id, token, client_secret=secret)
            return await post_grant(renewal.login_url, grant)
        case _:
            return await fetch_sf_session(renewal.org)


async def renew_secrets(login: Login, logins: Logins, *, instead_of: str) -> Secrets:
    """Renew the session of a stored login and save it, unless another program has done so; raise LoginFailed."""
    if login.renewal is None:
        raise LoginFailed(f"the session with {login.name} has ended")
    kept = logins.secrets_of(login)
    if kept.access_token != instead_of:
        return kept
    try:
        reply = await fetch_session(login.renewal, username=login.username, secrets=kept)
    except EvalmetaError as error:
        raise LoginFailed(
            f"the session with {login.name} has ended and could not be renewed: {error}", actions=error.actions
        ) from error
    fresh = replace(kept, access_token=reply.access_token, refresh_token=reply.refresh_token or kept.refresh_token)
    logins.save(login, fresh)
    return fresh


async def post_grant(login_url: str, grant: Mapping[str, str]) -> oauth.TokenReply:
    """Send a grant and return the session; raise like `fetch_session`."""
    async with open_http(login_url) as http:
        reply = await request(http, "POST", oauth.GRANT_PATH, form=grant, headers={"Accept": "application/json"})
    body = reply.body
    if reply.status != HTTPStatus.OK:
        body = redacted_bytes(body, [grant[name] for name in _SECRETS if name in grant])
    return oauth.read_token_reply(reply.status, body, url=login_url)


async def fetch_identity(url: str, access_token: str) -> Login:
    """Return the login of an access token: its user, its org and the org's newest API version; raise LoginFailed."""
    async with open_http(url) as http:
        user = await _fetch(http, "/services/oauth2/userinfo", access_token, oauth.read_user_info)
        newest = await _fetch(http, "/services/data", access_token, oauth.read_newest_version)
        username = user.username or await _fetch(
            http,
            f"/services/data/v{newest}/sobjects/User/{user.user_id}",
            access_token,
            lambda body: text(read_object(body), "Username"),
        )
    if not username:
        raise MessageUnreadable(f"{url} does not return the name of its user")
    return Login(username, url, org_id=user.org_id, api_version=str(newest))


async def _fetch(http: httpx.AsyncClient, path: str, access_token: str, read: Callable[[bytes], _T]) -> _T:
    url = str(http.base_url).rstrip("/")
    reply = await request(http, "GET", path, headers={"Authorization": bearer(access_token)})
    if reply.status in _NO_TOKEN:
        raise LoginFailed(
            f"{url} refuses this access token (status {reply.status})",
            actions=[
                "Check that it is a new access token of this org.",
                "For an org that evalmeta serves, create it in the project that serves it: evalmeta org token",
            ],
        )
    try:
        return read(redacted_bytes(reply.body, [access_token]))
    except MessageUnreadable as error:
        raise MessageUnreadable(
            f"{url} answered {path} with status {reply.status}, but the reply is not from an org: {error}",
            actions=["Check --instance-url: it must be the org's own address, not the address of a page."],
        ) from None


def _key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limits.MAX_LOGIN_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: the key cannot be read: {error.strerror}") from None


async def fetch_sf_session(org: str) -> oauth.TokenReply:
    """Return the session of the sf CLI with an org; raise LoginFailed without one, UsageError without sf."""
    shown = await _run(org, "display", "--verbose")
    token = text(shown, "accessToken")
    if not _TOKEN.fullmatch(token):
        token = text(await _run(org, "auth", "show-access-token"), "accessToken")
    if not (_TOKEN.fullmatch(token) and text(shown, "instanceUrl")):
        raise LoginFailed(f"sf has no session with {org}", actions=[f"See its output: sf org display -o {org}"])
    return oauth.TokenReply(token, org_url(text(shown, "instanceUrl")))


async def _run(org: str, *words: str) -> JsonObject:
    program = shutil.which("sf")
    if program is None:
        raise UsageError("sf is not on the PATH", actions=["Install the Salesforce CLI, or log in another way."])
    process = await asyncio.create_subprocess_exec(
        program,
        "org",
        *words,
        f"--target-org={org}",
        "--json",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(),
    )
    try:
        async with asyncio.timeout(limits.SF_CLI_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise LoginFailed(f"sf does not answer within {limits.SF_CLI_SECONDS:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _result(output)


def _result(output: bytes) -> JsonObject:
    try:
        reply = read_object(output)
    except MessageUnreadable:
        raise LoginFailed("the output of sf is not JSON", actions=["Update it: sf update"]) from None
    if result := object_at(reply, "result"):
        return result
    message = redacted(text(reply, "message")) or "no message"
    raise LoginFailed(f"sf failed: {message}", actions=["See its logins: sf org list"])


async def log_in_with_browser(
    login_url: str,
    client_id: str,
    *,
    show: Callable[[str], None],
    client_secret: str = "",
    port: int = CALLBACK_PORT,
    wait: float = limits.WEB_LOGIN_SECONDS,
) -> oauth.TokenReply:
    """Wait at most `wait` seconds until the user has logged in with a browser, and return the session.

    `show` is called with the address to open, when the callback `http://localhost:PORT/OauthRedirect` is ready; the
    port 0 means any. `client_id` is the connected app's consumer key. Raise LoginFailed if the org refused the login or
    nobody logged in, UsageError if the port is in use.
    """
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    arrived: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    try:
        server = await asyncio.start_server(_callback(state, arrived), "127.0.0.1", port, limit=_MAX_BYTES)
    except OSError as error:
        reason = f"the callback cannot listen on port {port}: {error.strerror}"
        raise UsageError(
            reason, actions=["Free the port, or set --callback-port to one that your app allows."]
        ) from None
    async with server:
        redirect_uri = f"http://localhost:{server.sockets[0].getsockname()[1]}{_PATH}"
        challenge = oauth.challenge_of(verifier)
        show(oauth.authorize_url(login_url, client_id, redirect_uri=redirect_uri, state=state, challenge=challenge))
        try:
            async with asyncio.timeout(wait):
                code = await arrived
        except TimeoutError:
            raise LoginFailed(f"nobody logged in within {wait:g} seconds") from None
    grant = oauth.code_grant(client_id, code, verifier=verifier, redirect_uri=redirect_uri, client_secret=client_secret)
    return await post_grant(login_url, grant)


def _callback(
    state: str, arrived: asyncio.Future[str]
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, message = _answer(head, state, arrived)
                writer.write(_reply(status, message))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    return handle


def _answer(head: bytes, state: str, arrived: asyncio.Future[str]) -> tuple[str, str]:
    """Handle a request of the browser; refuse requests that do not belong to this login."""
    request = _REQUEST.match(head)
    if request is None or request[1] != _PATH.encode():
        return "404 Not Found", "Not found."
    try:
        code = oauth.read_callback((request[2] or b"").decode("ascii"), state=state)
    except LoginFailed as error:
        if not arrived.done():
            arrived.set_exception(error)
        return "200 OK", "The org refused the login. See the terminal for the reason."
    except ValueError:
        code = None
    if code is None:
        return "400 Bad Request", "This request does not belong to the current login."
    if not arrived.done():
        arrived.set_result(code)
    return "200 OK", "You are logged in to evalmeta. You can close this window."


def _reply(status: str, message: str) -> bytes:
    page = _PAGE.format(text=message).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
        "Connection: close\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode("ascii") + page
