"""The server of a project's org: start and stop it, show its status, reset the org, and manage its tokens."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx

from evalmeta import limits
from evalmeta.errors import NotFound, OrgError, StoreError, Suggestion, UsageError
from evalmeta.model.login import ADMIN
from evalmeta.model.redaction import child_environment
from evalmeta.org.lease import is_free
from evalmeta.org.organization import Organization
from evalmeta.org.serving.server_file import Server, already_running, read_server
from evalmeta.package.trust import private_opener, state_file
from evalmeta.protocol.json_fields import is_loopback
from evalmeta.store.database import Database, delete_contents, open_database
from evalmeta.store.sqlite import make_state_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.org.serving.endpoint import Endpoint
    from evalmeta.package.project import Project
    from evalmeta.store.users import StoredToken

_POLL_SECONDS: Final = 0.05
_DAY_SECONDS: Final = 24 * 3600.0
_DOMAIN: Final = "evalmeta.local"
_USERNAME: Final = re.compile(r"\w[\w.+-]*(?:@[\w-]+(?:\.[\w-]+)*)?", re.ASCII)
# A reference to each process, because Python warns of processes that are still running when they are collected.
_STARTED: Final[list[subprocess.Popen[bytes]]] = []


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of a project's org in its state folder, and of the server if one is running."""

    server: Server | None
    answers: bool
    data: Path
    components: int
    runs_in_progress: int
    runs_waiting: int


def start_server(project: Project, module: str, endpoint: Endpoint) -> Server:
    """Start a process that serves the project's org with a module; return the server when it answers."""
    from evalmeta.org.serving.server import check
    from evalmeta.org.serving.sockets import listen

    running = read_server(project.state_dir)
    if running:
        raise already_running(running)
    check(endpoint)
    listen(endpoint.host, endpoint.port).close()
    open_database(project.store).close()
    output = state_file(project.state_dir, "logs", "server-start.log")
    certificate = endpoint.certificate
    files = [str(certificate.certfile), str(certificate.keyfile)] if certificate else ["", ""]
    place = [endpoint.host, str(endpoint.port), *files, *endpoint.names]
    process = _start(project, output, [module, str(project.root), *place])
    _STARTED.append(process)
    try:
        return _wait_for(project, process, output)
    except BaseException:
        process.kill()
        raise


def stop_server(project: Project) -> Server | None:
    """Stop the project's server and return it; None if none is running. Runs in progress continue."""
    server = read_server(project.state_dir)
    if server is None:
        return None
    if server.host != socket.gethostname():
        seconds = f"{limits.SERVER_LEASE_SECONDS:.0f} seconds"
        raise OrgError(
            f"{project.state_dir / 'server.json'} says that the server at {server.url} runs on {server.host}",
            actions=[f"Stop it there. If it has died, wait {seconds}."],
        )
    for number in (signal.SIGTERM, signal.SIGKILL if os.name == "posix" else signal.SIGTERM):
        _send(server, number)
        # The server itself waits this long for its jobs.
        deadline = time.monotonic() + limits.CLOSE_SECONDS + limits.SHUTDOWN_SECONDS + 1
        while time.monotonic() < deadline:
            if read_server(project.state_dir) != server:
                return server
            time.sleep(_POLL_SECONDS)
    raise OrgError(f"the server at {server.url} (process {server.pid}) did not stop")


def server_of(project: Project) -> Server | None:
    """Return the server of the project's org; None if none is running."""
    return read_server(project.state_dir)


def server_status(project: Project) -> ServerStatus:
    """Return whether the project's org is served, and what it contains."""
    server = read_server(project.state_dir)
    with open_database(project.store) as database:
        unfinished = _org(project, database).runs.unfinished()
        [(components,)] = database.query("SELECT count(*) FROM component")
    waiting = sum(is_free(lease, now=database.now()) for _, lease in unfinished)
    answers = server is not None and _answers(server.url)
    return ServerStatus(server, answers, project.state_dir, components, len(unfinished) - waiting, waiting)


