"""Agents whose Agent Script is only in the org: its tests run against the bundle that is deployed there."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

from bundles import bundle_package, bundle_parts
from evalmeta.api.servers import make_token
from evalmeta.client.connection import Connection
from evalmeta.client.metadata import deploy
from evalmeta.client.runs import fetch_results, poll_run, start_run
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.org.subjects import described_agent
from evalmeta.package.project import find_project
from evalmeta.systems.agent_script.deployed import deployed_script
from evalmeta.systems.agent_script.subject import AgentScriptSubject, bundle_settings
from org.parts import definition, embedded, package
from org.servers import served
from systems.agent_script.projects import SHOP, write_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import Run

RULES = "rules: [{answer: 'I am {!@variables.visits}.'}]"
BUNDLE = "Bike_Shop"
# The start of the script has the topic that `definition` expects.
SCRIPT = SHOP.replace("start_agent reception", "start_agent Orders")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with rules for the agent, whose bundle it does not have."""
    shutil.rmtree(write_project(tmp_path, rules=RULES, doubles={}).parent)
    return tmp_path


def bundle(script: str = SCRIPT) -> bytes:
    return bundle_package({f"{BUNDLE}/{name}": data for name, data in bundle_parts(BUNDLE, script.encode()).items()})


def deploy_to(folder: Path, zip_file: bytes) -> None:
    async def send(connection: Connection) -> bool:
        return (await deploy(connection, zip_file)).success

    assert embedded(find_project(folder), send)


async def run_test(connection: Connection) -> Run:
    for zip_file in (bundle(), package({"Shop": definition("Shop", subject=BUNDLE)})):
        assert (await deploy(connection, zip_file)).success
    run_id = await start_run(connection, "Shop")
    await poll_run(connection, run_id, wait=60, on_progress=lambda _: None)
    return await fetch_results(connection, run_id)


def outcomes(run: Run) -> list[tuple[str | None, str | None, str]]:
    return [(case.generated and case.generated.outcome, case.error, case.verdict.value) for case in run.cases]


def test_a_test_runs_against_the_deployed_bundle(project: Path) -> None:
    assert outcomes(embedded(find_project(project), run_test)) == [("I am 0.", None, "PASS")]


@pytest.mark.slow
def test_a_test_in_a_served_org_runs_against_the_deployed_bundle(project: Path) -> None:
    serving = find_project(project)
    with served(serving) as url:

        async def go() -> Run:
            token = make_token(serving)
            async with Connection(
                url=url, token=token, api_version=NEWEST_API_VERSION, poll_seconds=0.02
            ) as connection:
                return await run_test(connection)

        assert outcomes(asyncio.run(go())) == [("I am 0.", None, "PASS")]


def test_the_script_of_the_project_comes_before_the_deployed_one(project: Path) -> None:
    deploy_to(project, bundle())
    script = project / f"force-app/{BUNDLE}.agent"
    script.write_text(SHOP)
    settings = AgentScriptSubject(adapter="agent_script", bundle=BUNDLE)
    assert [path.name for path in settings.identity(project)[1]] == [script.name, f"{BUNDLE}.yaml"]
    script.unlink()
    name, files = settings.identity(project)
    assert (name.startswith(f"agent_script {BUNDLE} as deployed ("), len(files)) == (True, 1)


def test_another_deployed_script_is_another_agent(project: Path) -> None:
    settings = AgentScriptSubject(adapter="agent_script", bundle=BUNDLE)
    deploy_to(project, bundle())
    before = described_agent(settings, project)
    deploy_to(project, bundle())
    assert described_agent(settings, project) == before
    deploy_to(project, bundle(SCRIPT + "# changed\n"))
    assert described_agent(settings, project) != before


def test_nothing_is_created_to_look_for_a_bundle(project: Path) -> None:
    assert bundle_settings(project, BUNDLE) is None
    assert deployed_script(project / "nowhere", BUNDLE) is None
    assert not (project / ".evalmeta").exists()
    deploy_to(project, bundle())
    assert deployed_script(project, "Other") is None
    assert deployed_script(project, "bike_shop") == SCRIPT.encode()
