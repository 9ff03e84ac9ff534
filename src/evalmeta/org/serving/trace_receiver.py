"""A receiver of traces on this machine: OTLP over HTTP, as protobuf and JSON, with a token."""

from __future__ import annotations

import asyncio
import os
import secrets
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

from evalmeta.engine.traced import TracedSubject, TraceStore
from evalmeta.errors import FormatError, SettingsError, SubjectError, UsageError
from evalmeta.org.serving.sockets import listen
from evalmeta.traces import otlp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn.server import ServerState

    from evalmeta.engine.interfaces import Subject
    from evalmeta.traces.spans import Telemetry

_HOST: Final = "127.0.0.1"
TOKEN_VARIABLE: Final = "EVALMETA_TRACES_TOKEN"  # noqa: S105 - a name
_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"
# How often agents that evalmeta starts export spans; `limits.TRACE_EXPORT_SECONDS` has a margin.
_EXPORT_MS: Final = 50
_INSTALL: Final = "Run: pip install 'evalmeta[otel]'"
_MAKE_TOKEN: Final = f"Run: export {TOKEN_VARIABLE}=$(openssl rand -hex 16)"


class TraceSink(Protocol):
    """What keeps the traces that a receiver receives."""

    def add(self, telemetry: Telemetry, *, size: int) -> None:
        """Add what an exporter sent in some bytes."""
        ...

    def refuse(self, why: str) -> None:
        """Note that a request was refused."""
        ...


def with_traces(subject: Subject, *, port: int, seconds: float) -> Subject:
    """Return a subject whose answers traces complete; raise SettingsError if they cannot be received.

    With port 0, any free port is used, and only programs that evalmeta starts know it. A fixed port needs the token
    that the agent sends in the environment.
    """
    check_receiver(port)
    token = os.environ.get(TOKEN_VARIABLE, "") if port else secrets.token_urlsafe(24)
    return TracedSubject(subject, _Use(port, token), seconds=seconds)


def check_receiver(port: int) -> None:
    """Raise SettingsError if no traces can be received at a port: a package, the token or the port is missing."""
    if not is_protobuf_installed():
        raise SettingsError("traces = true needs opentelemetry-proto, which is not installed", actions=[_INSTALL])
    if port and not os.environ.get(TOKEN_VARIABLE):
        raise SettingsError(
            f"trace_port needs a token in {TOKEN_VARIABLE}, which is not set",
            actions=[_MAKE_TOKEN, f"Start the agent with these variables:\n\n{exporter_lines(port)}"],
        )
    if port:
        _check_port(port)


def _check_port(port: int) -> None:
    if (shared := _shared(port)) is not None:
        # A check outside of the runs may be in another thread than theirs.
        if _running_loop() not in {None, shared.loop}:
            raise SettingsError(f"another run of this program, in another thread, uses trace_port {port}")
        return
    try:
        listen(_HOST, port).close()
    except UsageError as error:
        raise SettingsError(
            f"traces cannot be received at trace_port {port}: {error}",
            actions=[
                "End the program that uses the port, such as another run of the agent.",
                "Choose another trace_port, and start the agent with its OTEL_EXPORTER_OTLP_ENDPOINT.",
            ],
        ) from None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def is_protobuf_installed() -> bool:
    """Return whether the protobuf of OTLP, in which agents send traces, can be read."""
    # The package around a module must be there before the module can be looked for.
    return bool(find_spec("opentelemetry") and find_spec("opentelemetry.proto"))


def exporter_lines(port: int) -> str:
    """Return the lines of a shell after which programs export their traces to a port, with the token's variable."""
    known = {**_environment(port, ""), "OTEL_EXPORTER_OTLP_HEADERS": f'"authorization=Bearer%20${TOKEN_VARIABLE}"'}
    return "\n".join(f"export {name}={known[name]}" for name in known if name not in _FOR_PROGRAMS)


