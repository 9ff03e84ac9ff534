"""A cluster of Ray whose nodes are processes of this machine, and the environment that has Ray and evalmeta."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

BIN = Path(__file__).parents[1] / ".venv" / "ray" / "bin"
_START_SECONDS = 120
_PORTS = iter(range(6400 + os.getpid() % 300 * 10, 9900))


class Nodes:
    """A head and other nodes with one CPU each; `environment` lets programs use the cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port, self.client_port = next(_PORTS), next(_PORTS)
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(folder),
            "RAY_ADDRESS": f"127.0.0.2:{self._port}",
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def client_url(self) -> str:
        return f"ray://127.0.0.2:{self.client_port}"

    def start(self, *names: str) -> None:
        """Start nodes one after the other, by their addresses; 127.0.0.2 is the head. A node that runs is left."""
        for name in names:
            if name not in self._processes:
                self._start(name)

    def _start(self, name: str) -> None:
        own = [f"--address=127.0.0.2:{self._port}"]
        if name == "127.0.0.2":
            ports = f"--port={self._port}", f"--ray-client-server-port={self.client_port}"
            own = ["--head", *ports, "--include-dashboard=false", f"--temp-dir={self.folder}"]
        words = ["--num-cpus=1", "--object-store-memory=100000000", "--min-worker-port=0", "--max-worker-port=0"]
        quick = {
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_failure_threshold": "3",
            "RAY_agent_register_timeout_ms": "120000",
        }
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            self._processes[name] = subprocess.Popen(
                [BIN / "ray", "start", *own, f"--node-ip-address={name}", *words, "--block"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=self.environment | quick,
            )
        until = time.monotonic() + _START_SECONDS
        while "Ray runtime started" not in log.read_text(errors="replace"):
            assert self._processes[name].poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < until, log.read_text(errors="replace")
            time.sleep(0.2)

    def kill(self, name: str) -> None:
        """End all processes of a node at once, as when its machine loses power."""
        started = self._processes.pop(name)
        for process in [started.pid, *_descendants(started.pid)]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        started.wait()

    def close(self) -> None:
        for name in reversed([*self._processes]):
            self.kill(name)


def _descendants(parent: int) -> list[int]:
    rows = subprocess.run(["/bin/ps", "-eo", "pid=,ppid="], check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    children: dict[int, list[int]] = {}
    for row in filter(None, rows):
        process, its_parent = map(int, row.split())
        children.setdefault(its_parent, []).append(process)
    found = [*children.get(parent, ())]
    for process in found:
        found += children.get(process, ())
    return found


@contextmanager
def ray_nodes(*names: str) -> Iterator[Nodes]:
    """Start a cluster for the block."""
    assert (BIN.parent / "ready").exists(), "Install Ray: make .venv/ray/ready"
    # The paths of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    nodes = Nodes(folder)
    try:
        nodes.start(*names)
        yield nodes
    finally:
        nodes.close()
        shutil.rmtree(folder, ignore_errors=True)
