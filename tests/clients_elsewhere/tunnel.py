"""A proxy on loopback whose tunnels all end at one port, and orgs behind it.

sf sends run-eval and previews to api.salesforce.com, and nowhere else.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING

from clients_elsewhere.orgs import served_org
from org.certificates import make_certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clients_elsewhere.orgs import Org

__all__ = ["Tunnelled", "org_behind_tunnel", "tunnel_to"]

_API = "api.salesforce.com"

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


@dataclass(frozen=True, slots=True)
class Tunnelled:
    """An org that clients reach as api.salesforce.com, and the environment variables that let them."""

    org: Org
    env: dict[str, str]


@contextmanager
def org_behind_tunnel(folder: Path) -> Iterator[Tunnelled]:
    """Serve an org over TLS as api.salesforce.com, in a folder below this one."""
    made = make_certificate(folder / "tls", host=_API)
    options = ("--certfile", str(made.certfile), "--keyfile", str(made.keyfile), "--allow-host", _API)
    with served_org(folder / "project", *options) as org, tunnel_to(int(org.url.rpartition(":")[2])) as proxy:
        env = {"SF_ORG_INSTANCE_URL": org.url, "https_proxy": proxy, "NODE_EXTRA_CA_CERTS": str(made.certfile)}
        yield Tunnelled(org, env)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
