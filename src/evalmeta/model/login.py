"""Logins to orgs, how their sessions are renewed, and the users of an org."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

EMBEDDED: Final = "embedded"
"""The name of the project's own org, which needs no login."""


@dataclass(frozen=True, slots=True)
class ByRefreshToken:
    """Renewal with the refresh token among the secrets, at `login_url`."""

    client_id: str
    login_url: str


@dataclass(frozen=True, slots=True)
class ByKey:
    """Renewal with an assertion for `audience`, signed with the private key in `key_file`; the key is not copied."""

    client_id: str
    login_url: str
    audience: str
    key_file: str


@dataclass(frozen=True, slots=True)
class BySf:
    """Renewal by asking an installed sf CLI for its session with `org`."""

    org: str


Renewal: TypeAlias = ByRefreshToken | ByKey | BySf


@dataclass(frozen=True, slots=True)
class Login:
    """A login, without its secrets."""

    username: str  # the user, in upper or lower case
    url: str  # the org's address
    org_id: str = ""  # the record id of the organization
    api_version: str = ""  # the newest API version of the org at the time of the login
    alias: str = ""  # the user's name for the login; may be empty
    renewal: Renewal | None = None  # how to get a new session; None if there is only an access token

    @property
    def name(self) -> str:
        """Return the name in messages: the alias, else the username, else the address."""
        return self.alias or self.username or self.url


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of a login; none of them is in the repr."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session with an org: its address, and the access token, which is not in the repr."""

    url: str
    access_token: str = field(repr=False)


class SignIn(Protocol):
    """Get a session with an org, for packages that do not know logins."""

    async def __call__(self, org: str, *, instead_of: str = "") -> SignedIn:
        """Return the session of a login by alias or username; a new one if `instead_of` is its expired token.

        Raises:
            NotFound: no login has that name.
            OrgError: the org, or the store of the secrets, does not return a session.
            UsageError: the login cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class User:
    """A user."""

    id: str  # the record id, 18 characters beginning with 005
    name: str  # the display name
    username: str  # the login name, in the form of an email address
    is_admin: bool = False  # whether the user may see the jobs of all users


ADMIN: Final = User("005000000000001AAA", "Local Admin", "admin@evalmeta.local", is_admin=True)
