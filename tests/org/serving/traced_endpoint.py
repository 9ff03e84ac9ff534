"""An HTTP agent in this process that exports what it did to the receiver of the environment."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

from evalmeta.org.serving.sockets import listen
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE
from org.serving import traced_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

TOKEN = "top-secret"  # noqa: S105 - of no server


class Endpoint(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def __init__(self, trace_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.trace_port = trace_port
        self.asked: list[str] = []
        self.seconds = 0.0

    @property
    def settings(self) -> dict[str, object]:
        url = f"http://127.0.0.1:{self.server_port}/"
        return {"adapter": "http", "url": url, "traces": True, "trace_port": self.trace_port}


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["utterance"]
        self.server.asked.append(asked)
        time.sleep(self.server.seconds)
        Thread(target=_export, args=(self.headers["traceparent"], asked), daemon=True).start()
        body = b'{"answer": "It is on its way."}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # The run may have been killed.
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _export(traceparent: str, asked: str) -> None:
    with suppress(OSError):
        traced_agent.export(traceparent, asked)


@contextmanager
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Serve an agent that exports its traces to a free port, with the token in the environment."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://127.0.0.1:{port}/v1/traces")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{TOKEN}")
    with Endpoint(port) as server:
        serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        yield server
        server.shutdown()
        serving.join()
