"""Tokens for APIs of an org's: one sign-in for all sessions, exchanged where the API wants it, renewed when it ends."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.engine.endpoints import open_endpoint
from evalmeta.errors import OrgUnreachable, SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.secrecy import child_environment
from evalmeta.wire.agentapi import NAMED_USER_PATH, read_token

if TYPE_CHECKING:
    import httpx

    from evalmeta.model.login import SignedIn, SignIn

__all__ = ["ApiTokens", "Pass", "Passes", "passes_of_environment", "passes_of_org", "refused"]

_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Pass:
    """What opens an API: a token, the session of the org that it was had for, and the org's address."""

    url: str
    token: str = field(repr=False)
    session: str = field(repr=False)


class Passes(Protocol):
    """Where passes come from."""

    async def __call__(self, ended: Pass | None) -> Pass:
        """Gives a pass, a new one in place of one that the API takes no longer."""
        ...


class ApiTokens:
    """The pass that the sessions of a subject share."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._lock = asyncio.Lock()
        self._pass: Pass | None = None
        self._is_untried = False

    async def get(self) -> Pass:
        """Gives the pass; the first who asks signs in."""
        async with self._lock:
            if self._pass is None:
                self._pass = await self._passes(None)
            return self._pass

    async def renew(self, ended: Pass) -> Pass:
        """Gives another pass for one that the API refused; sessions that come together get the same.

        Raises:
            SubjectError: the refused one was new, so that another would be refused too.
        """
        async with self._lock:
            if self._pass is not ended and self._pass is not None:
                return self._pass
            if self._is_untried:
                raise refused(ended)
            self._pass, self._is_untried = await self._passes(ended), True
            return self._pass

    def accept(self) -> None:
        """Notes that the API took the pass."""
        self._is_untried = False


def refused(new: Pass) -> SubjectError:
    """Gives the error for a pass that is new and not taken."""
    return SubjectError(
        f"the Agent API does not take a new session of {new.url}; its app needs the scopes chatbot_api and sfap_api, "
        "and its user access to the agent"
    )


def passes_of_environment(name: str, url: str) -> Passes:
    """Gives the token in an environment variable, which nothing can renew.

    Raises:
        SettingsError: the variable is not set, holds no token, or is not given to the programs that run tests.
    """
    token = child_environment().get(name, "").strip()
    if not _TOKEN.fullmatch(token):
        raise _no_variable(name, is_set=bool(token))

    async def passes(ended: Pass | None) -> Pass:
        if ended:
            raise SubjectError(f"the Agent API does not take the access token in {name}; set it to a new one")
        return Pass(url, token, token)

    return passes


def passes_of_org(org: str, sign_in: SignIn, *, transport: httpx.AsyncBaseTransport | None = None) -> Passes:
    """Gives sessions of a login, exchanged for the API's token; if the org exchanges none, the session itself."""

    async def passes(ended: Pass | None) -> Pass:
        try:
            signed_in = await sign_in(org, instead_of=ended.session if ended else "")
        except OrgUnreachable as error:
            raise SubjectUnreachable(str(error)) from error
        token = await _exchanged(signed_in, transport)
        return Pass(signed_in.url, token or signed_in.access_token, signed_in.access_token)

    return passes


async def _exchanged(signed_in: SignedIn, transport: httpx.AsyncBaseTransport | None) -> str:
    """Gets the named user's JWT, as the sf CLI does; empty when the org gives none for this session."""
    session = signed_in.access_token
    endpoint = open_endpoint(
        signed_in.url, headers={"Cookie": f"sid={session}"}, secrets=(session,), transport=transport
    )
    try:
        reply = await endpoint.send(None, NAMED_USER_PATH, method="GET")
    except (SubjectBusy, SubjectUnreachable):
        raise
    except SubjectError:
        return ""
    finally:
        await endpoint.close()
    return read_token(reply.value) if isinstance(reply.value, dict) else ""


def _no_variable(name: str, *, is_set: bool) -> SettingsError:
    if is_set:
        return SettingsError(
            f"the environment variable {name} holds no access token: it has blanks or characters that no token has",
            actions=(f"Set {name} to the token alone.",),
        )
    if name in os.environ:
        return SettingsError(
            f"the environment variable {name} is kept from the programs that run tests",
            actions=("Give the token in a variable of another name, such as AGENT_TOKEN, and name it in token_env.",),
        )
    return SettingsError(
        f"the environment variable {name} is not set, which token_env in evalmeta.toml names",
        actions=(f"Set {name} to an access token with the scopes chatbot_api and sfap_api.",),
    )
