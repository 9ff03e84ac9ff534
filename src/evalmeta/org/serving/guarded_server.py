"""Servers of this program: uvicorn behind a guard."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn

from evalmeta import limits
from evalmeta.org.serving.http_protocol import protocol_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.types import ASGIApp

    from evalmeta.org.serving.endpoint import Certificate
    from evalmeta.org.serving.request_guard import RequestGuard

# With nohup, the signal of a closed terminal is ignored.
_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN
)


def server_config(
    gate: ASGIApp, certificate: Certificate | None = None, notify: Callable[[], Awaitable[None]] | None = None
) -> uvicorn.Config:
    """Return the settings of a server behind a guard; `notify` is called every few seconds."""
    return uvicorn.Config(
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


class GuardedServer(uvicorn.Server):
    """uvicorn behind a guard, which stops at a signal without raising it again.

    `renew` is called every few seconds.
    """

    def __init__(
        self, gate: RequestGuard, renew: Callable[[], None] = lambda: None, certificate: Certificate | None = None
    ) -> None:
        async def notify() -> None:
            renew()

        super().__init__(server_config(gate, certificate, notify))

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