def reset_org(project: Project) -> None:
    """Delete all components, jobs, runs and results; users and their tokens stay."""
    running = read_server(project.state_dir)
    if running:
        raise UsageError(f"the org is served at {running.url}", actions=["Stop the server first: evalmeta org stop"])
    from evalmeta.org.workers import sweep_run_logs

    with open_database(project.store) as database:
        unfinished = _org(project, database).runs.unfinished()
        if busy := [run_id for run_id, lease in unfinished if not is_free(lease, now=database.now())]:
            raise UsageError(
                f"run {busy[0]} is in progress",
                actions=[Suggestion("Wait until it is done", "test", "resume", "--job-id", busy[0])],
            )
        delete_contents(database, is_ours=_is_ours)
    sweep_run_logs(project.state_dir)


def make_token(project: Project, *, username: str | None = None, days: int = limits.TOKEN_DAYS) -> str:
    """Create a token for a user of the org, by default the admin, and the user if necessary; it is not shown again."""
    name = ADMIN.username if username is None else _checked(username)
    now = time.time()
    with open_database(project.store) as database, database.transaction():
        org = _org(project, database)
        user = org.users.find_by_name(name) or org.users.add(name, name.partition("@")[0], now=now)
        return org.new_token(user, now=now, expires=now + days * _DAY_SECONDS)


def list_tokens(project: Project, *, username: str | None = None) -> list[StoredToken]:
    """List the tokens of the org, or of one of its users, the newest first."""
    name = None if username is None else _checked(username)
    with open_database(project.store) as database:
        found = _org(project, database).users.list_tokens()
    return [token for token in found if name is None or token.username.casefold() == name.casefold()]


def revoke_token(project: Project, token_id: str) -> None:
    """Revoke a token with immediate effect."""
    with open_database(project.store) as database:
        if not _org(project, database).users.revoke(token_id, now=time.time()):
            raise NotFound("there is no token with this id", actions=["See their ids: evalmeta org token --list"])


def _org(project: Project, database: Database) -> Organization:
    return Organization(database, project.root, lambda: project.settings, lambda _: None)


def _start(project: Project, output: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        make_state_folder(project.state_dir)
        output.parent.mkdir(mode=0o700, exist_ok=True)
        with open(output, "wb", opener=private_opener) as log:
            # -P: a file of the project that is named like a module of Python's must not take its place.
            return subprocess.Popen(
                [sys.executable, "-P", "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=project.root,
                env=child_environment(**project.store.variables),
            )
    except OSError as error:
        raise StoreError(f"the server could not be started: {error}") from None


def _wait_for(project: Project, process: subprocess.Popen[bytes], output: Path) -> Server:
    deadline = time.monotonic() + limits.START_SECONDS
    while time.monotonic() < deadline:
        server = read_server(project.state_dir)
        if server is not None and server.pid == process.pid and _answers(server.url):
            return server
        if process.poll() is not None:
            raise OrgError(f"the server ended while starting: {output.read_text(encoding='utf-8').strip()}")
        time.sleep(_POLL_SECONDS)
    raise OrgError(f"the server did not answer within {limits.START_SECONDS:g} seconds; see {output}")


def _answers(url: str) -> bool:
    # Any certificate will do: nothing secret is sent.
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    try:
        # Requests to this machine must not go through a proxy.
        reply = httpx.get(f"{url}/services/data", timeout=limits.STATUS_SECONDS, trust_env=False, verify=anyone)
    except httpx.HTTPError:
        return False
    return reply.is_success


def _send(server: Server, number: int) -> None:
    try:
        with suppress(ProcessLookupError):
            os.kill(server.pid, number)
    except PermissionError:
        raise OrgError(f"the server at {server.url} (process {server.pid}) belongs to another user") from None


def _checked(username: str) -> str:
    name = username if "@" in username else f"{username}@{_DOMAIN}"
    if len(name) > limits.MAX_USERNAME_CHARS or not _USERNAME.fullmatch(username):
        raise UsageError(
            f"{username!r} is not a valid username",
            actions=["Use letters, digits and . _ + - with or without @ and a domain, such as ci or ci@example.com."],
        )
    return name


def _is_ours(url: str) -> bool:
    """Return whether an address stands for the project's own org: embedded, or served on this machine."""
    host = urlsplit(url).hostname or ""
    return host.endswith(".invalid") or is_loopback(host)
