"""A proxy on loopback whose tunnels all end at one port; sf sends run-eval to api.salesforce.com, and nowhere else."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["tunnel_to"]

_CHUNK_BYTES = 65_536


@contextmanager
def tunnel_to(port: int) -> Iterator[str]:
    """Run a proxy that answers CONNECT to any host with this port on loopback; yield its address."""

    class Tunnel(StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            with socket.create_connection(("127.0.0.1", port)) as target:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=_copy, args=(target, self.request))
                back.start()
                _copy(self.request, target)
                back.join()

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Tunnel) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
