"""HTTP connections of a served org: uvicorn's protocol with deadlines, and errors in Salesforce's format."""

from __future__ import annotations

import http
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from evalmeta import limits
from evalmeta.org.handlers.rest import fault_reply

if TYPE_CHECKING:
    import asyncio


_State: TypeAlias = Literal["head", "request", "answer", "rest", "idle"]
_SECONDS: Final[dict[_State, float]] = {
    "head": limits.HEAD_SECONDS,
    "request": limits.REQUEST_SECONDS + limits.REST_SECONDS,
    "answer": limits.PIECE_SECONDS,
    "rest": limits.REST_SECONDS,
}


class OrgProtocol(H11Protocol):
    """Close connections whose client is too slow to send a request or to read the reply."""

    _state: _State = "idle"
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the base class
        """Start the deadline for the head of the first request."""
        super().connection_made(transport)
        # With a limit of 0, writing pauses until the client has read everything.
        transport.set_write_buffer_limits(0)
        self._enter("head")

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
        self._state = state
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
        reply = fault_reply("", code, message, status=status)
        headers = [*reply.raw_headers, (b"connection", b"close")]
        reason = http.HTTPStatus(status).phrase.encode()
        response = h11.Response(status_code=status, headers=headers, reason=reason)
        for event in (response, h11.Data(data=bytes(reply.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
