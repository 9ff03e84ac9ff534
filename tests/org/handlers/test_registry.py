"""Handlers of wings and installed packages: when they are loaded, and what they answer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import plugins
from evalmeta.errors import SettingsError
from evalmeta.org.app import create_app
from evalmeta.org.handlers import registered_handlers
from evalmeta.org.serving.endpoint import Endpoint
from evalmeta.org.serving.server import serve
from installed import install
from org.parts import URL, definition, make_project
from org.test_handlers import call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalmeta.org.organization import Organization

ACME = """
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from evalmeta.org.handlers import Handlers
from evalmeta.protocol.soap import write_text_result

async def hello(request):
    '''Greet the caller.'''
    return PlainTextResponse('Hello')

def greet(org, user, call):
    return write_text_result(call.name, f'Hello {user.name}')

HANDLERS = Handlers([Route('/services/data/acme', hello)], {'greet': greet})
"""
WORK = """
import asyncio, json, sys
from evalmeta import connect, deploy, retrieve
from evalmeta.client.runs import poll_run, start_run
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve
from pathlib import Path

async def work():
    project = find_project(Path.cwd())
    async with connect(project) as connection:
        await deploy(connection, project, resolve(project))
        await retrieve(connection, project)
        run_id = await start_run(connection, "Orders")
        assert await poll_run(connection, run_id)

asyncio.run(work())
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a package that adds handlers."""

    def forget() -> None:
        plugins._found.cache_clear()  # noqa: SLF001 - what is installed changes only in tests
        registered_handlers.cache_clear()

    def add(source: str) -> None:
        folder = tmp_path / "installed"
        folder.mkdir()
        install(folder, "handlers", "acme = acme:HANDLERS", source)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, "acme", raising=False)
        forget()

    yield add
    forget()


def get(org: Organization, path: str) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(org), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            return await http.get(path)

    return asyncio.run(go())


def test_a_package_adds_a_route_and_an_operation(acme: Callable[[str], None], org: Organization) -> None:
    acme(ACME)
    assert get(org, "/services/data/acme").text == "Hello"
    assert b"<result>Hello " in call(org, "<greet/>").content
    described = get(org, "/services/data/openapi.json").json()["paths"]["/services/data/acme"]
    assert described["get"]["summary"] == "Greet the caller."
    assert {"createMetadata,", "deploy,", "greet,"} < {*call(org, "<gret/>").text.split()}


def test_a_package_does_not_replace_what_the_org_answers(acme: Callable[[str], None], org: Organization) -> None:
    acme(ACME.replace("/services/data/acme", "/services/data").replace("'greet'", "'describeMetadata'"))
    assert get(org, "/services/data").json()[0]["engine"]
    assert b"Hello" not in call(org, "<describeMetadata/>").content


@pytest.mark.parametrize(
    ("source", "fault"),
    [("HANDLERS = 3", "is int, not Handlers"), ("import nothing_like_this", "cannot be imported: ModuleNotFoundError")],
)
def test_handlers_that_cannot_be_used_are_named(
    acme: Callable[[str], None], org: Organization, tmp_path: Path, source: str, fault: str
) -> None:
    acme(source)
    project = make_project(tmp_path / "project")
    with pytest.raises(SettingsError, match=f"'acme' of the entry points evalmeta.handlers {fault}"):
        asyncio.run(serve(project, Endpoint("127.0.0.1", 0)))
    assert not project.state_dir.exists()
    assert get(org, "/services/data/acme").status_code == 500
    assert get(org, "/services/data").status_code == 200


@pytest.mark.slow
def test_deploying_retrieving_and_running_load_no_handlers(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    (project.root / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "force-app"}]}')
    folder = project.root / "force-app" / "aiEvaluationDefinitions"
    folder.mkdir(parents=True)
    (folder / "Orders.aiEvaluationDefinition-meta.xml").write_bytes(definition("Orders"))
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, cwd=project.root, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "evalmeta.org.app" in loaded
    assert not {name for name in loaded if name.startswith("evalmeta.org_clients")}
