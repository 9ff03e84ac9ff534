"""Checks of requests to a served org: host and origin, sizes, numbers and time limits.

Requests for other host names are refused, so that no web page reaches the org by DNS rebinding.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import time
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.protocol.json_fields import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_LOG: Final = logging.getLogger(__name__)
# Pages have their own policy; a browser must not load, run or embed anything from other replies.
_SECURITY_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
_MAX_SHOWN_CHARS: Final = 40
_EVENTS: Final = "text/event-stream"
# Requests by which no page of another origin can change anything here.
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_AUTHORITY: Final = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?::(?P<port>\d{1,5}))?")
_HOST: Final = re.compile(r"[\w.-]+|[0-9A-Fa-f:.]+")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_PORT: Final = 65535


@dataclass(slots=True)
class _RequestState:
    """The state of one request; `status` is 0 before the reply begins, `size` counts the body's received bytes.

    When a request `has_arrived` as a whole, it `has_place` among the concurrent ones, until its reply ends or turns out
    to be a stream of events, which waits most of the time.
    """

    path: str
    address: str
    began: float
    status: int = 0
    is_answered: bool = False
    has_arrived: bool = False
    has_place: bool = False
    size: int = 0


class RequestGuard:
    """ASGI middleware: checks requests, limits time and memory, and adds security headers and an access log."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts
        self._requests = 0
        self._bodies: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request: refuse it, or pass it to the application."""
        state = _RequestState(scope["path"], scope["client"][0] if scope.get("client") else "-", time.monotonic())
        try:
            await self._answer(state, scope, receive, self._with_headers(state, send))
        finally:
            self._release(state)
            self._bodies[state.address] -= state.size
            if not self._bodies[state.address]:
                del self._bodies[state.address]
            _write_access(state, scope)

    async def _answer(self, state: _RequestState, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(state, scope)
            async with asyncio.timeout(limits.REQUEST_SECONDS):
                await self._app(scope, self._counted(state, receive), send)
        except HTTPException as refusal:
            await _refuse(state, scope, receive, send, refusal)
        except TimeoutError:
            await _refuse(state, scope, receive, send, _too_slow())
        except ClientDisconnect:
            # The client did not receive the reply.
            state.status = 0
        except Exception:  # noqa: BLE001 - it is logged, and the server continues
            # The application has already sent a reply without details.
            _LOG.exception("a request failed with an unexpected error")

    def _check(self, state: _RequestState, scope: Scope) -> None:
        """Refuse a request by its head."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        size = (
            len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(text) for name, text in headers)
        )
        host, origin = _text(headers, b"host"), _text(headers, b"origin")
        length = _text(headers, b"content-length")
        if size > limits.MAX_HEADER_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if not self._hosts.accept(host):
            raise HTTPException(HTTPStatus.FORBIDDEN, "This org does not accept the name in the Host header")
        is_foreign = _text(headers, b"sec-fetch-site") in {"cross-site", "same-site"}
        if (origin and not is_same_origin(origin, host)) or (is_foreign and scope["method"] not in _SAFE_METHODS):
            raise HTTPException(HTTPStatus.FORBIDDEN, "Pages of other origins must not call this org")
        if length.isdecimal() and int(length) > limits.MAX_SOAP_BYTES:
            raise _too_large()
        if length in {"", "0"} and not _text(headers, b"transfer-encoding"):
            self._count(state)

    def _count(self, state: _RequestState) -> None:
        """Count a request that has arrived as a whole; clients that send a body slowly take no place of others."""
        if state.has_arrived:
            return
        state.has_arrived = state.has_place = True
        self._requests += 1
        if self._requests > limits.MAX_REQUESTS:
            raise _too_many()

    def _release(self, state: _RequestState) -> None:
        self._requests -= state.has_place
        state.has_place = False

    def _counted(self, state: _RequestState, receive: Receive) -> Receive:
        async def counted() -> Message:
            if state.has_arrived:
                return await receive()
            allowed = limits.BODY_SECONDS + state.size / limits.MIN_BODY_BYTES_PER_SECOND
            left = max(0.0, state.began + allowed - time.monotonic())
            try:
                async with asyncio.timeout(min(left, limits.PIECE_SECONDS)):
                    message = await receive()
            except TimeoutError:
                raise _too_slow() from None
            size = len(message.get("body", b""))
            state.size += size
            self._bodies[state.address] += size
            if state.size > limits.MAX_SOAP_BYTES:
                raise _too_large()
            is_greedy = self._bodies[state.address] > limits.MAX_ADDRESS_BODIES_BYTES
            if is_greedy or self._bodies.total() > limits.MAX_BODIES_BYTES:
                raise _too_many()
            if not message.get("more_body"):
                self._count(state)
            return message

        return counted

    def _with_headers(self, state: _RequestState, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                state.status = message["status"]
                headers = [*message.get("headers", ())]
                if _text(headers, b"content-type").startswith(_EVENTS):
                    self._release(state)
                given = {name for name, _ in headers}
                message = {
                    **message,
                    "headers": [*headers, *(header for header in _SECURITY_HEADERS if header[0] not in given)],
                }
            for chunk in _chunks(message):
                await send(chunk)
            state.is_answered = message["type"] == "http.response.body" and not message.get("more_body")

        return send_with_headers


def _chunks(message: Message) -> Iterator[Message]:
    """Split a body into chunks, so that the server waits for the client after each one."""
    body = message.get("body", b"")
    for start in range(0, len(body) - limits.PIECE_BYTES, limits.PIECE_BYTES):
        yield {**message, "body": body[start : start + limits.PIECE_BYTES], "more_body": True}
    last = max(0, len(body) - 1) // limits.PIECE_BYTES * limits.PIECE_BYTES
    yield {**message, "body": body[last:]} if body else message


async def _refuse(state: _RequestState, scope: Scope, receive: Receive, send: Send, refusal: HTTPException) -> None:
    """Send a refusal, or abort a reply that has begun."""
    if state.status and not state.is_answered:
        raise ConnectionAbortedError
    if not state.status:
        # What replies are made of takes longer to load than a server.
        from evalmeta.org.handlers.rest import refusal_reply

        await refusal_reply(state.path, refusal)(scope, receive, send)


def _write_access(state: _RequestState, scope: Scope) -> None:
    milliseconds = round((time.monotonic() - state.began) * 1000)
    _LOG.info(
        "%s %s %s %s %d ms", state.address, scope["method"], _shown(state.path), state.status or "-", milliseconds
    )


def _shown(path: str) -> str:
    """Return a path for the log, without parts that are long enough to be a secret."""
    parts = (part if len(part) <= _MAX_SHOWN_CHARS and "!" not in part else "..." for part in path.split("/"))
    return quote("/".join(parts))


def _text(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    return next((text.decode("latin-1") for header, text in headers if header == name), "")


def _too_large() -> HTTPException:
    return HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {limits.MAX_SOAP_BYTES:,} bytes"
    )


def _too_many() -> HTTPException:
    return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "This org is busy; try again later")


