"""No test hangs for ever."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from client.servers import listening

if TYPE_CHECKING:
    from pathlib import Path

HANGS = """
import threading

def test_waits():
    try:
        threading.Event().wait()
    finally:
        threading.Event().wait()

def test_passes():
    pass
"""


@pytest.mark.slow
def test_a_test_that_hangs_fails_and_the_others_run(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    method = pytestconfig.getini("timeout_method")
    words = ("-n", "1", "-p", "no:randomly", "--timeout", "1", "--timeout-method", method)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )

    assert "1 failed, 1 passed" in done.stdout
    assert "crashed while running 'test_hangs.py::test_waits'" in done.stdout


def test_each_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert 60 < float(pytestconfig.getini("timeout")) <= 600


@pytest.mark.slow
def test_a_slow_test_has_more_time(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("timeout")

    assert marker.args[0] > 2 * float(request.config.getini("timeout"))


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n"])
def test_a_server_of_the_tests_ends_when_a_client_disconnects_early(sent: bytes) -> None:
    with listening(lambda _: b"") as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
