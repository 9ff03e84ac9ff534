"""Choosing the org of a command, and connecting to it."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import httpx
import orjson

from evalmeta.client.auth import renew_secrets
from evalmeta.client.connection import Connection
from evalmeta.client.logins import Logins, user_logins
from evalmeta.errors import LoginFailed, MessageUnreadable, NotFound, OrgFault, SettingsError, UsageError
from evalmeta.model.login import EMBEDDED, Login, Secrets
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, ApiVersion, parse_api_version
from evalmeta.org.app import embedded_org
from evalmeta.package.files import put_file, read_text
from evalmeta.package.trust import state_file
from evalmeta.protocol.json_fields import host_of, is_loopback, org_url, read_object, text
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from evalmeta.package.project import Project


EMBEDDED_URL: Final = "http://embedded.org.invalid"
_TARGET_ORG: Final = "SF_TARGET_ORG"
_CONFIG_FILE: Final = "config.json"
_KEY: Final = "target-org"
_TOKEN: Final = re.compile(r"00D\w{12,15}!.*|eyJ[\w-]+\..*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """An org other than the embedded one, with the login for it; `logins` is None if it comes from the environment."""

    login: Login
    secrets: Secrets = field(repr=False)
    logins: Logins | None = None


def choose_target(project: Project, name: str | None = None) -> Target | None:
    """Return the org to use; None is the project's embedded org.

    The first of these: `name`; SF_TARGET_ORG; SF_ACCESS_TOKEN with SF_ORG_INSTANCE_URL
    (SF_TARGET_ORG may contain the token, as for the sf CLI); the default of the project's
    state folder; `[org] default` of `evalmeta.toml`; the embedded org.
    """
    named = is_named(name)
    if not named and (target := _from_environment()):
        return target
    chosen = named or default_of(project)
    if not chosen or chosen == EMBEDDED:
        return None
    refuse_token(chosen)
    logins = user_logins()
    try:
        login = logins.find(chosen)
    except NotFound as error:
        hints = () if named else ("It is the project's default. To choose another, see: evalmeta org default --help",)
        raise NotFound(str(error), actions=[*error.actions, *hints]) from None
    return Target(login, logins.secrets_of(login), logins)


def is_named(name: str | None) -> str:
    """Return the name that was given for an org, as an argument or in SF_TARGET_ORG; empty if none was."""
    return name or ("" if token_variable() == _TARGET_ORG else os.environ.get(_TARGET_ORG, ""))


def org_of_environment() -> str:
    """Return the org that environment variables select: its name, or its address if there is a token; else empty."""
    if named := is_named(None):
        return named
    target = _from_environment()
    return target.login.url if target else ""


def token_variable() -> str:
    """Return the name of the variable for access tokens: SF_TARGET_ORG if it contains one, or else SF_ACCESS_TOKEN."""
    return _TARGET_ORG if _TOKEN.fullmatch(os.environ.get(_TARGET_ORG, "")) else "SF_ACCESS_TOKEN"


def address_of(target: Target | None) -> str:
    """Return the address by which a project remembers an org."""
    return EMBEDDED_URL if target is None else target.login.url


def find_target(url: str, name: str) -> Target:
    """Return a target with an address, preferably with this name, from the environment or the logins."""
    if (target := _from_environment()) and target.login.url == url:
        return target
    logins = user_logins()
    there = [login for login in logins.list_logins() if login.url == url]
    if not there:
        raise NotFound(
            f"the login at {url} cannot be found any more",
            actions=[f"Log in again: evalmeta org login --instance-url {url}"],
        )
    login = next((known for known in there if name in (known.alias, known.username)), there[0])
    return Target(login, logins.secrets_of(login), logins)


def default_of(project: Project) -> str:
    """Return the alias or username that is the project's default; empty for the embedded org."""
    file = _config(project)
    if not file.is_file():
        return project.settings.org.default
    try:
        kept = text(read_object(read_text(file, raises=SettingsError).encode()), _KEY)
    except MessageUnreadable as error:
        raise SettingsError(f"{file}: cannot be read: {error}", actions=[f"Remove it: rm {file}"]) from None
    return kept or project.settings.org.default


def set_default(project: Project, name: str) -> None:
    """Make a login, or `EMBEDDED`, the default of the project's state folder; an empty name removes the default."""
    if name and name != EMBEDDED:
        refuse_token(name)
        user_logins().find(name)
    if not name:
        _config(project).unlink(missing_ok=True)
        return
    open_database(project.store).close()
    put_file(_config(project), orjson.dumps({_KEY: name}))


def refuse_token(name: str) -> None:
    """Refuse an access token instead of a name, without repeating it."""
    if _TOKEN.fullmatch(name):
        raise UsageError(
            "an access token was given as the name of an org, where other users of this machine can see it",
            actions=["Set SF_ACCESS_TOKEN and SF_ORG_INSTANCE_URL instead, and revoke this token."],
        )


