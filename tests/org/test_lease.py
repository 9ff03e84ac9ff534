from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.org import lease as lease_module
from evalmeta.org.lease import is_free, new_worker, working
from evalmeta.store.runs import Lease

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME_ITSELF = """
import pathlib, sys
from evalmeta.org import lease
lease._PROC = pathlib.Path(sys.argv[1])
print(lease.new_worker(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True, params=["linux", "macos"])
def proc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of processes; macOS has none, and `ps` tells instead."""
    folder = Path("/proc") if request.param == "linux" else tmp_path / "none"
    monkeypatch.setattr(lease_module, "_PROC", folder)
    return folder


def lease(worker: str) -> Lease:
    """A lease that has not expired, so that only its worker decides."""
    return Lease(worker, time.time() + 10)


@contextmanager
def another_worker(proc: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that lives until its stdin is closed, and the name of its worker."""
    command = [sys.executable, "-c", NAME_ITSELF, str(proc)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_run_of_a_process_that_is_alive_is_not_free(proc: Path) -> None:
    with another_worker(proc) as (_, worker):
        assert not is_free(lease(worker))


def test_a_worker_of_this_process_has_its_run_until_it_is_done() -> None:
    worker = new_worker()
    with working(worker):
        assert not is_free(lease(worker))
    assert is_free(lease(worker))


def test_a_process_that_has_the_id_of_a_dead_worker_is_not_this_worker(proc: Path) -> None:
    with another_worker(proc) as (process, worker):
        host, _, started, suffix = worker.split(":")
        assert not is_free(lease(f"{host}:{process.pid}:{started}:{suffix}"))
        assert is_free(lease(f"{host}:{process.pid}:{started[:-1]}x:{suffix}"))


def test_a_process_that_has_ended_but_is_still_listed_is_dead(proc: Path) -> None:
    with another_worker(proc) as (process, worker):
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        os.kill(process.pid, 0)
        assert is_free(lease(worker))


def test_of_a_worker_on_another_machine_only_the_lease_counts() -> None:
    _, process, started, suffix = new_worker().split(":")
    worker = f"not-{socket.gethostname()}:{process}:{started}:{suffix}"
    assert not is_free(lease(worker))
    assert is_free(Lease(worker, time.time() - 1))


def test_containers_of_one_name_leave_the_workers_of_each_other_alone(proc: Path) -> None:
    """A process that is dead here may live in the other container, which has numbers of its own."""
    with another_worker(proc) as (_, worker):
        machine, others = worker.split(":", 1)
    assert is_free(lease(worker))
    assert not is_free(lease(f"{machine}0:{others}"))
    assert is_free(Lease(f"{machine}0:{others}", time.time() - 1))


def test_a_lease_is_judged_by_the_clock_that_it_was_made_with() -> None:
    left = Lease("elsewhere:1:1:ab", 1_000.0)
    assert not is_free(left, now=999.0)
    assert is_free(left, now=1_001.0)
    assert is_free(left)
