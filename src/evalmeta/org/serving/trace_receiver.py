"""A receiver of traces on this machine: OTLP over HTTP, as protobuf and JSON, with a token, for the time of runs."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import nullcontext
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from evalmeta.engine.traced import TracedSubject, TraceStore
from evalmeta.errors import FormatError, SettingsError, SubjectError, UsageError
from evalmeta.traces import otlp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from socket import socket

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.engine.interfaces import Subject

_HOST: Final = "127.0.0.1"
TOKEN_VARIABLE: Final = "EVALMETA_TRACES_TOKEN"  # noqa: S105 - a name
_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"
_EXPORT_MS: Final = 200
_INSTALL: Final = "Run: pip install 'evalmeta[otel]'"


def with_traces(subject: Subject, *, port: int, seconds: float) -> Subject:
    """Return a subject whose answers traces complete; raise SettingsError if they cannot be received.

    With port 0, any free port is used, and only programs that evalmeta starts know it. A fixed port needs the token
    that the agent sends in the environment.
    """
    if not find_spec("uvicorn") or not find_spec("opentelemetry") or not find_spec("opentelemetry.proto"):
        raise SettingsError("traces = true needs packages that are not installed", actions=[_INSTALL])
    token = os.environ.get(TOKEN_VARIABLE, "") if port else secrets.token_urlsafe(24)
    if not token:
        known = {**_environment(port, ""), "OTEL_EXPORTER_OTLP_HEADERS": f'"authorization=Bearer%20${TOKEN_VARIABLE}"'}
        variables = "\n".join(f"{name}={value}" for name, value in known.items())
        raise SettingsError(
            f"trace_port needs a token in {TOKEN_VARIABLE}, which is not set",
            actions=[
                f"Run: export {TOKEN_VARIABLE}=$(openssl rand -hex 16)",
                f"Start the agent with these variables:\n\n{variables}",
            ],
        )
    return TracedSubject(subject, _Use(port, token), seconds=seconds)


def _environment(port: int, token: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{_HOST}:{port}",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://{_HOST}:{port}/v1/traces",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={quote(f'Bearer {token}')}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": f"{_EXPORT_MS}",
    }


class _Use:
    """What one run has of a receiver; runs of a process share the one of a fixed port."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._receiver: TraceReceiver | None = None

    @property
    def store(self) -> TraceStore:
        return self._opened().store

    @property
    def environment(self) -> Mapping[str, str]:
        return self._opened().environment

    def _opened(self) -> TraceReceiver:
        assert self._receiver is not None  # noqa: S101 - `open` comes first
        return self._receiver

    async def open(self) -> None:
        if self._receiver is None:
            shared = _SHARED.get(self._port) if self._port else None
            self._receiver = shared or TraceReceiver(self._port, self._token)
            if self._port:
                _SHARED[self._port] = self._receiver
            self._receiver.users += 1
        await self._receiver.start()

    async def close(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        receiver.users -= 1
        if not receiver.users:
            _SHARED.pop(self._port, None)
            await receiver.stop()


_SHARED: Final[dict[int, TraceReceiver]] = {}


class TraceReceiver:
    """A server for exporters on this machine, which have its token."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self.store = TraceStore()
        self.users = 0
        self._serving: asyncio.Task[None] | None = None
        self._started: asyncio.Task[None] | None = None
        self._reading = asyncio.Semaphore(2)

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables with which an SDK of OpenTelemetry exports traces here."""
        return _environment(self._port, self._token)

    async def start(self) -> None:
        """Begin to receive, once; raise SubjectError if another program has the port."""
        if self._started is None:
            self._started = asyncio.create_task(self._start())
        # Another case may be cancelled while it waits for the start.
        await asyncio.shield(self._started)

    async def _start(self) -> None:
        from starlette.applications import Starlette
        from starlette.routing import Route

        from evalmeta.org.serving.guarded_server import GuardedServer, listen
        from evalmeta.org.serving.request_guard import RequestGuard, hosts_of

        try:
            listening = listen(_HOST, self._port)
        except UsageError as error:
            raise SubjectError(f"traces cannot be received: {error}; choose another trace_port") from None
        self._port = listening.getsockname()[1]
        paths = ("/v1/traces", "/v1/logs", "/v1/metrics")
        app = Starlette(routes=[Route(path, self._receive, methods=["POST"]) for path in paths])
        ready = asyncio.Event()

        class Server(GuardedServer):
            def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override] # runs handle signals
                return nullcontext()

            async def startup(self, sockets: list[socket] | None = None) -> None:
                await super().startup(sockets)
                ready.set()

        self._server = Server(RequestGuard(app, hosts_of(_HOST, self._port)))
        self._serving = asyncio.create_task(self._server.serve([listening]))
        await ready.wait()

    async def stop(self) -> None:
        """End the server, and close its connections."""
        if self._serving is not None:
            self._server.should_exit = self._server.force_exit = True
            await asyncio.wait({self._serving})

    async def _receive(self, request: Request) -> Response:
        from starlette.responses import PlainTextResponse, Response

        given = request.headers.get("authorization", "")
        if not secrets.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return PlainTextResponse("the token is missing or wrong", HTTPStatus.UNAUTHORIZED)
        is_json = request.headers.get("content-type", "").startswith(_JSON)
        signal = request.url.path.rpartition("/")[2]
        # Only two bodies are in memory at the same time.
        async with self._reading:
            body = await request.body()
            if signal != "metrics":
                try:
                    data = await asyncio.to_thread(otlp.unpacked, body)
                    telemetry = await asyncio.to_thread(
                        otlp.read_request, data, signal="logs" if signal == "logs" else "traces", is_json=is_json
                    )
                except FormatError as error:
                    return PlainTextResponse(str(error), HTTPStatus.BAD_REQUEST)
                self.store.add(telemetry, size=len(data))
        return Response("{}" if is_json else b"", media_type=_JSON if is_json else _PROTOBUF)
