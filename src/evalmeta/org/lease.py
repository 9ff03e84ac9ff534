"""Who works on a run: a worker's name, whether it still works, and the heartbeat that says so to other machines."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreError, StoreLocked
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.store.runs import Lease


# A process lives on when one of its workers ends, so its own workers are known by name.
_AT_WORK: Final[set[str]] = set()


def new_worker() -> str:
    """Makes a name for a worker of this process: machine, process, when that began, and something unique."""
    return f"{socket.gethostname()}:{os.getpid()}:{_beginning(os.getpid())}:{uuid.uuid4().hex[:8]}"


def is_free(lease: Lease) -> bool:
    """Tells whether a run has no worker: none yet, or a dead one.

    A worker of this machine keeps its run for as long as it lives, however long its agent
    blocks it; of others only the lease is known.
    """
    if lease.worker is None:
        return True
    works = _is_at_work(lease.worker)
    return (lease.until or 0) < time.time() if works is None else not works


@contextmanager
def working(worker: str) -> Iterator[None]:
    """Lets others of this process see that a worker works."""
    _AT_WORK.add(worker)
    try:
        yield
    finally:
        _AT_WORK.discard(worker)


@contextmanager
def keep_lease(folder: Path, run_id: str, worker: str) -> Iterator[None]:
    """Renews a worker's lease from a thread of its own, so that an agent which blocks does not stop it."""
    stopped = threading.Event()
    beating = threading.Thread(target=_beat, args=(folder, run_id, worker, stopped), daemon=True)
    with working(worker):
        beating.start()
        try:
            yield
        finally:
            stopped.set()
            beating.join(limits.SHUTDOWN_SECONDS)


def _beat(folder: Path, run_id: str, worker: str, stopped: threading.Event) -> None:
    owned = True
    with suppress(StoreError), open_database(folder) as database:
        while owned and not stopped.wait(limits.RUN_LEASE_SECONDS / 3):
            # Whoever holds the database cannot take the run meanwhile; the next beat comes soon.
            with suppress(StoreLocked):
                owned = Runs(database).renew(run_id, worker, until=time.time() + limits.RUN_LEASE_SECONDS)


def _is_at_work(worker: str) -> bool | None:
    """Tells whether a worker of this machine works; None when that cannot be seen from here."""
    host, process, beginning, *_ = worker.split(":")
    if host != socket.gethostname():
        return None
    if int(process) == os.getpid() and beginning == _beginning(os.getpid()):
        return worker in _AT_WORK
    if os.name != "posix":
        return None
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return None
    return beginning == _beginning(int(process)) if beginning else None


def _beginning(process: int) -> str:
    """Gives when a process began, in ticks since the machine did; empty when it is dead or the system is not Linux.

    A process's number alone does not tell it from a later one. Source: proc_pid_stat(5), fields 3 and 22.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return ""
    fields = stat.rpartition(b")")[2].decode("ascii").split()
    return "" if fields[0] in {"Z", "X"} else fields[19]