# An endpoint for all signals is enough, unless a program inherits another one for its traces.
_FOR_PROGRAMS: Final = frozenset({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"})


def _environment(port: int, token: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{_HOST}:{port}",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://{_HOST}:{port}/v1/traces",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={quote(f'Bearer {token}')}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": f"{_EXPORT_MS}",
    }


class _Use:
    """What one run has of a receiver; runs of an event loop share the one of a fixed port."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._shared: _SharedReceiver | None = None

    @property
    def store(self) -> TraceStore:
        return self._opened().store

    @property
    def environment(self) -> Mapping[str, str]:
        return self._opened().receiver.environment

    def _opened(self) -> _SharedReceiver:
        assert self._shared is not None  # noqa: S101 - `open` comes first
        return self._shared

    async def open(self) -> None:
        if self._shared is not None:
            return
        loop = asyncio.get_running_loop()
        shared = _shared(self._port)
        if shared is None:
            shared = _SharedReceiver(self._port, self._token, loop)
            if self._port:
                _SHARED[self._port] = shared
        elif shared.loop is not loop:
            raise SubjectError(f"traces cannot be received: another thread's run uses trace_port {self._port}")
        self._shared = shared
        shared.users += 1

    async def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is None:
            return
        shared.users -= 1
        if not shared.users:
            _SHARED.pop(self._port, None)
            await shared.receiver.stop()


class _SharedReceiver:
    """A receiver that listens, with what it received and the number of runs that use it."""

    def __init__(self, port: int, token: str, loop: asyncio.AbstractEventLoop) -> None:
        self.store = TraceStore()
        self.loop = loop
        self.users = 0
        try:
            self.receiver = TraceReceiver(port, token, self.store)
        except UsageError as error:
            raise SubjectError(f"traces cannot be received: {error}; choose another trace_port") from None


_SHARED: Final[dict[int, _SharedReceiver]] = {}


def _shared(port: int) -> _SharedReceiver | None:
    """Return the receiver of a fixed port; None if no run uses the port, or its event loop has ended."""
    shared = _SHARED.get(port)
    return None if shared is None or shared.loop.is_closed() else shared


class TraceReceiver:
    """A server for exporters on this machine, which have its token.

    It listens from the beginning, and accepts connections as soon as its modules are loaded: agents can be asked
    meanwhile. UsageError says that the port cannot be used. With port 0, it is any free one.
    """

    def __init__(self, port: int, token: str, sink: TraceSink) -> None:
        self._token = token
        self._sink = sink
        self._reading = asyncio.Semaphore(2)
        self._socket = listen(_HOST, port)
        self.port: int = self._socket.getsockname()[1]
        self._starting = asyncio.create_task(self._start())

    @property
    def url(self) -> str:
        """Return the address to which exporters send."""
        return f"http://{_HOST}:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables with which an SDK of OpenTelemetry exports traces here."""
        return _environment(self.port, self._token)

    async def _start(self) -> tuple[asyncio.Server, ServerState]:
        await asyncio.to_thread(_load)
        from starlette.applications import Starlette
        from starlette.routing import Route
        from uvicorn.server import ServerState

        from evalmeta.org.serving.guarded_server import server_config
        from evalmeta.org.serving.request_guard import RequestGuard, hosts_of

        paths = ("/v1/traces", "/v1/logs", "/v1/metrics")
        app = Starlette(routes=[Route(path, self._receive, methods=["POST"]) for path in paths])
        config = server_config(self._noting_refusals(RequestGuard(app, hosts_of(_HOST, self.port))))
        config.load()
        state = ServerState()

        # uvicorn's own server looks every 100 ms whether it must end, and ends after another 100 ms.
        def connection() -> asyncio.Protocol:
            protocol: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg] # as uvicorn calls it
                config=config, server_state=state, app_state={}
            )
            return protocol

        server = await asyncio.get_running_loop().create_server(connection, sock=self._socket)
        return server, state

    async def started(self) -> None:
        """Wait until connections are accepted."""
        await self._starting

    async def stop(self, *, seconds: float = 0.0) -> None:
        """End the server; requests that have begun may end within some seconds."""
        server, state = await self._starting
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks and seconds:
            await asyncio.wait(set(state.tasks), timeout=seconds)
        for connection in list(state.connections):
            connection.transport.abort()

    async def _receive(self, request: Request) -> Response:
        from starlette.responses import Response

        given = request.headers.get("authorization", "")
        if not secrets.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return _refusal(request, "the token is missing or wrong", HTTPStatus.UNAUTHORIZED)
        is_json = request.headers.get("content-type", "").startswith(_JSON)
        signal = request.url.path.rpartition("/")[2]
        # Only two bodies are in memory at the same time.
        async with self._reading:
            body = await request.body()
            if signal != "metrics":
                try:
                    telemetry, size = await asyncio.to_thread(
                        _read, body, "logs" if signal == "logs" else "traces", is_json
                    )
                except FormatError as error:
                    return _refusal(request, str(error), HTTPStatus.BAD_REQUEST)
                self._sink.add(telemetry, size=size)
        return Response("{}" if is_json else b"", media_type=_JSON if is_json else _PROTOBUF)

    def _noting_refusals(self, gate: ASGIApp) -> ASGIApp:
        """Return a server that notes which requests it refuses, also those that the guard refuses."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_noted(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] >= HTTPStatus.BAD_REQUEST:
                    self._sink.refuse(scope.get(_WHY) or HTTPStatus(message["status"]).phrase)
                await send(message)

            await gate(scope, receive, send_noted)

        return serve


_WHY: Final = "evalmeta.refusal"


def _refusal(request: Request, why: str, status: HTTPStatus) -> Response:
    from starlette.responses import PlainTextResponse

    request.scope[_WHY] = why
    return PlainTextResponse(why, status)


def _read(body: bytes, signal: otlp.Signal, is_json: bool) -> tuple[Telemetry, int]:  # noqa: FBT001 - for a thread
    """Return what a request has, and its size when it is unpacked."""
    data = otlp.unpacked(body)
    return otlp.read_request(data, signal=signal, is_json=is_json), len(data)


def _load() -> None:
    """Load the modules of the server and of the reader; a thread calls it, because the event loop must not wait."""
    import evalmeta.org.serving.guarded_server
    import evalmeta.org.serving.request_guard
    import evalmeta.traces.turns  # noqa: F401 - the others are modules that later code imports
