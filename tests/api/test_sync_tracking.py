from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.org_targets import connect
from evalmeta.api.sync import compare_components, hashes_of, remember_deployment, tracking_of
from evalmeta.client.metadata import deploy, list_components
from evalmeta.model.registry import TYPES
from evalmeta.package.archive import build_zip, package_entries
from evalmeta.package.folders import find_components
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import DeployResult
    from evalmeta.store.components import Synced

KIND = TYPES[0]
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Project:
    return find_project(copy_samples("failing"))


def remembered(
    project: Project, change: Callable[[DeployResult], DeployResult] = lambda result: result
) -> tuple[dict[str, Synced], str]:
    """Deploys, changes the result, and gives what is remembered of it and the org's date."""

    async def run() -> tuple[dict[str, Synced], str]:
        async with connect(project) as connection:
            zip_file = build_zip(package_entries(resolve(project)))
            result = change(await deploy(connection, zip_file))
            [listed] = await list_components(connection, KIND.name)
            with tracking_of(project, connection) as tracking:
                remember_deployment(tracking, result, hashes_of(zip_file))
                return tracking.load(KIND.name), listed.last_modified_date

    return asyncio.run(run())


def test_a_deployment_is_remembered_until_its_end(project: Project) -> None:
    known, date = remembered(project)

    assert [each.modified for each in known.values()] == [date]


@pytest.mark.parametrize("change", [{"check_only": True}, {"status": "Failed"}])
def test_what_changed_nothing_is_not_remembered(project: Project, change: dict[str, object]) -> None:
    known, _ = remembered(project, lambda result: replace(result, **change))

    assert known == {}


def test_what_was_deleted_is_forgotten(project: Project) -> None:
    def delete(result: DeployResult) -> DeployResult:
        done = tuple(replace(success, deleted=True) for success in result.details.component_successes)
        return replace(result, details=replace(result.details, component_successes=done))

    assert remembered(project)[0]
    assert remembered(project, delete)[0] == {}


def test_a_date_that_is_not_known_is_looked_up_and_remembered(project: Project) -> None:
    _, date = remembered(project, lambda result: replace(result, completed_date="2020-01-01T00:00:00.000Z"))

    async def run() -> dict[str, Synced]:
        async with connect(project) as connection:
            with tracking_of(project, connection) as tracking:
                await compare_components(connection, project, tracking, KIND, find_components(project))
                return tracking.load(KIND.name)

    assert [each.modified for each in asyncio.run(run()).values()] == [date]
