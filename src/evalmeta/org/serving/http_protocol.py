"""HTTP connections of a served org: uvicorn's protocol with TLS, deadlines, and errors in Salesforce's format."""

from __future__ import annotations

import http
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from evalmeta import limits

if TYPE_CHECKING:
    import asyncio
    import ssl

    from evalmeta.org.serving.endpoint import Certificate


_State: TypeAlias = Literal["head", "request", "answer", "rest", "idle"]
_SECONDS: Final[dict[_State, float]] = {
    "head": limits.HEAD_SECONDS,
    "request": limits.REQUEST_SECONDS + limits.REST_SECONDS,
    "answer": limits.PIECE_SECONDS,
    "rest": limits.REST_SECONDS,
}


@cache
def max_connections() -> int:
    """Return how many connections may be open, so that file descriptors are left for other files."""
    try:
        import resource
    except ImportError:
        return limits.MAX_CONNECTIONS
    available, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if available == resource.RLIM_INFINITY:
        return limits.MAX_CONNECTIONS
    return max(1, min(limits.MAX_CONNECTIONS, max(available - limits.SPARE_FILE_DESCRIPTORS, available // 2)))


def protocol_of(certificate: Certificate | None) -> type[OrgProtocol]:
    """Return the protocol of a server's connections: TLS with its certificate, or plain HTTP."""

    class Protocol(OrgProtocol):
        tls = certificate.context() if certificate else None

    return Protocol


class OrgProtocol(H11Protocol):
    """Close connections whose client is too slow to send a request or to read the reply.

    With `tls`, connections begin with a handshake. asyncio hides those that have not finished it, and they need a file
    descriptor too, so that this class makes the handshake itself.
    """

    tls: ClassVar[ssl.SSLContext | None] = None
    _state: _State = "idle"
    _deadline: asyncio.TimerHandle | None = None
    _handshake: asyncio.Task[None] | None = None
    _early: bytes = b""  # arrived with the end of the handshake
    since: float = 0.0  # when its state began, on the clock of the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the base class
        """Start the TLS handshake, or the deadline for the head of the first request."""
        if self.tls is None:
            self._begin(transport)
            return
        self.transport, self.since = transport, self.loop.time()
        self.connections.add(self)
        self._make_room()
        if not transport.is_closing():
            self._handshake = self.loop.create_task(self._encrypt(transport, self.tls))

    async def _encrypt(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        seconds = limits.HANDSHAKE_SECONDS
        try:
            encrypted = await self.loop.start_tls(transport, self, tls, server_side=True, ssl_handshake_timeout=seconds)
        except OSError:
            encrypted = None
        if encrypted is None:
            self.connections.discard(self)
            return
        self._begin(encrypted)
        if self._early:
            self.data_received(self._early)

    def _begin(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.since = self.loop.time()
        self._make_room()
        # Writing pauses until the client has read everything. With a limit of 0, asyncio's TLS would pause for ever.
        transport.set_write_buffer_limits(high=1, low=0)
        self._enter("head")

    def _make_room(self) -> None:
        """If there are too many connections, close the oldest without a complete request, of the address with most."""
        most = max_connections()
        if len(self.connections) <= most:
            return
        connections = [
            connection
            for connection in self.connections
            if isinstance(connection, OrgProtocol) and not connection.transport.is_closing()
        ]
        if len(connections) <= most:
            return
        by_address: defaultdict[str, list[OrgProtocol]] = defaultdict(list)
        for connection in connections:
            if not connection.has_request and connection is not self:
                by_address[connection.address].append(connection)
        groups = sorted(by_address.values(), key=len) or [[self]]
        for connection in sorted(groups[-1], key=lambda connection: connection.since)[: most // 10 + 1]:
            connection.transport.abort()

    @property
    def address(self) -> str:
        """Return the client's address, without its port."""
        name = self.transport.get_extra_info("peername")
        return str(name[0]) if name else ""

    @property
    def has_request(self) -> bool:
        """Return whether a request has arrived as a whole, and its reply is not complete."""
        return self._state not in {"head", "idle"} and self.conn.their_state is not h11.SEND_BODY

    def pause_writing(self) -> None:
        """Start the deadline for the client to read the reply."""
        super().pause_writing()
        self._enter("answer")

    def resume_writing(self) -> None:
        """Continue after the client has read the reply."""
        super().resume_writing()
        self._enter(self._state_now())

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        super().connection_lost(exc)
        self._enter("idle")

    def data_received(self, data: bytes) -> None:
        """Handle received data."""
        if self.scheme is None:
            self._early += data
            return
        super().data_received(data)
        self._enter(self._state_now())

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        super().on_response_complete()
        self._enter(self._state_now())

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP or a long head; abort the connection if a reply has already begun."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        is_long = len(self.conn.trailing_data[0]) > limits.MAX_HEADER_BYTES
        status, code = (431, "REQUEST_TOO_LARGE") if is_long else (400, "BAD_REQUEST")
        self._refuse(status, code, "the head of the request is too long" if is_long else msg)

    def _state_now(self) -> _State:
        if self.flow.write_paused:
            return "answer"
        if self.transport.is_closing():
            return "idle"
        if self.conn.their_state is h11.IDLE:
            return "head" if self.timeout_keep_alive_task is None else "idle"
        return "rest" if self.conn.our_state is h11.DONE else "request"

    def _enter(self, state: _State) -> None:
        """Set the deadline of a new state; more bytes in the same state do not extend it."""
        if state == self._state:
            return
        self._state, self.since = state, self.loop.time()
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = _SECONDS.get(state)
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        if self._state == "head" and self.conn.our_state is h11.IDLE:
            self._refuse(408, "REQUEST_RUNNING_TOO_LONG", "the head of the request took too long")
        else:
            self.transport.abort()

    def _refuse(self, status: int, code: str, message: str) -> None:
        # What replies are made of takes longer to load than a server.
        from evalmeta.org.handlers.rest import fault_reply

        reply = fault_reply("", code, message, status=status)
        headers = [*reply.raw_headers, (b"connection", b"close")]
        reason = http.HTTPStatus(status).phrase.encode()
        response = h11.Response(status_code=status, headers=headers, reason=reason)
        for event in (response, h11.Data(data=bytes(reply.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
