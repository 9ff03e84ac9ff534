"""Serve the pages: alone for `evalmeta view`, or beside a project's org.

`evalmeta org start --detach` starts `python -m evalmeta.viewer.server PROJECT HOST PORT [CERTFILE KEYFILE [NAME...]]`;
without TLS, the two files are empty.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Route

from evalmeta.errors import EXIT_INTERRUPTED, EvalmetaError, UsageError
from evalmeta.org.serving import server
from evalmeta.org.serving.endpoint import Certificate, Endpoint
from evalmeta.org.serving.request_guard import RequestGuard, hosts_of
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from evalmeta.viewer.app import Viewer
from evalmeta.viewer.pages import ROOT

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.requests import Request

    from evalmeta.org.serving.server_file import Server
    from evalmeta.package.project import Project

_HOST: Final = "127.0.0.1"
PORT: Final = 8161
_TOKEN_BYTES: Final = 32


async def serve_view(project: Project, *, port: int | None, on_start: Callable[[str], None]) -> None:
    """Serve the pages of a project on this machine until SIGINT or SIGTERM.

    Port 0 is any free port, None is 8161 or, if that is in use, any free port. `on_start` is called with the address
    that logs in, when the server accepts requests.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    open_database(project.state_dir).close()
    server.open_log(project.state_dir / "logs" / "view.log", to_stderr=False)
    with _listen(port) as listening:
        bound = listening.getsockname()[1]
        app = Starlette(routes=[*Viewer(project, token).routes(), Route("/", _redirect)])
        app.router.redirect_slashes = False
        gate = RequestGuard(app, hosts_of(_HOST, bound))
        await _ViewServer(gate, lambda: on_start(f"{server.url_of(_HOST, bound)}{ROOT}?token={token}")).serve(
            [listening]
        )


async def serve_org(
    project: Project,
    endpoint: Endpoint,
    *,
    on_start: Callable[[Server], None] = lambda _: None,
    logs_to_stderr: bool = False,
) -> None:
    """Serve the org of a project with its pages; arguments and errors as in `evalmeta.org.serving.server.serve`."""
    await server.serve(
        project,
        endpoint,
        pages=lambda token: Viewer(project, token).routes(),
        on_start=on_start,
        logs_to_stderr=logs_to_stderr,
    )


def _listen(port: int | None) -> socket.socket:
    try:
        return server.listen(_HOST, PORT if port is None else port)
    except UsageError:
        if port is not None:
            raise
        return server.listen(_HOST, 0)


async def _redirect(_: Request) -> RedirectResponse:
    return RedirectResponse(ROOT)


class _ViewServer(server.GuardedServer):
    def __init__(self, gate: RequestGuard, on_start: Callable[[], None]) -> None:
        super().__init__(gate)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()


def main(root: str, host: str, port: str, certfile: str = "", keyfile: str = "", *names: str) -> int:
    """Serve the org of the project in `root` and return the exit code."""
    certificate = Certificate(Path(certfile), Path(keyfile)) if certfile else None
    try:
        asyncio.run(serve_org(find_project(Path(root)), Endpoint(host, int(port), names, certificate)))
    except EvalmetaError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
