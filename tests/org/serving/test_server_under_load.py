"""A served org among many clients, and one that is killed again and again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import limits
from evalmeta.client.connection import Connection
from evalmeta.client.metadata import deploy
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.model.settings import Settings
from evalmeta.org.organization import Organization
from evalmeta.org.serving.server_file import read_server
from evalmeta.store.database import open_database
from org.certificates import make_certificate
from org.parts import KIND, definition, make_project, opened_of, package

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.org.serving.endpoint import Certificate
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployResult

SLOW_BODY = "POST /services/Soap/m/66.0 HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 9000\r\n\r\nx"
FEW_FILES = ("bash", "-c", 'ulimit -n 256; exec "$@"', "-")
KILLER = Path(__file__).parent / "killed_server.py"


@contextmanager
def served(
    project: Project, *, before: tuple[str, ...] = (), certificate: Certificate | None = None
) -> Iterator[tuple[str, str]]:
    """Serve a project's org in a separate process and yield its address and a token."""
    with opened_of(project) as org:
        token = org.new_token(ADMIN, now=time.time(), expires=time.time() + 3600)
    command = [*before, sys.executable, "-m", "evalmeta.viewer.server", str(project.root), "127.0.0.1", "0"]
    command += [str(certificate.certfile), str(certificate.keyfile)] if certificate else []
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 120
            while (server := read_server(project.state_dir)) is None:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield server.url, token
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_a_server_that_is_killed_leaves_before_or_after_and_loses_nothing(tmp_path: Path, kills: int) -> None:
    command = [sys.executable, str(KILLER), str(tmp_path), str(kills)]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, env={**os.environ})
    states = told.stdout.split()
    assert len(states) == kills
    assert set(states) <= {"old", "new"}


async def deploy_many(url: str, token: str, client: int, deployments: int) -> list[DeployResult]:
    async with Connection(url=url, token=token, api_version=NEWEST_API_VERSION, poll_seconds=0.5) as connection:
        return [
            await deploy(connection, package({"Shared": shared(client, number), f"Own_{client}_{number}": own(client)}))
            for number in range(deployments)
        ]


def shared(client: int, number: int) -> bytes:
    return definition("Shared", subject=f"S{client}_{number}")


def own(client: int) -> bytes:
    return definition(f"Own_{client}")


@pytest.mark.parametrize(("clients", "deployments"), [(5, 4), pytest.param(50, 20, marks=pytest.mark.slow)])
def test_many_clients_at_once_are_all_served_once_and_one_after_the_other(
    tmp_path: Path, clients: int, deployments: int
) -> None:
    project = make_project(tmp_path / "project")

    async def everybody(url: str, token: str) -> dict[str, tuple[int, int, DeployResult]]:
        results = await asyncio.gather(*(deploy_many(url, token, client, deployments) for client in range(clients)))
        return {
            result.id: (client, number, result)
            for client, mine in enumerate(results)
            for number, result in enumerate(mine)
        }

    with served(project) as (url, token):
        answers = asyncio.run(everybody(url, token))
    with open_database(project.store) as database:
        org = Organization(database, project.root, Settings, lambda _: None)
        history = org.jobs.history()
        final = org.components.content(KIND.name, "Shared")
        there = [component.full_name for component in org.components.list(KIND.name)]
    assert len(answers) == len(history) == clients * deployments
    assert [job.id for job in history] == sorted(answers)
    assert all(job.status == "Succeeded" for job in history)
    assert len(there) == clients * deployments + 1
    client, number, _ = answers[history[-1].id]
    assert final == shared(client, number)
    assert_serial([answers[job.id][2] for job in history])


def assert_serial(results: list[DeployResult]) -> None:
    """What each deployment says of the shared component is what it must be after those before it; dates rise."""
    changes = [
        (success.created, success.changed)
        for result in results
        for success in result.details.component_successes
        if success.full_name == "Shared"
    ]
    assert changes == [(True, True), *[(False, True)] * (len(results) - 1)]
    ended = [result.completed_date or "" for result in results]
    assert ended == sorted(set(ended))


@pytest.mark.slow
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"])
@pytest.mark.parametrize("sent", ["", "GET / HT", SLOW_BODY], ids=["nothing", "a part of a head", "a part of a body"])
def test_connections_without_a_request_give_way_to_new_ones(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], address: str, sent: str
) -> None:
    """A process with 256 file descriptors answers although an address holds 400 connections, and opens more."""
    with served(make_project(tmp_path / "project"), before=FEW_FILES) as (url, _):
        host, _, port = url.removeprefix("http://").partition(":")
        waiting = []
        try:
            for count in (400, 20, 20, 20):
                for _ in range(count):
                    waiting.append(socket.create_connection((host, int(port)), source_address=(address, 0)))
                    waiting[-1].sendall(sent.format(host=host, port=port).encode())
                assert httpx.get(f"{url}/services/data").status_code == 200
        finally:
            for connection in waiting:
                connection.close()
    said = capfd.readouterr()
    assert "Traceback" not in said.out + said.err


@pytest.mark.slow
@pytest.mark.parametrize(("before", "number"), [(FEW_FILES, 300), ((), 1_000)])
def test_unfinished_tls_handshakes_do_not_hold_up_others(tmp_path: Path, before: tuple[str, ...], number: int) -> None:
    project, certificate = make_project(tmp_path / "project"), make_certificate(tmp_path)
    trust = ssl.create_default_context(cafile=certificate.certfile)
    with served(project, before=before, certificate=certificate) as (url, _):
        host, _, port = url.removeprefix("https://").partition(":")
        unfinished = [socket.create_connection((host, int(port))) for _ in range(number)]
        try:
            for _ in range(5):
                assert httpx.get(f"{url}/services/data", verify=trust).status_code == 200
        finally:
            for connection in unfinished:
                connection.close()


@pytest.mark.slow
def test_requests_whose_body_never_comes_do_not_hold_up_others(tmp_path: Path) -> None:
    with served(make_project(tmp_path / "project")) as (url, _):
        host, _, port = url.removeprefix("http://").partition(":")
        head = f"POST /services/Soap/m/66.0 HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 9\r\n\r\nx".encode()
        slow = [socket.create_connection((host, int(port))) for _ in range(limits.MAX_REQUESTS + 1)]
        try:
            for connection in slow:
                connection.sendall(head)
            assert httpx.get(f"{url}/services/data").status_code == 200
        finally:
            for connection in slow:
                connection.close()
