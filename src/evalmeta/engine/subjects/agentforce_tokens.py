"""Tokens of the Agent API: from an environment variable, or exchanged for the session of a login."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta.errors import OrgUnreachable, SettingsError, SubjectBusy, SubjectError, SubjectUnreachable, UsageError
from evalmeta.model.redaction import child_environment
from evalmeta.protocol.agent_api import NAMED_USER_PATH, read_token
from evalmeta.protocol.json_fields import org_url

if TYPE_CHECKING:
    import httpx

    from evalmeta.model.login import SignedIn, SignIn


_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A token for the API, the org's address, and the org's session that the token was exchanged for."""

    url: str
    value: str = field(repr=False)
    session: str = field(repr=False)


# Returns a token, or a new one if the API rejects the given one.
TokenSource: TypeAlias = Callable[[Token | None], Awaitable[Token]]


class Tokens:
    """The token that all sessions of an agent share, and its successors."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._lock = asyncio.Lock()
        self._token: Token | None = None
        self._is_untested = False

    async def get(self) -> Token:
        """Return the token; the first call signs in."""
        async with self._lock:
            if self._token is None:
                self._token = await self._source(None)
            return self._token

    async def renew(self, ended: Token) -> Token:
        """Return a new token for one that the API rejected; raise SubjectError if that one was new too.

        Concurrent sessions get the same one.
        """
        async with self._lock:
            if self._token is not ended and self._token is not None:
                return self._token
            if self._is_untested:
                raise new_token_rejected(ended)
            self._token, self._is_untested = await self._source(ended), True
            return self._token

    def mark_accepted(self) -> None:
        """Note that the API accepted the token."""
        self._is_untested = False


def new_token_rejected(token: Token) -> SubjectError:
    """Return the error for a token that is new, and that the API rejects."""
    return SubjectError(
        f"the Agent API rejects a new session of {token.url}; its app needs the scopes chatbot_api and sfap_api, "
        "and its user access to the agent"
    )


def token_of_environment(name: str, instance_url: str) -> TokenSource:
    """Return the token in an environment variable, which cannot be renewed."""
    try:
        url = org_url(instance_url)
    except UsageError as error:
        raise SettingsError(f"the agent's instance_url is not valid: {error}", actions=error.actions) from None
    token = child_environment().get(name, "").strip()
    if not _TOKEN.fullmatch(token):
        fault = "is not set, but token_env in evalmeta.toml names it"
        action = f"Set {name} to an access token with the scopes chatbot_api and sfap_api."
        if token:
            fault = "does not hold an access token: it has blanks or invalid characters"
            action = f"Set {name} to the token alone."
        elif name in os.environ:
            fault = "is hidden from the programs that run tests"
            action = "Pass the token in a variable with another name, such as AGENT_TOKEN, and name it in token_env."
        raise SettingsError(f"the environment variable {name} {fault}", actions=(action,))

    async def source(ended: Token | None) -> Token:
        if ended:
            raise SubjectError(f"the Agent API rejects the access token in {name}; set it to a new one")
        return Token(url, token, token)

    return source


def tokens_of_org(org: str, sign_in: SignIn, transport: httpx.AsyncBaseTransport | None) -> TokenSource:
    """Return sessions of a login, exchanged for the API's token; if the org exchanges none, the session itself."""

    async def source(ended: Token | None) -> Token:
        try:
            signed_in = await sign_in(org, instead_of=ended.session if ended else "")
        except OrgUnreachable as error:
            raise SubjectUnreachable(str(error)) from error
        session = signed_in.access_token
        return Token(signed_in.url, await _exchange(signed_in, transport) or session, session)

    return source


async def _exchange(signed_in: SignedIn, transport: httpx.AsyncBaseTransport | None) -> str:
    """Return the JWT of the named user, as the sf CLI does; empty if the org does not issue one."""
    session = signed_in.access_token
    from evalmeta.engine.http_endpoint import Endpoint

    endpoint = Endpoint(signed_in.url, headers={"Cookie": f"sid={session}"}, secrets=(session,), transport=transport)
    try:
        reply = await endpoint.send(None, NAMED_USER_PATH, method="GET")
    except (SubjectBusy, SubjectUnreachable):
        raise
    except SubjectError:
        return ""
    finally:
        await endpoint.close()
    return read_token(reply.value) if isinstance(reply.value, dict) else ""
