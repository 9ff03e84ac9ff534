"""The org served to others: the same application under uvicorn, behind its gate.

`python -m evalmeta.org.server PROJECT HOST PORT [NAME...]` is what `evalmeta org start --detach` starts.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvicorn

from evalmeta import limits
from evalmeta.errors import EXIT_INTERRUPTED, EvalmetaError, StoreError, UsageError
from evalmeta.org.app import create_app
from evalmeta.org.gate import Gate
from evalmeta.org.hosts import hosts_of
from evalmeta.org.live_settings import live_raters, live_subjects
from evalmeta.org.organization import Organization
from evalmeta.org.protocol import OrgProtocol
from evalmeta.org.queue import JobQueue
from evalmeta.org.serverfile import already_runs, claim_place, leave_place, read_server, renew_place
from evalmeta.org.serverlog import open_log
from evalmeta.org.workers import ServedWorkers
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from evalmeta.org.serverfile import Server
    from evalmeta.package.project import Project

__all__ = ["listen", "main", "serve"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_OTHER_HOST: Final = "Name this machine, or one of its addresses, with --host."
_OTHER_PORT: Final = "Choose another port with --port, 0 for any that is free."
# Callers have projects, and settings, of their own.
_SETTINGS_NAME: Final = "evalmeta.toml of the project that serves the org"


async def serve(
    project: Project,
    *,
    host: str,
    port: int,
    names: Sequence[str] = (),
    on_start: Callable[[Server], None] = lambda _: None,
    logs_to_stderr: bool = False,
) -> None:
    """Serves the project's org until SIGINT or SIGTERM; runs that are in progress go on by themselves.

    Args:
        project: whose state folder and subjects it uses.
        host: the address or name to listen at.
        port: where to listen; 0 for any port that is free.
        names: other names that the Host header may have.
        on_start: is told about the server when it answers.
        logs_to_stderr: whether the log goes there too; it always goes to `logs/server.log`.

    Raises:
        UsageError: it runs already, or cannot listen there.
        StoreError: the state folder cannot be used.
    """
    running = read_server(project.state_dir)
    if running:
        raise already_runs(running)
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        async with _opened(project) as org:
            _open_log(project, to_stderr=logs_to_stderr)

            def claim() -> Server:
                with org.database.transaction():
                    return claim_place(project.state_dir, _url(host, port), now=time.time())

            try:
                gate = Gate(create_app(org), hosts_of(host, port, others=names))
                await _Uvicorn(gate, project.state_dir, claim, on_start).serve([listening])
            finally:
                leave_place(project.state_dir)


def listen(host: str, port: int) -> socket.socket:
    """Opens a socket to listen on.

    Raises:
        UsageError: it cannot be opened.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2 * limits.MAX_REQUESTS)
    except socket.gaierror as error:
        raise UsageError(f"the server cannot listen at {host}: {error.strerror}", actions=[_OTHER_HOST]) from None
    except OSError as error:
        # Python's own text repeats the address.
        raise UsageError(
            f"the server cannot listen at {host} port {port}: {os.strerror(error.errno or 0)}",
            actions=[_OTHER_HOST if error.errno == errno.EADDRNOTAVAIL else _OTHER_PORT],
        ) from None


def main(root: str, host: str, port: str, *names: str) -> int:
    """Serves the org of the project in `root` and gives the exit code."""
    try:
        asyncio.run(serve(find_project(Path(root)), host=host, port=int(port), names=names))
    except EvalmetaError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


@asynccontextmanager
async def _opened(project: Project) -> AsyncIterator[Organization]:
    """Opens the project's org with workers for its runs and a queue for its jobs, and takes up what was left."""
    database = open_database(project.state_dir)
    workers, queue = ServedWorkers(project.root, project.state_dir), JobQueue()
    org = Organization(
        database,
        project.root,
        live_subjects(project.root),
        workers.launch,
        queue.wake,
        settings_name=_SETTINGS_NAME,
        raters=live_raters(project.root),
    )
    queue.org = org
    watching = asyncio.create_task(workers.watch(org))
    queue.wake()
    try:
        yield org
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await asyncio.to_thread(queue.close, at_once=True)
        database.close()


def _open_log(project: Project, *, to_stderr: bool) -> None:
    path = project.state_dir / "logs" / "server.log"
    try:
        open_log(path, to_stderr=to_stderr)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from None


def _url(host: str, port: int) -> str:
    """Gives the address for callers on this machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


class _Uvicorn(uvicorn.Server):
    """uvicorn, which says when it answers, and takes a signal as the end that was asked for."""

    def __init__(
        self, gate: Gate, state_dir: Path, claim: Callable[[], Server], on_start: Callable[[Server], None]
    ) -> None:

        async def renew() -> None:
            renew_place(state_dir)

        super().__init__(
            uvicorn.Config(
                gate,
                http=OrgProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=int(limits.SHUTDOWN_SECONDS),
                callback_notify=renew,
                timeout_notify=limits.SERVER_SIGN_SECONDS,
                h11_max_incomplete_event_size=limits.MAX_HEADER_BYTES,
            )
        )
        self._claim = claim
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # From here on others find this process and may end it: signals are listened to already.
        server = self._claim()
        await super().startup(sockets)
        self._on_start(server)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            # Windows has no handlers of this kind; Ctrl-C cancels there.
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in _SIGNALS:
                with suppress(NotImplementedError):
                    loop.remove_signal_handler(number)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
