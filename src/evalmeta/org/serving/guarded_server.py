"""Servers of this program: a socket that listens, and uvicorn behind a guard."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import uvicorn

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.org.serving.http_protocol import protocol_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.org.serving.endpoint import Certificate
    from evalmeta.org.serving.request_guard import RequestGuard

# With nohup, the signal of a closed terminal is ignored.
_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN
)
_OTHER_HOST: Final = "Set --host to the name or an address of this machine."
_OTHER_PORT: Final = "Choose another port with --port; 0 for any free port."
# Connections that wait to be accepted.
QUEUED: Final = 2 * limits.MAX_REQUESTS


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise UsageError if it cannot be opened."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=QUEUED)
        # A socket that knows its protocol: asyncio then sets TCP_NODELAY, without which small replies wait for 40 ms.
        return socket.socket(fileno=listening.detach())
    except socket.gaierror as error:
        raise UsageError(f"the server cannot listen at {host}: {error.strerror}", actions=[_OTHER_HOST]) from None
    except OSError as error:
        # Python's own message repeats the address.
        raise UsageError(
            f"the server cannot listen at {host} port {port}: {os.strerror(error.errno or 0)}",
            actions=[_OTHER_HOST if error.errno == errno.EADDRNOTAVAIL else _OTHER_PORT],
        ) from None


class GuardedServer(uvicorn.Server):
    """uvicorn behind a guard, which stops at a signal without raising it again.

    `renew` is called every few seconds.
    """

    def __init__(
        self, gate: RequestGuard, renew: Callable[[], None] = lambda: None, certificate: Certificate | None = None
    ) -> None:
        async def notify() -> None:
            renew()

        super().__init__(
            uvicorn.Config(
                gate,
                http=protocol_of(certificate),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=int(limits.SHUTDOWN_SECONDS),
                callback_notify=notify,
                timeout_notify=limits.SERVER_SIGN_SECONDS,
                backlog=limits.ACCEPTED_AT_ONCE,
                h11_max_incomplete_event_size=limits.MAX_HEADER_BYTES,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal."""
        loop = asyncio.get_running_loop()
        for signal_number in _SIGNALS:
            # Windows has no such handlers; Ctrl-C cancels there.
            with suppress(NotImplementedError):
                loop.add_signal_handler(signal_number, self.handle_exit, signal_number, None)
        try:
            yield
        finally:
            for signal_number in _SIGNALS:
                with suppress(NotImplementedError):
                    loop.remove_signal_handler(signal_number)
