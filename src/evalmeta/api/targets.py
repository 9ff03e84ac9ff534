"""Which org a command talks to: the one that was named, the environment's, the project's default, the embedded one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.client.auth import renew_secrets
from evalmeta.client.logins import user_logins
from evalmeta.errors import LoginFailed, MessageUnreadable, NotFound, SettingsError, UsageError
from evalmeta.model.login import Login, Secrets
from evalmeta.package.configfile import read_text
from evalmeta.package.files import put_file
from evalmeta.store.database import open_database
from evalmeta.wire.addresses import org_url
from evalmeta.wire.jsonfields import read_object, text

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.client.logins import Logins
    from evalmeta.package.project import Project

__all__ = [
    "EMBEDDED",
    "EMBEDDED_URL",
    "Target",
    "address_of",
    "choose_target",
    "default_of",
    "find_target",
    "is_named",
    "login_again",
    "org_of_environment",
    "refuse_token",
    "renew",
    "set_default",
    "token_variable",
]

EMBEDDED: Final = "embedded"
EMBEDDED_URL: Final = "http://embedded.org.invalid"
_TARGET_ORG: Final = "SF_TARGET_ORG"
_CONFIG_FILE: Final = "config.json"
_KEY: Final = "target-org"
_TOKEN: Final = re.compile(r"00D\w{12,15}!.*|eyJ[\w-]+\..*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """An org that is not the embedded one, and what it takes to talk to it.

    Attributes:
        logins: where the login is kept; None when it comes from the environment.
    """

    login: Login
    secrets: Secrets = field(repr=False)
    logins: Logins | None = None


def choose_target(project: Project, name: str | None = None) -> Target | None:
    """Gives the org to talk to; None is the project's embedded org.

    In this order: `name`; SF_TARGET_ORG; SF_ACCESS_TOKEN with SF_ORG_INSTANCE_URL, where
    SF_TARGET_ORG may hold the token as it may for the sf CLI; the
    default that was chosen for the project's state folder; `[org] default` of
    `evalmeta.toml`; the embedded org.

    Raises:
        NotFound: no login has that alias or username.
        UsageError: the name is an access token, or stored logins are open to others.
        LoginFailed: the keyring does not give the login's secrets.
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
        hints = () if named else ("It is the project's default. Choose another: evalmeta org default --help",)
        raise NotFound(str(error), actions=[*error.actions, *hints]) from None
    return Target(login, logins.secrets_of(login), logins)


def is_named(name: str | None) -> str:
    """Gives the org that was asked for by name, here or in SF_TARGET_ORG; empty when none was."""
    return name or ("" if token_variable() == _TARGET_ORG else os.environ.get(_TARGET_ORG, ""))


def org_of_environment() -> str:
    """Gives the org that environment variables choose: a name, or an address with a token; empty when they do not.

    Raises:
        UsageError: the address is none, or is missing.
    """
    if named := is_named(None):
        return named
    target = _from_environment()
    return target.login.url if target else ""


def token_variable() -> str:
    """Names the variable that holds the environment's access token: SF_TARGET_ORG if it is one, or SF_ACCESS_TOKEN."""
    return _TARGET_ORG if _TOKEN.fullmatch(os.environ.get(_TARGET_ORG, "")) else "SF_ACCESS_TOKEN"


def address_of(target: Target | None) -> str:
    """Gives the address by which a project remembers an org."""
    return EMBEDDED_URL if target is None else target.login.url


def find_target(url: str, name: str) -> Target:
    """Gives a target at an address, best the one that had this name, from the environment or the logins.

    Raises:
        NotFound: there is none.
        UsageError: stored logins are open to others.
        LoginFailed: the keyring does not give the login's secrets.
    """
    if (target := _from_environment()) and target.login.url == url:
        return target
    logins = user_logins()
    there = [each for each in logins.list_logins() if each.url == url]
    if not there:
        raise NotFound(
            f"no login at {url} is known here any more",
            actions=[f"Log in again: evalmeta org login --instance-url {url}"],
        )
    login = next((each for each in there if name in (each.alias, each.username)), there[0])
    return Target(login, logins.secrets_of(login), logins)


def default_of(project: Project) -> str:
    """Gives the alias or username that is the project's default; empty when it is the embedded org.

    Raises:
        SettingsError: the file with the default cannot be read.
    """
    file = _config(project)
    if not file.is_file():
        return project.settings.org.default
    try:
        kept = text(read_object(read_text(file, raises=SettingsError).encode()), _KEY)
    except MessageUnreadable as error:
        raise SettingsError(f"{file}: cannot be read: {error}", actions=[f"Remove it: rm {file}"]) from None
    return kept or project.settings.org.default


def set_default(project: Project, name: str) -> None:
    """Makes a login, or `EMBEDDED`, the default of the project's state folder; an empty name takes the choice back.

    Raises:
        NotFound: no login has that alias or username.
        StoreError: the state folder cannot be made.
    """
    if name and name != EMBEDDED:
        refuse_token(name)
        user_logins().find(name)
    if not name:
        _config(project).unlink(missing_ok=True)
        return
    open_database(project.state_dir).close()
    put_file(_config(project), orjson.dumps({_KEY: name}))


def refuse_token(name: str) -> None:
    """Refuses an access token where a name belongs, without repeating it.

    Raises:
        UsageError: it is one.
    """
    if _TOKEN.fullmatch(name):
        raise UsageError(
            "an access token was given as the org's name, where others on this machine can see it",
            actions=["Set SF_ACCESS_TOKEN and SF_ORG_INSTANCE_URL instead, and revoke this token."],
        )


async def renew(target: Target) -> Target:
    """Gets a new session for a target and keeps it; one that another program has just got is taken.

    Raises:
        LoginFailed: there is no way to get one, or the org refuses.
    """
    login, logins = target.login, target.logins
    if login.renewal is None or logins is None:
        raise LoginFailed(f"the session with {login.name} has ended", actions=[login_again(login)])
    try:
        fresh = await renew_secrets(login, logins, instead_of=target.secrets.access_token)
    except LoginFailed as error:
        raise LoginFailed(str(error), actions=[*error.actions, login_again(login)]) from error
    return replace(target, secrets=fresh)


def login_again(login: Login) -> str:
    """Says how to log in again."""
    if not login.username:
        return f"Set {token_variable()} to a new token."
    alias = f" --alias {login.alias}" if login.alias else ""
    return f"Log in again: evalmeta org login --instance-url {login.url}{alias}"


def _from_environment() -> Target | None:
    variable = token_variable()
    token, url = os.environ.get(variable, ""), os.environ.get("SF_ORG_INSTANCE_URL", "")
    if variable == _TARGET_ORG and not url:
        raise UsageError(
            "SF_TARGET_ORG holds an access token, and nothing says of which org",
            actions=["Set SF_ORG_INSTANCE_URL to that org's address."],
        )
    if not (token and url):
        return None
    return Target(Login("", org_url(url)), Secrets(token.strip()))


def _config(project: Project) -> Path:
    return project.state_dir / _CONFIG_FILE
