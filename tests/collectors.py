"""A collector of traces on loopback, for tests of exports."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROTOBUF = "application/x-protobuf"


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    kind: str = PROTOBUF
    headers: tuple[tuple[str, str], ...] = ()


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


@contextmanager
def collector(replies: Sequence[Reply] = ()) -> Iterator[tuple[str, list[Request]]]:
    """Gives the address of a collector, and the requests that it got; it takes all when its replies are used up."""
    left, requests = list(replies), list[Request]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append(Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            reply = left.pop(0) if left else Reply()
            self.send_response(reply.status)
            for name, value in (("Content-Type", reply.kind), ("Content-Length", f"{len(reply.body)}"), *reply.headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
