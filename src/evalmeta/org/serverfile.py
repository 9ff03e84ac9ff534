"""The file by which a project's commands find its server."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, UsageError
from evalmeta.org.leases import is_free, new_worker
from evalmeta.package.files import put_file
from evalmeta.store.runs import Lease
from evalmeta.wire.jsonfields import integer, number, read_object, text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Server", "already_runs", "claim_place", "leave_place", "read_server", "renew_place"]

_FILE: Final = "server.json"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs.

    Attributes:
        url: where it is, without a slash at the end.
        pid: its process.
        started: when it began, seconds since the epoch.
        process: the process's name, which tells it from a later one of the same number.
    """

    url: str
    pid: int
    started: float
    process: str

    @property
    def host(self) -> str:
        """Gives the name of the machine that it runs on."""
        return self.process.partition(":")[0]


def read_server(state_dir: Path) -> Server | None:
    """Gives the server of a state folder; None when there is none, or only the file of one that died."""
    server = _read(state_dir)
    return server if server and _is_alive(server.process, state_dir / _FILE) else None


def claim_place(state_dir: Path, url: str, *, now: float) -> Server:
    """Says that this process serves the state folder; call it in a transaction, so that of two at a time one does.

    Raises:
        UsageError: another does already.
        ProjectError: the folder cannot be written.
    """
    running = read_server(state_dir)
    if running:
        raise already_runs(running)
    server = Server(url, os.getpid(), now, new_worker())
    put_file(state_dir / _FILE, orjson.dumps(asdict(server)))
    return server


def renew_place(state_dir: Path) -> None:
    """Says that this process still serves the folder, to machines that cannot see it; due every few seconds."""
    with suppress(OSError):
        os.utime(state_dir / _FILE)


def leave_place(state_dir: Path) -> None:
    """Removes the file if it is this process's."""
    server = _read(state_dir)
    if server is not None and server.pid == os.getpid():
        with suppress(OSError):
            (state_dir / _FILE).unlink()


def already_runs(server: Server) -> UsageError:
    """Gives the error for a start that is one too many."""
    return UsageError(
        f"a server for this project already runs at {server.url} (process {server.pid})",
        actions=["Look at it: evalmeta org status", "Or end it first: evalmeta org stop"],
    )


def _read(state_dir: Path) -> Server | None:
    try:
        found = read_object((state_dir / _FILE).read_bytes())
    except (OSError, MessageUnreadable):
        return None
    return Server(text(found, "url"), integer(found, "pid", 0), number(found, "started", 0), text(found, "process"))


def _is_alive(process: str, file: Path) -> bool:
    # Of a process on another machine, a container of before say, only its last sign of life is known.
    with suppress(OSError):
        until = file.stat().st_mtime + limits.SERVER_LEASE_SECONDS
        return process.count(":") > 1 and not is_free(Lease(process, until))
    return False
