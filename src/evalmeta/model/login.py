"""Logins: as whom evalmeta talks to an org, and how it gets a new session when the old one ends.

Users of an org: as whom calls are made, and whose jobs are whose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class ByRefreshToken:
    """With the refresh token among the secrets, posted to `login_url`."""

    client_id: str
    login_url: str


@dataclass(frozen=True, slots=True)
class ByKey:
    """With an assertion for `audience`, signed by the private key in `key_file`, which stays where it is."""

    client_id: str
    login_url: str
    audience: str
    key_file: str


@dataclass(frozen=True, slots=True)
class BySf:
    """By asking an installed sf CLI for its session with `org`."""

    org: str


Renewal: TypeAlias = ByRefreshToken | ByKey | BySf


@dataclass(frozen=True, slots=True)
class Login:
    """A login, without its secrets.

    Attributes:
        username: as whom; in any case.
        url: the org's address.
        org_id: the organization's record id.
        api_version: the newest API version the org had at the login.
        alias: another name for it, given by the user; may be empty.
        renewal: how to get a new session; None when there is only an access token.
    """

    username: str
    url: str
    org_id: str = ""
    api_version: str = ""
    alias: str = ""
    renewal: Renewal | None = None

    @property
    def name(self) -> str:
        """Gives what people call it: the alias, else the username, else the address."""
        return self.alias or self.username or self.url


@dataclass(frozen=True, slots=True)
class Secrets:
    """What nobody else may see; none of it is in the repr."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session with an org: its address, and the access token, which is not in the repr."""

    url: str
    access_token: str = field(repr=False)


class SignIn(Protocol):
    """How a session with an org is had by who knows no logins."""

    async def __call__(self, org: str, *, instead_of: str = "") -> SignedIn:
        """Gives the session of the login with an alias or username, a new one in place of a token that has ended.

        Raises:
            NotFound: no login has that name.
            OrgError: the org, or what keeps the secrets, does not give one.
            UsageError: the login cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Attributes:
        id: the record id, 18 characters beginning with 005.
        name: what people are shown.
        username: what the user logs in as, in the form of a mail address.
        is_admin: may ask about everybody's jobs.
    """

    id: str
    name: str
    username: str
    is_admin: bool = False


ADMIN: Final = User("005000000000001AAA", "Local Admin", "admin@evalmeta.local", is_admin=True)
