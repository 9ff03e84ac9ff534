"""The file by which commands find the running server of an org; reading it needs no web server."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, UsageError
from evalmeta.org.lease import is_free, new_worker
from evalmeta.package.files import put_file
from evalmeta.package.trust import state_file
from evalmeta.protocol.json_fields import integer, number, read_object, text
from evalmeta.store.runs import Lease

if TYPE_CHECKING:
    from pathlib import Path


_FILE: Final = "server.json"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server; `started` is in seconds since the epoch.

    `process` is its worker name, which distinguishes it from a later process with the same id.
    """

    url: str
    pid: int
    started: float
    process: str

    @property
    def host(self) -> str:
        """Return the name of its machine."""
        return self.process.partition(":")[0].partition("/")[0]


def read_server(state_dir: Path) -> Server | None:
    """Return the running server of a state folder, or None; the file of a dead server does not count."""
    server = _read(state_dir)
    return server if server and _is_alive(server.process, state_dir / _FILE) else None


def claim_server_file(state_dir: Path, url: str, *, now: float) -> Server:
    """Write the file that names this process as the server; call it in a transaction to exclude other processes.

    Raise UsageError if another server is already running.
    """
    running = read_server(state_dir)
    if running:
        raise already_running(running)
    server = Server(url, os.getpid(), now, new_worker())
    put_file(state_file(state_dir, _FILE), orjson.dumps(asdict(server)))
    return server


def renew_server_file(state_dir: Path) -> None:
    """Show other machines, every few seconds, that this server is alive."""
    with suppress(OSError):
        os.utime(state_dir / _FILE)


def remove_server_file(state_dir: Path) -> None:
    """Remove the file if it names this process."""
    server = _read(state_dir)
    if server is not None and server.pid == os.getpid():
        with suppress(OSError):
            (state_dir / _FILE).unlink()


def already_running(server: Server) -> UsageError:
    """Return the error for a second server of the same project."""
    return UsageError(
        f"a server for this project is already running at {server.url} (process {server.pid})",
        actions=["Look at it: evalmeta org status", "Or end it first: evalmeta org stop"],
    )


def _read(state_dir: Path) -> Server | None:
    try:
        content = read_object(state_file(state_dir, _FILE).read_bytes())
    except (OSError, MessageUnreadable):
        return None
    return Server(
        text(content, "url"), integer(content, "pid", 0), number(content, "started", 0), text(content, "process")
    )


def _is_alive(process: str, file: Path) -> bool:
    # For a process on another machine, such as an earlier container, only the file's last renewal is known.
    with suppress(OSError):
        until = file.stat().st_mtime + limits.SERVER_LEASE_SECONDS
        return process.count(":") > 1 and not is_free(Lease(process, until))
    return False