def _too_slow() -> HTTPException:
    return HTTPException(HTTPStatus.REQUEST_TIMEOUT, "The request took too long")


@dataclass(frozen=True, slots=True)
class Hosts:
    """The host names of a served org.

    Attributes:
        names: the names that are valid with the server's own port, in lower case.
        port: the server's port.
        others: other names, such as those of a proxy, in lower case, each with its port or None for any port.
        any_address: whether every IP address is valid too; DNS rebinding needs a name.
    """

    names: frozenset[str]
    port: int
    others: frozenset[tuple[str, int | None]] = frozenset()
    any_address: bool = False

    def accept(self, host: str) -> bool:
        """Return whether a Host header is valid for this org."""
        authority = _AUTHORITY.fullmatch(host)
        if authority is None:
            return False
        name = _normalised(authority["v6"] or authority["name"])
        ports = [int(authority["port"])] if authority["port"] else list(_DEFAULT_PORTS.values())
        if any((name, port) in self.others for port in (None, *ports)):
            return True
        is_ours = name in self.names or (self.any_address and _is_address(name))
        return is_ours and int(authority["port"] or self.port) == self.port


def hosts_of(bound: str, port: int, *, others: Iterable[str] = ()) -> Hosts:
    """Return the host names of a server that listens at `bound`.

    Each of `others` is NAME, which is valid with any port, or NAME:PORT. Raise UsageError if one is neither.
    """
    names = {_normalised(bound)} | (set(_LOOPBACK_NAMES) if is_loopback(bound) or is_unspecified(bound) else set())
    return Hosts(frozenset(names), port, frozenset(map(_other_host, others)), any_address=is_unspecified(bound))


def _other_host(text: str) -> tuple[str, int | None]:
    """Return a name and its port, None for any port; raise UsageError."""
    if _is_address(text):
        return _normalised(text), None
    authority = _AUTHORITY.fullmatch(text)
    port = int(authority["port"]) if authority and authority["port"] else None
    name = (authority["v6"] or authority["name"]) if authority else ""
    if not _HOST.fullmatch(name) or not (port is None or 0 < port <= _MAX_PORT):
        raise UsageError(
            f"{text!r} is not a valid host",
            actions=["Give a name with or without a port, such as org.example.com or org.example.com:8443."],
        )
    return _normalised(name), port


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether an Origin header has the same host and port as a Host header."""
    scheme, _, authority = origin.partition("://")
    port = _DEFAULT_PORTS.get(scheme.lower())
    return port is not None and authority.lower() in {host.lower(), f"{host.lower()}:{port}"}


def _normalised(host: str) -> str:
    """Return the normal form of a name or address, such as `::1` for `0:0:0:0:0:0:0:1`."""
    return str(ipaddress.ip_address(host)) if _is_address(host) else host.lower().removesuffix(".")


def is_unspecified(host: str) -> bool:
    """Return whether a host is the address `0.0.0.0` or `::`."""
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
