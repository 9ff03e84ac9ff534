"""Serve the pages: alone for `evalmeta view`, or beside a project's org.

`evalmeta org start --detach` starts `python -m evalmeta.viewer.server PROJECT HOST PORT [CERTFILE KEYFILE [NAME...]]`;
without TLS, the two files are empty.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
import webbrowser
from contextlib import ExitStack, suppress
from html import escape
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Route

from evalmeta import limits
from evalmeta.engine.process import rare_collections
from evalmeta.errors import EXIT_INTERRUPTED, EvalmetaError, StoreError, UsageError
from evalmeta.model.login import ADMIN
from evalmeta.org.serving import server
from evalmeta.org.serving.endpoint import Certificate, Endpoint
from evalmeta.org.serving.guarded_server import GuardedServer
from evalmeta.org.serving.login_codes import LoginCodes
from evalmeta.org.serving.request_guard import RequestGuard, hosts_of
from evalmeta.org.serving.sockets import listen
from evalmeta.package.project import Project, find_project
from evalmeta.store.database import open_database
from evalmeta.store.users import Holder
from evalmeta.viewer.access import OPEN
from evalmeta.viewer.app import Viewer
from evalmeta.viewer.pages import ROOT

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.requests import Request

    from evalmeta.org.serving.server_file import Server


_PREFIX: Final = "open-view-"
_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>evalmeta</title>
</head>
<body>
<p><a href="{address}">Open the pages of evalmeta</a></p>
</body>
</html>
"""


class RedirectFile:
    """A page on disk that leads to an address with a code.

    Other users of a machine can read the command line of a browser, so that it gets the name of this file, which only
    the owner can read.
    """

    def __init__(self, state_dir: Path, address: str) -> None:
        _delete_old(state_dir)
        try:
            # Not below /tmp: a browser in a snap has a /tmp of its own.
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=state_dir))
            self.path = self._folder / "open.html"
            with os.fdopen(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(_PAGE.format(address=escape(address)))
        except OSError as error:
            raise StoreError(f"{error.filename or state_dir}: cannot be written: {error.strerror}") from None

    def delete(self) -> None:
        """Delete the file and its folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _delete_old(state_dir: Path) -> None:
    """Delete files of servers that were killed; their codes are not valid any more."""
    for folder in state_dir.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_mtime < time.time() - limits.FRONTDOOR_SECONDS:
                shutil.rmtree(folder)


_HOST: Final = "127.0.0.1"
PORT: Final = 8161


class Start:
    """A server of the pages that accepts requests: its address, and a code that logs in once."""

    def __init__(self, url: str, state_dir: Path, codes: LoginCodes) -> None:
        self.url = url
        self._state_dir = state_dir
        self._codes = codes
        self._file: RedirectFile | None = None
        self.code = codes.issue(Holder(ADMIN.id), seconds=limits.VIEW_CODE_SECONDS, is_private=True)

    def open_browser(self) -> None:
        """Open a browser that logs in by itself; raise StoreError if the file for it cannot be written."""
        code = self._codes.issue(Holder(ADMIN.id), seconds=limits.FRONTDOOR_SECONDS, is_private=True, on_use=self.close)
        origin = self.url.removesuffix(ROOT)
        self._file = RedirectFile(self._state_dir, f"{origin}{OPEN}?code={code}")
        asyncio.get_running_loop().call_later(limits.FRONTDOOR_SECONDS, self.close)
        # A browser in the terminal would block the server that it waits for.
        Thread(target=webbrowser.open, args=(self._file.path.as_uri(),), daemon=True).start()

    def close(self) -> None:
        """Delete the file for the browser."""
        if self._file:
            self._file.delete()


async def serve_view(project: Project, *, port: int | None, on_start: Callable[[Start], None]) -> None:
    """Serve the pages of a project on this machine until SIGINT or SIGTERM.

    Port 0 is any free port, None is 8161 or, if that is in use, any free port. `on_start` is called when the server
    accepts requests.
    """
    open_database(project.store).close()
    server.open_log(project.state_dir / "logs" / "view.log", to_stderr=False)
    with _listen(port) as listening, ExitStack() as at_end:
        bound = listening.getsockname()[1]
        app = Starlette(routes=[*Viewer(project).routes(), Route("/", _redirect)])
        app.router.redirect_slashes = False
        app.state.login_codes = codes = LoginCodes()

        def begin() -> None:
            start = Start(f"{server.url_of(_HOST, bound)}{ROOT}", project.state_dir, codes)
            at_end.callback(start.close)
            on_start(start)

        await _ViewServer(RequestGuard(app, hosts_of(_HOST, bound)), begin).serve([listening])


async def serve_org(
    project: Project,
    endpoint: Endpoint,
    *,
    on_start: Callable[[Server], None] = lambda _: None,
    logs_to_stderr: bool = False,
) -> None:
    """Serve the org of a project with its pages; arguments and errors as in `evalmeta.org.serving.server.serve`."""
    await server.serve(
        project, endpoint, pages=Viewer(project).routes(), on_start=on_start, logs_to_stderr=logs_to_stderr
    )


def _listen(port: int | None) -> socket.socket:
    try:
        return listen(_HOST, PORT if port is None else port)
    except UsageError:
        if port is not None:
            raise
        return listen(_HOST, 0)


async def _redirect(_: Request) -> RedirectResponse:
    return RedirectResponse(ROOT)


class _ViewServer(GuardedServer):
    def __init__(self, gate: RequestGuard, on_start: Callable[[], None]) -> None:
        super().__init__(gate)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()


def main(root: str, host: str, port: str, certfile: str = "", keyfile: str = "", *names: str) -> int:
    """Serve the org of the project in `root` and return the exit code."""
    certificate = Certificate(Path(certfile), Path(keyfile)) if certfile else None
    rare_collections.begin()
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
