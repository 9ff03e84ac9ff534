"""HTTP on one connection of a served org: uvicorn's, with deadlines and with refusals in Salesforce's shape."""

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


class OrgProtocol(H11Protocol):
    """Closes connections whose client takes too long to send a head or a rest, or to read a piece of its answer."""

    _state: _State = "idle"
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the base class
        """Begins to wait for the first request's head."""
        super().connection_made(transport)
        # Writing is paused for as long as the client has not taken everything.
        transport.set_write_buffer_limits(0)
        self._watch("head")

    def pause_writing(self) -> None:
        """Begins to wait for the client to take what was written."""
        super().pause_writing()
        self._watch("answer")

    def resume_writing(self) -> None:
        """Goes on: the client has taken it."""
        super().resume_writing()
        self._watch(self._state_now())

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends all waiting."""
        super().connection_lost(exc)
        self._watch("idle")

    def data_received(self, data: bytes) -> None:
        """Reads on."""
        super().data_received(data)
        self._watch(self._state_now())

    def on_response_complete(self) -> None:
        """Waits for the next request, or for the rest of this one."""
        super().on_response_complete()
        self._watch(self._state_now())

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP, or has too long a head; after an answer has begun nothing can be said any more."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        is_long = len(self.conn.trailing_data[0]) > limits.MAX_HEADER_BYTES
        status, code = (431, "REQUEST_TOO_LARGE") if is_long else (400, "BAD_REQUEST")
        self._refuse(status, code, "the request's head is too long" if is_long else msg)

    def _state_now(self) -> _State:
        if self.flow.write_paused:
            return "answer"
        if self.transport.is_closing():
            return "idle"
        if self.conn.their_state is h11.IDLE:
            return "head" if self.timeout_keep_alive_task is None else "idle"
        return "rest" if self.conn.our_state is h11.DONE else "request"

    def _watch(self, state: _State) -> None:
        """Sets the deadline of a state that is new; a few bytes more do not prolong the one that is."""
        if state == self._state:
            return
        self._state = state
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = _SECONDS.get(state)
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        if self._state == "head" and self.conn.our_state is h11.IDLE:
            self._refuse(408, "REQUEST_RUNNING_TOO_LONG", "the request's head took too long")
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


_SECONDS: Final[dict[_State, float]] = {
    "head": limits.HEAD_SECONDS,
    "request": limits.REQUEST_SECONDS + limits.REST_SECONDS,
    "answer": limits.PIECE_SECONDS,
    "rest": limits.REST_SECONDS,
}
