from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.run import RunStatus
from evalmeta.org.workers import DetachedWorker, InProcessWorkers, ServedWorkers
from org.parts import asked, make_project, opened_of, started

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

FULL = "CREATE TRIGGER full_disk BEFORE INSERT ON case_result BEGIN SELECT RAISE(FAIL, 'no room'); END"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project", seconds=0.02)


def test_a_run_launched_twice_is_worked_on_once(project: Project) -> None:
    run_id = started(project, cases=4)

    async def launch_twice() -> None:
        with opened_of(project) as org:
            workers = InProcessWorkers()
            workers.org = org
            workers.launch(run_id)
            workers.launch(run_id)
            while not org.runs.get(run_id).status.is_over:
                await asyncio.sleep(0.01)
            await workers.close()

    asyncio.run(launch_twice())
    assert len(asked(project)) == 4


def test_closing_ends_work_that_hangs(tmp_path: Path) -> None:
    project = make_project(tmp_path / "hangs", seconds=3600)
    run_id = started(project, cases=4)

    async def close() -> None:
        with opened_of(project) as org:
            workers = InProcessWorkers()
            workers.org = org
            workers.launch(run_id)
            while not asked(project):
                await asyncio.sleep(0.005)
            await workers.close()
            assert org.runs.lease(run_id).worker is None

    asyncio.run(close())


def test_database_errors_are_reported_to_the_caller(project: Project) -> None:
    run_id = started(project, cases=1)

    async def launch() -> None:
        with opened_of(project) as org:
            org.database.execute("ALTER TABLE run DROP COLUMN lease_until")
            workers = InProcessWorkers()
            workers.org = org
            workers.launch(run_id)
            await asyncio.sleep(0)
            await workers.close()

    asyncio.run(launch())


def test_closing_without_work_is_done_at_once(project: Project) -> None:
    asyncio.run(InProcessWorkers().close())
    asyncio.run(DetachedWorker(project.root, project.state_dir).close())
    assert not (project.state_dir / "logs").exists()


def test_a_run_whose_process_cannot_be_started_waits(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    run_id = started(project, cases=1)
    (project.state_dir / "logs").write_text("")

    async def watch() -> None:
        with opened_of(project) as org:
            watching = asyncio.create_task(ServedWorkers(project.root, project.state_dir).watch(org))
            while run_id not in caplog.text:
                await asyncio.sleep(0.01)
            watching.cancel()
            assert org.runs.get(run_id).status is RunStatus.NEW

    asyncio.run(watch())


def test_a_worker_that_cannot_be_started_is_reported_with_advice(project: Project) -> None:
    run_id = started(project, cases=1)
    (project.state_dir / "logs").write_text("")
    worker = DetachedWorker(project.root, project.state_dir)
    worker.launch(run_id)
    worker.launch(run_id)
    with pytest.raises(StoreError, match=f"cannot start a worker for run {run_id}:") as raised:
        asyncio.run(worker.close())
    assert raised.value.actions == (f"Resume it: evalmeta test resume --job-id {run_id}",)


@pytest.mark.slow
def test_a_served_run_whose_results_cannot_be_stored_waits(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WORKER_DEATHS", 1)
    monkeypatch.setattr(limits, "LOCKED_SECONDS", 0.1)
    run_id = started(project, cases=2)
    log = project.state_dir / "logs" / f"{run_id}.log"

    async def watch() -> None:
        with opened_of(project) as org:
            org.database.execute(FULL)
            watching = asyncio.create_task(ServedWorkers(project.root, project.state_dir).watch(org))
            while not log.exists() or log.read_text().count("no room") < 2:
                await asyncio.sleep(0.01)
            org.database.execute("DROP TRIGGER full_disk")
            while not org.runs.get(run_id).status.is_over:
                await asyncio.sleep(0.01)
            watching.cancel()
            assert org.runs.get(run_id).status is RunStatus.COMPLETED

    asyncio.run(asyncio.wait_for(watch(), 60))
