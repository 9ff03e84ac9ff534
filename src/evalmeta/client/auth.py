"""Sessions with orgs: asking for one, renewing one, and asking whose it is."""

from __future__ import annotations

import time
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from evalmeta import limits
from evalmeta.client.http import bearer, open_http, request
from evalmeta.client.sf_cli import ask_sf
from evalmeta.errors import EvalmetaError, LoginFailed, MessageUnreadable, UsageError
from evalmeta.model.login import ByKey, ByRefreshToken, Login
from evalmeta.model.secrecy import redacted_bytes
from evalmeta.wire.assertions import write_assertion
from evalmeta.wire.identity import read_newest_version, read_user_info
from evalmeta.wire.jsonfields import read_object, text
from evalmeta.wire.oauth import TOKEN_PATH, jwt_grant, read_token_reply, refresh_grant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from evalmeta.client.logins import Logins
    from evalmeta.model.login import Renewal, Secrets
    from evalmeta.wire.oauth import TokenReply

__all__ = ["fetch_session", "introduce", "post_grant", "renew_secrets"]

_T = TypeVar("_T")
# Of what is sent for a session: what no error may repeat.
_SECRETS: Final = ("assertion", "client_secret", "code", "code_verifier", "refresh_token")
_NO_TOKEN: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


async def fetch_session(renewal: Renewal, *, username: str = "", secrets: Secrets | None = None) -> TokenReply:
    """Gets a new session the way that a login says.

    Args:
        renewal: the way.
        username: as whom, for a login with a key.
        secrets: with the refresh token, for a login with one.

    Raises:
        LoginFailed: the org, or the sf CLI, refuses.
        OrgUnreachable: there is no answer.
        UsageError: the key cannot be read or used, an extra or sf is not installed.
    """
    match renewal:
        case ByKey():
            assertion = write_assertion(
                _key(Path(renewal.key_file)),
                client_id=renewal.client_id,
                username=username,
                audience=renewal.audience,
                now=time.time(),
            )
            return await post_grant(renewal.login_url, jwt_grant(assertion))
        case ByRefreshToken():
            token, secret = (secrets.refresh_token, secrets.client_secret) if secrets else ("", "")
            grant = refresh_grant(renewal.client_id, token, client_secret=secret)
            return await post_grant(renewal.login_url, grant)
        case _:
            return await ask_sf(renewal.org)


async def renew_secrets(login: Login, logins: Logins, *, instead_of: str) -> Secrets:
    """Gets a new session for a stored login and keeps it; one that another program has just got is taken.

    `instead_of` is the access token that has ended.

    Raises:
        LoginFailed: there is no way to get one, or the org refuses; the error of `fetch_session` is its cause.
    """
    if login.renewal is None:
        raise LoginFailed(f"the session with {login.name} has ended")
    kept = logins.secrets_of(login)
    if kept.access_token != instead_of:
        return kept
    try:
        reply = await fetch_session(login.renewal, username=login.username, secrets=kept)
    except EvalmetaError as error:
        raise LoginFailed(
            f"the session with {login.name} has ended and was not renewed: {error}", actions=error.actions
        ) from error
    fresh = replace(kept, access_token=reply.access_token, refresh_token=reply.refresh_token or kept.refresh_token)
    logins.save(login, fresh)
    return fresh


async def post_grant(login_url: str, grant: Mapping[str, str]) -> TokenReply:
    """Sends a grant and gives the session; raises like `fetch_session`."""
    async with open_http(login_url) as http:
        reply = await request(http, "POST", TOKEN_PATH, form=grant, headers={"Accept": "application/json"})
    body = reply.body
    if reply.status != HTTPStatus.OK:
        body = redacted_bytes(body, [grant[name] for name in _SECRETS if name in grant])
    return read_token_reply(reply.status, body, url=login_url)


async def introduce(url: str, access_token: str) -> Login:
    """Asks an org whose session a token is, and which API versions it has.

    Raises:
        LoginFailed: the org does not take the token.
        OrgUnreachable: there is no answer.
        MessageUnreadable: it answers as no org does.
    """
    async with open_http(url) as http:
        user = await _ask(http, "/services/oauth2/userinfo", access_token, read_user_info)
        newest = await _ask(http, "/services/data", access_token, read_newest_version)
        username = user.username or await _ask(
            http,
            f"/services/data/v{newest}/sobjects/User/{user.user_id}",
            access_token,
            lambda body: text(read_object(body), "Username"),
        )
    if not username:
        raise MessageUnreadable(f"{url} does not tell the name of its user")
    return Login(username, url, org_id=user.org_id, api_version=str(newest))


async def _ask(http: httpx.AsyncClient, path: str, access_token: str, read: Callable[[bytes], _T]) -> _T:
    url = str(http.base_url).rstrip("/")
    reply = await request(http, "GET", path, headers={"Authorization": bearer(access_token)})
    if reply.status in _NO_TOKEN:
        raise LoginFailed(
            f"{url} does not take this access token (status {reply.status})",
            actions=[
                "Make sure that it is an access token of this org, and a new one.",
                "Of an org that evalmeta serves, make it in the project that serves it: evalmeta org token",
            ],
        )
    try:
        return read(redacted_bytes(reply.body, [access_token]))
    except MessageUnreadable as error:
        raise MessageUnreadable(
            f"{url} answered {path} with status {reply.status}, and not as an org does: {error}",
            actions=["Check the address: --instance-url is the org's own, not that of a page in it."],
        ) from None


def _key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limits.MAX_LOGIN_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: the key cannot be read: {error.strerror}") from None
