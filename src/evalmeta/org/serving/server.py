"""The org server: the org's application under uvicorn, and its log.

The pages for browsers are not known here; who starts the server adds them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import time
from contextlib import asynccontextmanager, suppress
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreError, StoreLocked
from evalmeta.model.redaction import redacted
from evalmeta.org.app import add_registered_routes, create_app
from evalmeta.org.handlers import registered_handlers
from evalmeta.org.jobs import JobQueue
from evalmeta.org.lease import is_free
from evalmeta.org.organization import Organization
from evalmeta.org.serving.guarded_server import GuardedServer
from evalmeta.org.serving.request_guard import RequestGuard, hosts_of, is_unspecified
from evalmeta.org.serving.server_file import (
    already_running,
    claim_server_file,
    read_server,
    remove_server_file,
    renew_server_file,
)
from evalmeta.org.serving.sockets import QUEUED, listen
from evalmeta.org.subjects import live_settings
from evalmeta.org.workers import ServedWorkers
from evalmeta.package.trust import private_opener, state_file
from evalmeta.store.database import open_database
from evalmeta.store.spooling import send_left
from evalmeta.store.sqlite import make_state_folder

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Sequence
    from io import TextIOWrapper
    from pathlib import Path

    from starlette.routing import BaseRoute

    from evalmeta.org.serving.endpoint import Certificate, Endpoint
    from evalmeta.org.serving.server_file import Server
    from evalmeta.package.project import Project


# Callers have settings files of their own.
_SETTINGS_NAME: Final = "evalmeta.toml of the project that serves the org"
_LOGGERS: Final = ("evalmeta.org", "uvicorn.error", "asyncio")
# Everything in an Authorization header, and every value that is named as a secret.
_SECRETS: Final = re.compile(
    r"""
    (?:Bearer|Basic|OAuth)\s+\S+
    | <sessionId>[^<]+
    | \w*(?:token|assertion|secret|password|code|sid)=[^&\s'"]+
    """,
    re.VERBOSE | re.IGNORECASE,
)


async def serve(
    project: Project,
    endpoint: Endpoint,
    *,
    pages: Sequence[BaseRoute] = (),
    on_start: Callable[[Server], None] = lambda _: None,
    logs_to_stderr: bool = False,
) -> None:
    """Serve the org of a project until SIGINT or SIGTERM; runs in progress continue in their own processes.

    `pages` are further routes, and `on_start` is called when the server accepts requests.
    Raise UsageError if a server is already running, or this one cannot listen there, and SettingsError if handlers of
    an installed package cannot be used.
    """
    running = read_server(project.state_dir)
    if running:
        raise already_running(running)
    check(endpoint)
    # Handlers that cannot be used are an error of the start, not of the first request.
    registered_handlers()
    with listen(endpoint.host, endpoint.port) as listening:
        port = listening.getsockname()[1]
        async with _opened(project) as org:
            open_log(project.state_dir / "logs" / "server.log", to_stderr=logs_to_stderr)

            def claim() -> Server:
                with org.database.transaction():
                    url = url_of(endpoint.host, port, is_encrypted=endpoint.certificate is not None)
                    return claim_server_file(project.state_dir, url, now=time.time())

            try:
                app = create_app(org, pages)
                add_registered_routes(app)
                gate = RequestGuard(app, hosts_of(endpoint.host, port, others=endpoint.names))
                await _OrgServer(gate, project.state_dir, claim, on_start, endpoint.certificate).serve([listening])
            finally:
                remove_server_file(project.state_dir)


def check(endpoint: Endpoint) -> None:
    """Check the names and the certificate of an endpoint; raise UsageError if one is not valid."""
    hosts_of(endpoint.host, endpoint.port, others=endpoint.names)
    if endpoint.certificate is not None:
        endpoint.certificate.context()


@asynccontextmanager
async def _opened(project: Project) -> AsyncIterator[Organization]:
    # Waiting runs and jobs of an earlier server are resumed.
    with open_database(project.store) as database:
        workers, queue = ServedWorkers(project.root, project.store), JobQueue()
        org = Organization(
            database,
            project.root,
            live_settings(project.root),
            workers.launch,
            queue.wake,
            queue.trouble,
            settings_name=_SETTINGS_NAME,
            is_served=True,
        )
        queue.org = org
        with suppress(StoreLocked):
            send_left(database, is_free=is_free)
        watching = asyncio.create_task(workers.watch(org))
        queue.wake()
        try:
            yield org
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            await asyncio.to_thread(queue.close, at_once=True)


def url_of(host: str, port: int, *, is_encrypted: bool = False) -> str:
    """Return the address for callers on this machine."""
    scheme = "https" if is_encrypted else "http"
    reached = ("::1" if ":" in host else "127.0.0.1") if is_unspecified(host) else host
    return f"{scheme}://[{reached}]:{port}" if ":" in reached else f"{scheme}://{reached}:{port}"


class _OrgServer(GuardedServer):
    """The server of an org, which calls `on_start` when it accepts requests."""

    def __init__(
        self,
        gate: RequestGuard,
        state_dir: Path,
        claim: Callable[[], Server],
        on_start: Callable[[Server], None],
        certificate: Certificate | None,
    ) -> None:
        super().__init__(gate, lambda: renew_server_file(state_dir), certificate)
        self._claim = claim
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # From here on commands can find and stop this process, so signals must already be handled.
        server = self._claim()
        await super().startup(sockets)
        for listening in sockets or ():
            # asyncio has set the length of the queue to the number of connections that it accepts at once.
            listening.listen(QUEUED)
        self._on_start(server)


class _Formatter(logging.Formatter):
    """Format a record in one line, with its traceback below, and hide values that look like secrets."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        return _SECRETS.sub("[secret]", redacted(super().format(record)))


class _PrivateFile(RotatingFileHandler):
    """Write a log that only its owner can read, also after the file was renamed and a new one begins."""

    def _open(self) -> TextIOWrapper:
        os.close(private_opener(self.baseFilename, os.O_WRONLY | os.O_CREAT))
        return super()._open()


def open_log(path: Path, *, to_stderr: bool) -> None:
    """Open the log of this process, with two older files of the same maximum size; raise StoreError."""
    state_file(path.parents[1], *path.parts[-2:])
    try:
        make_state_folder(path.parent.parent)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        file = _PrivateFile(path, maxBytes=limits.MAX_LOG_BYTES, backupCount=2, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from None
    handlers: list[logging.Handler] = [file]
    if to_stderr:
        handlers.append(logging.StreamHandler(sys.stderr))
    formatter = _Formatter("%(asctime)s %(message)s")
    for handler in handlers:
        handler.setFormatter(formatter)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = handlers
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "evalmeta.org" else logging.WARNING)
