from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import pytest

from evalmeta.api import deployments
from evalmeta.api.org_targets import connect
from evalmeta.api.packages import DeployPackage, pack_project
from evalmeta.api.sync import receipts_of, tracking_of
from evalmeta.errors import DeployFailed, EvalmetaError, NotFound, UsageError
from evalmeta.model.registry import TYPES, Manifest, ManifestTypes
from evalmeta.package.archive import build_zip
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.xmlio.definitions import write_manifest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.package.project import Project

T = TypeVar("T")
CHECK = DeployOptions(check_only=True)


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Project:
    return find_project(copy_samples("dx-project"))


def within(project: Project, do: Callable[[Connection], Awaitable[T]]) -> T:
    async def go() -> T:
        async with connect(project) as connection:
            return await do(connection)

    return asyncio.run(go())


def started(project: Project, options: DeployOptions = DeployOptions()) -> str:  # noqa: B008 - immutable
    package = pack_project(project, resolve(project))
    return within(project, lambda connection: deployments.start(connection, project, package, options=options))


def remembered(project: Project) -> int:
    async def count(connection: Connection) -> int:
        with tracking_of(project, connection) as tracking:
            return len(tracking.load(TYPES[0].name))

    return within(project, count)


def test_a_deployment_that_was_started_is_the_most_recent_one(project: Project) -> None:
    job_id = started(project)

    async def recent(connection: Connection) -> str:
        return deployments.most_recent(connection, project)

    assert within(project, recent) == job_id


def test_what_was_deployed_is_remembered_when_somebody_asks_and_once(project: Project) -> None:
    job_id = started(project)
    before = remembered(project)

    async def finish(connection: Connection) -> object:
        await deployments.finish(connection, project, job_id)
        with receipts_of(project, connection) as receipts:
            return receipts.sent(job_id)

    assert (before, within(project, finish), remembered(project)) == (0, None, 3)


def test_a_validation_is_not_remembered_as_deployed_and_its_quick_deploy_is(project: Project) -> None:
    validation = started(project, CHECK)
    within(project, lambda connection: deployments.finish(connection, project, validation))
    before = remembered(project)

    async def deploy(connection: Connection) -> None:
        job_id = await deployments.quick_deploy(connection, project, validation)
        await deployments.finish(connection, project, job_id)

    within(project, deploy)
    assert (before, remembered(project)) == (0, 3)


def test_a_deployment_of_somebody_elses_is_not_remembered(project: Project) -> None:
    job_id = started(project)

    async def forget(connection: Connection) -> None:
        with receipts_of(project, connection) as receipts:
            receipts.delete_sent(job_id)
        await deployments.finish(connection, project, job_id)

    within(project, forget)
    assert remembered(project) == 0


def test_a_finished_deployment_cannot_be_canceled_and_the_error_suggests_its_report(project: Project) -> None:
    job_id = started(project)
    with pytest.raises(EvalmetaError, match="Deployment already completed") as raised:
        within(project, lambda connection: deployments.cancel(connection, job_id))
    assert (raised.value.exit_code, "deploy report" in raised.value.actions[0]) == (1, True)


@pytest.mark.parametrize(
    ("job_id", "kind"), [("0Af", UsageError), ("4KB000000000001", UsageError), ("0Af000000000099XXX", NotFound)]
)
def test_an_invalid_job_id_and_an_unknown_one_are_different_errors(
    project: Project, job_id: str, kind: type[Exception]
) -> None:
    for call in (deployments.fetch, deployments.finish):
        with pytest.raises(kind):
            within(project, lambda connection, call=call: call(connection, project, job_id))


def test_a_deployment_is_not_a_validation(project: Project) -> None:
    job_id = started(project)
    with pytest.raises(EvalmetaError, match=f"deployment {job_id}: .*not a successful validation"):
        within(project, lambda connection: deployments.quick_deploy(connection, project, job_id))


def test_without_deployments_there_is_no_most_recent_one(project: Project) -> None:
    async def recent(connection: Connection) -> str:
        return deployments.most_recent(connection, project, validation=True)

    with pytest.raises(NotFound, match="no validation of this project"):
        within(project, recent)


def test_a_failed_deployment_is_an_error_with_its_problems(project: Project) -> None:
    manifest = write_manifest(Manifest((ManifestTypes(TYPES[0].name, ("Absent",)),), "64.0"))
    package = DeployPackage(build_zip([("package.xml", manifest)]))

    async def deploy(connection: Connection) -> object:
        job_id = await deployments.start(connection, project, package)
        return await deployments.finish(connection, project, job_id)

    with pytest.raises(DeployFailed) as raised:
        within(project, deploy)
    assert [problem.component for problem in raised.value.problems] == ["AiEvaluationDefinition:Absent"]
