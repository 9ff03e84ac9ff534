"""Logging in to orgs, and the saved logins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalmeta.api.org_targets import Target, refuse_token, renew
from evalmeta.client.auth import CALLBACK_PORT, fetch_identity, fetch_session, log_in_with_browser
from evalmeta.client.logins import user_logins
from evalmeta.errors import EvalmetaError, LoginFailed, MessageUnreadable, UsageError
from evalmeta.model.login import EMBEDDED, ByKey, ByRefreshToken, BySf, Login, Renewal, Secrets
from evalmeta.protocol.json_fields import object_at, org_url, read_object, text
from evalmeta.protocol.oauth import DEFAULT_CLIENT_ID, PRODUCTION_URL, TokenReply, audience_of, read_auth_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def log_in_with_token(url: str, access_token: str, *, alias: str = "") -> Login:
    """Save an access token as a login, with the user that the org returns for it; it cannot be renewed."""
    return await _keep(TokenReply(access_token, org_url(url)), None, alias=alias)


async def log_in_with_key(
    key_file: Path, client_id: str, username: str, *, url: str = "", audience: str = "", alias: str = ""
) -> Login:
    """Log in with a private key (JWT bearer); the login keeps the file's absolute path, not the key.

    `audience` is derived from `url`, the login page. Raises like `log_in_with_token`, and UsageError for the key.
    """
    login_url = org_url(url or PRODUCTION_URL)
    renewal = ByKey(client_id, login_url, audience or audience_of(login_url), str(key_file))
    reply = await fetch_session(renewal, username=username)
    return await _keep(reply, renewal, alias=alias)


async def log_in_with_auth_url(auth_url: str, *, alias: str = "") -> Login:
    """Log in with an sfdx auth URL; raises like `log_in_with_token`, and UsageError for the URL."""
    parts = read_auth_url(auth_url)
    renewal = ByRefreshToken(parts.client_id, parts.instance_url)
    secrets = Secrets("", parts.refresh_token, parts.client_secret)
    reply = await fetch_session(renewal, secrets=secrets)
    kept = replace(reply, refresh_token=reply.refresh_token or parts.refresh_token)
    return await _keep(kept, renewal, alias=alias, client_secret=parts.client_secret)


async def log_in_with_web(
    *,
    show: Callable[[str], None],
    url: str = "",
    client_id: str = "",
    client_secret: str = "",
    port: int = CALLBACK_PORT,
    alias: str = "",
) -> Login:
    """Log in with a browser; `show` receives the address to open. Raises like `log_in_with_token`."""
    login_url, client = org_url(url or PRODUCTION_URL), client_id or DEFAULT_CLIENT_ID
    reply = await log_in_with_browser(login_url, client, show=show, client_secret=client_secret, port=port)
    renewal = ByRefreshToken(client, login_url) if reply.refresh_token else None
    return await _keep(reply, renewal, alias=alias, client_secret=client_secret)


async def log_in_with_sf(org: str, *, alias: str = "") -> Login:
    """Use the session of an installed sf CLI with an org; sf renews it. Raises like `log_in_with_token`."""
    refuse_token(org)
    renewal = BySf(org)
    return await _keep(await fetch_session(renewal), renewal, alias=alias)


def auth_url_in(content: str) -> str:
    """Return the sfdx auth URL in a text, which is the URL or the JSON output of the sf CLI."""
    try:
        document = read_object(content.encode())
    except MessageUnreadable:
        return content.strip()
    return text(object_at(document, "result"), "sfdxAuthUrl") or text(document, "sfdxAuthUrl")


def list_logins() -> list[Login]:
    """Return all logins in order of their names."""
    return user_logins().list_logins()


def find_login(name: str) -> Login:
    """Return the login with an alias or username."""
    refuse_token(name)
    if name == EMBEDDED:
        raise UsageError("the project's own org needs no login", actions=["See its status: evalmeta org status"])
    return user_logins().find(name)


def log_out(login: Login) -> None:
    """Delete a login and its secrets; the session in the org does not end."""
    user_logins().delete(login)


async def status_of(login: Login) -> str:
    """Return `Connected` if a login works, after renewing its session if necessary; otherwise the error."""
    logins = user_logins()
    try:
        target = Target(login, logins.secrets_of(login), logins)
        try:
            await fetch_identity(login.url, target.secrets.access_token)
        except LoginFailed:
            target = await renew(target)
            await fetch_identity(login.url, target.secrets.access_token)
    except EvalmetaError as error:
        return str(error)
    return "Connected"


def check_alias(alias: str) -> None:
    """Refuse an alias that could be confused with something else."""
    refuse_token(alias)
    if alias == EMBEDDED or "@" in alias or alias.startswith("-") or not alias.isprintable() or " " in alias:
        raise UsageError(
            f"{alias!r} cannot be an alias", actions=[f"Choose a word without spaces or @ that is not {EMBEDDED!r}."]
        )


async def _keep(reply: TokenReply, renewal: Renewal | None, *, alias: str, client_secret: str = "") -> Login:
    identified = await fetch_identity(reply.instance_url, reply.access_token)
    login = replace(identified, alias=alias, renewal=renewal)
    return user_logins().save(login, Secrets(reply.access_token, reply.refresh_token, client_secret))
