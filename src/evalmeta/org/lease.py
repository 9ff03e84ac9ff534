"""Leases of workers: their names, whether they are alive, and the heartbeat that renews a lease."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreError, StoreLocked
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, Runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.store import Store


_PROC: Final = Path("/proc")
_PS_SECONDS: Final = 5.0
# The workers of this process, which outlives them.
_ACTIVE_WORKERS: Final[set[str]] = set()


def new_worker() -> str:
    """Return a name for a worker of this process: machine, process, start time of the process, and a unique suffix."""
    return f"{_machine()}:{os.getpid()}:{_start_time(os.getpid())}:{uuid.uuid4().hex[:8]}"


def is_free(lease: Lease, *, now: float | None = None) -> bool:
    """Return whether a run has no worker, or a dead one; `now` is the time of the store, or else of this machine.

    A worker on this machine keeps its run while it is alive, even if its agent blocks it. For workers on
    other machines only the lease counts. One that ends later than any worker asks for is from before the clock was set
    back; a worker that is alive renews it.
    """
    if lease.worker is None:
        return True
    is_alive = _is_alive(lease.worker)
    left = (lease.until or 0) - (time.time() if now is None else now)
    return not 0 <= left <= 2 * limits.RUN_LEASE_SECONDS if is_alive is None else not is_alive


@contextmanager
def working(worker: str) -> Iterator[None]:
    """Mark a worker of this process as alive."""
    _ACTIVE_WORKERS.add(worker)
    try:
        yield
    finally:
        _ACTIVE_WORKERS.discard(worker)


@contextmanager
def keep_lease(place: Store | Path, run_id: str, worker: str) -> Iterator[None]:
    """Renew a worker's lease in a thread of its own, so that an agent that blocks does not stop it."""
    stopped = threading.Event()
    heartbeat = threading.Thread(target=_renew_until, args=(place, run_id, worker, stopped), daemon=True)
    with working(worker):
        heartbeat.start()
        try:
            yield
        finally:
            stopped.set()
            heartbeat.join(limits.SHUTDOWN_SECONDS)


def _renew_until(place: Store | Path, run_id: str, worker: str, stopped: threading.Event) -> None:
    owned = True
    with suppress(StoreError), open_database(place) as database:
        while owned and not stopped.wait(limits.RUN_LEASE_SECONDS / 3):
            # While the database is locked, no other worker can claim the run; the next attempt follows soon.
            with suppress(StoreLocked):
                owned = Runs(database).renew(run_id, worker, until=database.now() + limits.RUN_LEASE_SECONDS)


def _is_alive(worker: str) -> bool | None:
    """Return whether a worker is alive; None if this machine cannot tell."""
    host, process, started, *_ = worker.split(":")
    if host != _machine():
        return None
    if int(process) == os.getpid() and started == _start_time(os.getpid()):
        return worker in _ACTIVE_WORKERS
    if os.name != "posix":
        return None
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return None
    return started == _start_time(int(process)) if started else None


def _machine() -> str:
    """Return the name of this machine, and what tells containers apart that have the same name.

    They may share a store, and each has processes of its own with the same numbers.
    """
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").partition("-")[0]
        number = "".join(filter(str.isdecimal, str((_PROC / "self/ns/pid").readlink())))
        return f"{socket.gethostname()}/{boot}-{number}"
    return socket.gethostname()


def _start_time(process: int) -> str:
    """Return when a process started; empty if it is dead, a zombie too, or the system does not tell.

    Process ids are reused, so the id alone is not enough.
    """
    return _start_ticks(process) if (_PROC / "self").exists() else _start_date(process) if os.name == "posix" else ""


def _start_ticks(process: int) -> str:
    """Return the start time in ticks since boot, as Linux has it: proc_pid_stat(5), fields 3 and 22."""
    try:
        stat = (_PROC / str(process) / "stat").read_bytes()
    except OSError:
        return ""
    fields = stat.rpartition(b")")[2].decode("ascii").split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _start_date(process: int) -> str:
    """Return the start time as `ps` of macOS and BSD prints it, without characters that separate parts of a name."""
    try:
        printed = subprocess.run(
            ["/bin/ps", "-o", "stat=,lstart=", "-p", str(process)],
            capture_output=True,
            check=False,
            env={"LC_ALL": "C", "TZ": "UTC"},
            timeout=_PS_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    state, *date = printed.stdout.decode("ascii", errors="replace").split() or ["Z"]
    return "" if state.startswith("Z") else "".join(filter(str.isalnum, "".join(date)))
