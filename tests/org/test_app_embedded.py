from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta.client.metadata import list_components
from evalmeta.client.runs import poll_run, start_run
from evalmeta.errors import StoreCorrupt, StoreError
from evalmeta.org.app import embedded_org
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve
from org.parts import KIND, definition, deploy, embedded, make_project, opened_of, package, started

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.package.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def test_deployed_components_stay_when_the_org_is_opened_again(project: Project) -> None:
    started(project, cases=1)
    listed = embedded(project, lambda connection: list_components(connection, KIND.name))
    assert [component.full_name for component in listed] == ["Orders"]


@pytest.mark.sqlite
def test_an_org_whose_database_is_broken_does_not_open(project: Project) -> None:
    project.state_dir.mkdir()
    (project.state_dir / "org.sqlite3").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(StoreCorrupt, match=str(project.state_dir)):
        embedded(project, lambda connection: list_components(connection, KIND.name))


def test_the_database_is_let_go_even_when_no_worker_can_be_started(project: Project) -> None:
    run_id = started(project, cases=1)
    project.state_dir.mkdir(exist_ok=True)
    (project.state_dir / "logs").write_text("")

    async def leave() -> object:
        async with embedded_org(project, detached=True) as (app, _):
            app.state.org.launch(run_id)
            return app.state.org.database

    with pytest.raises(StoreError, match="cannot start a worker"):
        asyncio.run(leave())
    assert not list(project.state_dir.glob("*-wal"))


@pytest.mark.parametrize("inner", ["", "dx-project"])
def test_deploy_then_retrieve_returns_the_same_bytes_of_every_sample(
    copy_samples: Callable[[str], Path], inner: str
) -> None:
    project = find_project(copy_samples(inner))
    components = resolve(project)
    before = {component.full_name: component.path.read_bytes() for component in components.components}

    async def there_and_back() -> list[str]:
        async with evalmeta.connect(project) as connection:
            await evalmeta.deploy(connection, project, components)
            for component in components.components:
                component.path.unlink()
            return [component.state for component in (await evalmeta.retrieve(connection, project)).components]

    assert asyncio.run(there_and_back()) == ["Created"] * len(before)
    after = resolve(project)
    assert {component.full_name: component.path.read_bytes() for component in after.components} == before
    assert len(before) >= 3


def test_a_python_agent_sees_no_token_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SF_ACCESS_TOKEN", "00D000000000001!secret")
    agent = "    pathlib.Path('seen').write_text(str('SF_ACCESS_TOKEN' in os.environ))\n    return 'x'\n"
    project = make_project(tmp_path / "project", agent=f"import os, pathlib\n\ndef answer(_):\n{agent}")
    monkeypatch.chdir(project.root)
    with opened_of(project) as org:
        deploy(org, package({"Orders": definition("Orders")}))
    embedded(project, _run_orders)
    assert (project.root / "seen").read_text() == "False"


async def _run_orders(connection: Connection) -> None:
    run_id = await start_run(connection, "Orders")
    await poll_run(connection, run_id, wait=60, on_progress=lambda _: None)