async def renew(target: Target) -> Target:
    """Renew the session of a target and save it, or use the session that another program has just renewed."""
    login, logins = target.login, target.logins
    if login.renewal is None or logins is None:
        raise LoginFailed(f"the session with {login.name} has ended", actions=[login_again(login)])
    try:
        fresh = await renew_secrets(login, logins, instead_of=target.secrets.access_token)
    except LoginFailed as error:
        raise LoginFailed(str(error), actions=[*error.actions, login_again(login)]) from error
    return replace(target, secrets=fresh)


def login_again(login: Login) -> str:
    """Return how to log in again, as a suggestion for users."""
    if not login.username:
        return f"Set {token_variable()} to a new token."
    alias = f" --alias {login.alias}" if login.alias else ""
    return f"Log in again: evalmeta org login --instance-url {login.url}{alias}"


def _from_environment() -> Target | None:
    variable = token_variable()
    token, url = os.environ.get(variable, ""), os.environ.get("SF_ORG_INSTANCE_URL", "")
    if variable == _TARGET_ORG and not url:
        raise UsageError(
            "SF_TARGET_ORG contains an access token, but SF_ORG_INSTANCE_URL is not set",
            actions=["Set SF_ORG_INSTANCE_URL to the org's address."],
        )
    if not (token and url):
        return None
    return Target(Login("", org_url(url)), Secrets(token.strip()))


def _config(project: Project) -> Path:
    return state_file(project.state_dir, _CONFIG_FILE)


_EMBEDDED_POLL_SECONDS: Final = 0.01
_LOOPBACK_POLL_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 1.0


@asynccontextmanager
async def connect(
    project: Project,
    target: Target | None = None,
    *,
    api_version: ApiVersion | None = None,
    detached: bool = False,
    remark: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Connection]:
    """Open a connection to an org.

    Args:
        project: the project with the embedded org and the API version.
        target: another org; None is the embedded one.
        api_version: the version to use; that of SF_ORG_API_VERSION or the project if None.
            The org's own is used if it is older.
        detached: let runs of the embedded org continue after this process ends.
        remark: called if an older version than that of the caller or the environment is used.

    Raises:
        StoreError: the embedded org's database cannot be used.
        OrgUnreachable: the org does not answer.
        LoginFailed: the session has ended and cannot be renewed.
        UsageError: the org's API version is too old.
    """
    if target is None:
        async with _embedded(project, detached=detached) as connection:
            yield connection
        return
    async with _remote(target) as connection:
        explicit = api_version or _version_of_environment()
        newest = await connection.newest_version()
        connection.api_version = _common_version(explicit or project.api_version or NEWEST_API_VERSION, newest)
        if explicit and explicit > connection.api_version:
            remark(f"API version {connection.api_version} is used instead of {explicit}: the org has no newer one")
        try:
            yield connection
        except OrgFault as fault:
            raise _with_login_hint(fault, target) from fault


@asynccontextmanager
async def _embedded(project: Project, *, detached: bool) -> AsyncIterator[Connection]:
    async with embedded_org(project, detached=detached) as (app, token):
        connection = Connection(
            url=EMBEDDED_URL,
            token=token,
            api_version=NEWEST_API_VERSION,
            transport=httpx.ASGITransport(app=app),
            poll_seconds=_EMBEDDED_POLL_SECONDS,
            is_ours=True,
        )
        async with connection:
            yield connection


def _remote(target: Target) -> Connection:
    now = target

    async def new_token() -> str:
        nonlocal now
        now = await renew(now)
        return now.secrets.access_token

    can_renew = target.login.renewal is not None
    return Connection(
        url=target.login.url,
        token=target.secrets.access_token,
        api_version=NEWEST_API_VERSION,
        renew=new_token if can_renew else None,
        poll_seconds=_LOOPBACK_POLL_SECONDS if is_loopback(host_of(target.login.url)) else _POLL_SECONDS,
    )


def _version_of_environment() -> ApiVersion | None:
    text = os.environ.get("SF_ORG_API_VERSION", "")
    if not text:
        return None
    version = parse_api_version(text)
    if version is None:
        raise UsageError(
            f"SF_ORG_API_VERSION is {text!r}, which is not a valid API version, such as {NEWEST_API_VERSION}"
        )
    return version


def _common_version(asked: ApiVersion, newest: ApiVersion) -> ApiVersion:
    """Return the lower version, which may be newer than evalmeta's; one that is too old for agent tests is raised."""
    if newest < OLDEST_API_VERSION:
        raise UsageError(
            f"the org has API version {newest}; agent tests require {OLDEST_API_VERSION} or newer",
            actions=["Use an org with a newer release."],
        )
    return min(max(asked, OLDEST_API_VERSION), newest)


def _with_login_hint(fault: OrgFault, target: Target) -> OrgFault:
    if fault.code != "INVALID_SESSION_ID":
        return fault
    whose = f"the session of {target.login.name}" if target.login.username else f"the token in {token_variable()}"
    message = f"{target.login.url} does not accept {whose}: it is wrong, has expired or was revoked"
    return OrgFault(message, code=fault.code, status=fault.status, actions=[*fault.actions, login_again(target.login)])
