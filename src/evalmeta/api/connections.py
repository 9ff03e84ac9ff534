"""Connecting to an org: the embedded one, or one that a login or the environment names."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import httpx

from evalmeta.api.targets import EMBEDDED_URL, login_again, renew, token_variable
from evalmeta.client.connection import Connection
from evalmeta.errors import OrgFault, UsageError
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, parse_api_version
from evalmeta.org.embedded import embedded_org
from evalmeta.wire.addresses import host_of, is_loopback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from evalmeta.api.targets import Target
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project

__all__ = ["connect"]

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
    """Opens a connection to an org.

    Args:
        project: whose embedded org it is, and whose API version is asked for.
        target: another org; None is the embedded one.
        api_version: the version asked for; by default that of SF_ORG_API_VERSION, or
            the project's. The org's own is used when it is lower.
        detached: let runs of the embedded org go on after this process.
        remark: is told when a version that was asked for by hand is lowered.

    Raises:
        StoreError: the embedded org's database cannot be used.
        OrgUnreachable: the org does not answer.
        LoginFailed: the session has ended and cannot be renewed.
        UsageError: the org's API is too old.
    """
    if target is None:
        async with _embedded(project, detached=detached) as connection:
            yield connection
        return
    async with _remote(target) as connection:
        by_hand = api_version or _version_of_environment()
        newest = await connection.newest_version()
        connection.api_version = _common_version(by_hand or project.api_version or NEWEST_API_VERSION, newest)
        if by_hand and by_hand > connection.api_version:
            remark(f"API version {connection.api_version} is used, not {by_hand}: the org has no newer one")
        try:
            yield connection
        except OrgFault as fault:
            raise _with_way_out(fault, target) from fault


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
        raise UsageError(f"SF_ORG_API_VERSION is {text!r}, which is no API version such as {NEWEST_API_VERSION}")
    return version


def _common_version(asked: ApiVersion, newest: ApiVersion) -> ApiVersion:
    """Gives the lower one; a version before agent tests were there is asked by projects with other metadata only."""
    if newest < OLDEST_API_VERSION:
        raise UsageError(f"the org has API version {newest} at most; agent tests need {OLDEST_API_VERSION}")
    return min(max(asked, OLDEST_API_VERSION), newest, NEWEST_API_VERSION)


def _with_way_out(fault: OrgFault, target: Target) -> OrgFault:
    if fault.code != "INVALID_SESSION_ID":
        return fault
    whose = f"the session of {target.login.name}" if target.login.username else f"the token in {token_variable()}"
    message = f"{target.login.url} does not take {whose}: it is wrong, has expired or was revoked"
    return OrgFault(message, code=fault.code, status=fault.status, actions=[*fault.actions, login_again(target.login)])
