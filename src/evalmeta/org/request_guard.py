"""The gate of a served org: only proper requests from proper places get in, and nobody stays too long.

Which names a served org answers to: a page that has its own name point here (DNS rebinding) is not answered.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from evalmeta import limits
from evalmeta.org.handlers.rest import refusal_reply
from evalmeta.protocol.json_fields import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_LOG: Final = logging.getLogger(__name__)
# Nothing here is a page: whatever a browser makes of an answer may load, run and embed nothing.
_SECURITY_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
_MAX_SHOWN_CHARS: Final = 40


@dataclass(slots=True)
class _Visit:
    """One request on its way through.

    Attributes:
        status: what was answered; 0 as long as nothing was.
        is_answered: whether the whole answer was given.
        size: how many bytes of the body came.
    """

    path: str
    began: float
    status: int = 0
    is_answered: bool = False
    size: int = 0


class RequestGuard:
    """An ASGI application around another: Host and Origin, sizes, numbers, times, security headers, access log."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts
        self._visits = 0
        self._bodies = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request, or lets the application do it."""
        visit = _Visit(scope["path"], time.monotonic())
        self._visits += 1
        try:
            await self._answer(visit, scope, receive, _marked(visit, send))
        finally:
            self._visits -= 1
            self._bodies -= visit.size
            _write_access(visit, scope)

    async def _answer(self, visit: _Visit, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
            async with asyncio.timeout(limits.REQUEST_SECONDS):
                await self._app(scope, self._measured(visit, receive), send)
        except HTTPException as refusal:
            await _refuse(visit, scope, receive, send, refusal)
        except TimeoutError:
            await _refuse(visit, scope, receive, send, _too_slow())
        except ClientDisconnect:
            # What the application has answered, nobody got.
            visit.status = 0
        except Exception:  # noqa: BLE001 - it is in the log, and the next request is served
            # The application has answered already, without a word about what went wrong.
            _LOG.exception("a request ended in a defect")

    def _check(self, scope: Scope) -> None:
        """Refuses what can be refused by a request's head."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        size = (
            len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(text) for name, text in headers)
        )
        host, origin = _text(headers, b"host"), _text(headers, b"origin")
        length = _text(headers, b"content-length")
        if size > limits.MAX_HEADER_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if not self._hosts.answer_to(host):
            raise HTTPException(HTTPStatus.FORBIDDEN, "This org does not answer to the name in the Host header")
        if origin and not is_same_origin(origin, host):
            raise HTTPException(HTTPStatus.FORBIDDEN, "Pages of other origins may not call this org")
        if length.isdecimal() and int(length) > limits.MAX_SOAP_BYTES:
            raise _too_large()
        if self._visits > limits.MAX_REQUESTS:
            raise _too_many()

    def _measured(self, visit: _Visit, receive: Receive) -> Receive:
        async def measured() -> Message:
            try:
                message = await asyncio.wait_for(receive(), limits.PIECE_SECONDS)
            except TimeoutError:
                raise _too_slow() from None
            size = len(message.get("body", b""))
            visit.size += size
            self._bodies += size
            if visit.size > limits.MAX_SOAP_BYTES:
                raise _too_large()
            if self._bodies > limits.MAX_BODIES_BYTES:
                raise _too_many()
            return message

        return measured


def _marked(visit: _Visit, send: Send) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            visit.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *_SECURITY_HEADERS]}
        for piece in _pieces(message):
            await send(piece)
        visit.is_answered = message["type"] == "http.response.body" and not message.get("more_body")

    return marked


def _pieces(message: Message) -> Iterator[Message]:
    """Cuts a body, so that whoever sends it on waits for its reader and holds one piece at a time."""
    body = message.get("body", b"")
    for start in range(0, len(body) - limits.PIECE_BYTES, limits.PIECE_BYTES):
        yield {**message, "body": body[start : start + limits.PIECE_BYTES], "more_body": True}
    last = max(0, len(body) - 1) // limits.PIECE_BYTES * limits.PIECE_BYTES
    yield {**message, "body": body[last:]} if body else message


async def _refuse(visit: _Visit, scope: Scope, receive: Receive, send: Send, refusal: HTTPException) -> None:
    """Answers a refusal; an answer that has begun is broken off by whoever carries it."""
    if visit.status and not visit.is_answered:
        raise ConnectionAbortedError
    if not visit.status:
        await refusal_reply(visit.path, refusal)(scope, receive, send)


def _write_access(visit: _Visit, scope: Scope) -> None:
    client = scope["client"][0] if scope.get("client") else "-"
    milliseconds = round((time.monotonic() - visit.began) * 1000)
    _LOG.info("%s %s %s %s %d ms", client, scope["method"], _shown(visit.path), visit.status or "-", milliseconds)


def _shown(path: str) -> str:
    """Gives a path for the log: no query, no part that is long enough to be a secret."""
    parts = (part if len(part) <= _MAX_SHOWN_CHARS and "!" not in part else "..." for part in path.split("/"))
    return quote("/".join(parts))


def _text(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    return next((text.decode("latin-1") for each, text in headers if each == name), "")


def _too_large() -> HTTPException:
    return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a message may have {limits.MAX_SOAP_BYTES:,} bytes")


def _too_many() -> HTTPException:
    return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "This org is busy; try again later")


def _too_slow() -> HTTPException:
    return HTTPException(HTTPStatus.REQUEST_TIMEOUT, "The request took too long")


_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_AUTHORITY: Final = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?::(?P<port>\d{1,5}))?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names of a served org.

    Attributes:
        names: those that hold with the server's own port, in small letters.
        port: the server's.
        others: those that hold with any port, as behind a proxy, in small letters.
        any_address: whether IP addresses hold too; only names can be made to point elsewhere.
    """

    names: frozenset[str]
    port: int
    others: frozenset[str] = frozenset()
    any_address: bool = False

    def answer_to(self, host: str) -> bool:
        """Tells whether a Host header names this org."""
        found = _AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name = _plain(found["v6"] or found["name"])
        if name in self.others:
            return True
        is_ours = name in self.names or (self.any_address and _is_address(name))
        return is_ours and int(found["port"] or self.port) == self.port


def hosts_of(bound: str, port: int, *, others: Iterable[str] = ()) -> Hosts:
    """Gives the names of a server that listens at an address.

    Args:
        bound: the address or name it listens at.
        port: where it listens.
        others: names that were set for it, with any port.
    """
    names = {_plain(bound)} | (set(_LOOPBACK_NAMES) if is_loopback(bound) or _is_any(bound) else set())
    return Hosts(frozenset(names), port, frozenset(map(_plain, others)), any_address=_is_any(bound))


def is_same_origin(origin: str, host: str) -> bool:
    """Tells whether a page of an Origin was served under a Host header's name."""
    scheme, _, authority = origin.partition("://")
    port = _DEFAULT_PORTS.get(scheme.lower())
    return port is not None and authority.lower() in {host.lower(), f"{host.lower()}:{port}"}


def _plain(host: str) -> str:
    """Gives the one spelling of a name or address: `::1` for `0:0:0:0:0:0:0:1`."""
    return str(ipaddress.ip_address(host)) if _is_address(host) else host.lower().removesuffix(".")


def _is_any(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
