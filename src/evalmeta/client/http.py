"""HTTP to orgs: where requests may go, how long they may take, and how much an answer may have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import httpx

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, OrgUnreachable, UsageError
from evalmeta.wire.addresses import host_of, is_loopback, org_url
from evalmeta.wire.discretion import discreetly, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Reply", "bearer", "open_http", "read_limited", "request", "ways_to", "where_it_leads"]

_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; its body, which may hold a session, is not in the repr."""

    status: int
    body: bytes = field(repr=False)


def bearer(token: str) -> str:
    """Gives the Authorization header for an access token.

    Raises:
        UsageError: no header can carry it; a library would say so and show it.
    """
    if not _TOKEN.fullmatch(token):
        raise UsageError("the access token is empty, or has blanks or characters that no token has")
    return f"Bearer {token}"


def open_http(url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Opens a client for one org. It follows no redirect, and no proxy stands before this machine's own orgs.

    Raises:
        UsageError: the address is none, or http elsewhere than on this machine; not checked
            with a transport of one's own.
    """
    if transport is None:
        org_url(url)
    try:
        return httpx.AsyncClient(
            base_url=url,
            transport=transport,
            timeout=limits.HTTP_TIMEOUT_SECONDS,
            trust_env=not is_loopback(host_of(url)),
        )
    except httpx.InvalidURL as error:
        raise UsageError(f"{url!r} is no address of an org: {error}") from None


async def request(
    http: httpx.AsyncClient,
    method: str,
    path: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Sends one request about a login and gives the answer.

    Raises:
        OrgUnreachable: there is none.
        MessageUnreadable: it leads elsewhere, or is larger than `limits.MAX_LOGIN_BYTES`.
    """
    url = str(http.base_url).rstrip("/")
    try:
        with discreetly():
            async with http.stream(method, path, data=form, headers=headers) as response:
                if place := where_it_leads(response):
                    raise MessageUnreadable(
                        f"{url} leads to {place}; nothing was sent there",
                        actions=[f"If that is your org: --instance-url {place}"],
                    )
                return Reply(response.status_code, await read_limited(response, limits.MAX_LOGIN_BYTES))
    except httpx.HTTPError as error:
        raise OrgUnreachable(f"{url} does not answer: {reason_of(error)}", actions=ways_to(url, error)) from None


def ways_to(url: str, error: httpx.HTTPError | TimeoutError) -> tuple[str, ...]:
    """Says what can be done about an org that does not answer."""
    host, ways = host_of(url), ["Check the address, and that the org is up and reachable."]
    if is_loopback(host):
        if "WRONG_VERSION_NUMBER" in str(error):
            ways.insert(0, f"Did you mean http://{url.partition('://')[2]}?")
        ways.append("An org of a project of yours is served by: evalmeta org start")
    return tuple(ways)


async def read_limited(response: httpx.Response, max_bytes: int) -> bytes:
    """Reads an answer's body.

    Raises:
        MessageUnreadable: it has more than `max_bytes`.
    """
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > max_bytes:
            raise MessageUnreadable(f"the org's answer has more than {max_bytes:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def where_it_leads(response: httpx.Response) -> str:
    """Gives scheme and host of a redirect, empty when the answer is none; the rest of it may hold secrets."""
    if response.next_request is None:
        return ""
    place = response.next_request.url
    return f"{place.scheme}://{place.netloc.decode('ascii', 'replace')}"
