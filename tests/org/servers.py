"""Real servers in processes of their own, on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx

from evalmeta.api.servers import make_token
from evalmeta.org.serving.server_file import read_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.org.serving.endpoint import Certificate
    from evalmeta.org.serving.server_file import Server
    from evalmeta.package.project import Project

__all__ = ["begin", "get", "send", "served", "wait_for"]

# Limits are set before anything reads them.
SCRIPT = """\
import json, sys
from evalmeta import limits
for name, value in json.loads(sys.argv[1]).items():
    setattr(limits, name, value)
from evalmeta.viewer.server import main
sys.exit(main(*sys.argv[2:]))
"""
WAIT = 120


def wait_for(what: object) -> object:
    deadline = time.monotonic() + WAIT
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found


def begin(
    project: Project, *, host: str = "127.0.0.1", certificate: Certificate | None = None, **limits: float
) -> tuple[subprocess.Popen[bytes], Server]:
    """Start a server with these limits, and wait until it listens."""
    files = [str(certificate.certfile), str(certificate.keyfile)] if certificate else []
    command = [sys.executable, "-c", SCRIPT, json.dumps(limits), str(project.root), host, "0", *files]
    process = subprocess.Popen(command)

    def found() -> Server | None:
        server = read_server(project.state_dir)
        return server if server and server.pid == process.pid else None

    return process, wait_for(found)


@contextmanager
def served(project: Project, *, certificate: Certificate | None = None, **limits: float) -> Iterator[str]:
    """Serve a project's org and yield the address."""
    process, server = begin(project, certificate=certificate, **limits)
    try:
        yield server.url
    finally:
        process.terminate()
        assert process.wait(WAIT) == 0


def get(project: Project, url: str, path: str, **headers: str) -> httpx.Response:
    """Send a GET request with a token of the admin."""
    return send("GET", url + path, authorization=f"Bearer {make_token(project)}", **headers)


def send(method: str, url: str, content: bytes | None = None, **headers: str) -> httpx.Response:
    return httpx.request(method, url, content=content, headers=headers, timeout=WAIT, trust_env=False)
