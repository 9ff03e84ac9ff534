"""A relay: a port of loopback that passes connections on to another, until a test cuts them."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Relay:
    """Passes what arrives at its port on; while it is cut, it resets connections and refuses new ones."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener: socket.socket | None = None
        self.port = 0
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.mend()

    def mend(self) -> None:
        """Accept connections, at the same port as before."""
        self._listener = _listener(self.port)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            with self._lock:
                if listener is not self._listener:
                    client.close()
                    server.close()
                    return
                self._ends |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for end in (source, target):
            self._close(end)

    def _close(self, end: socket.socket) -> None:
        with self._lock:
            self._ends.discard(end)
        # Another thread may be reading it.
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            ends = list(self._ends)
        if listener:
            # A thread waits in `accept`.
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for end in ends:
            self._close(end)


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener


@contextmanager
def relay(target: int) -> Iterator[Relay]:
    """Yield a relay to a port of loopback."""
    passing = Relay(target)
    try:
        yield passing
    finally:
        passing.cut()
