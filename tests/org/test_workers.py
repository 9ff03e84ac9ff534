from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import OrgFault, StoreError
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunStatus
from evalmeta.model.run_options import RunOptions
from evalmeta.model.store import STORE_VARIABLE
from evalmeta.org.workers import DetachedWorker, InProcessWorkers, ServedWorkers, sweep_run_logs
from evalmeta.package.project import find_project
from org.parts import asked, definition, deploy, make_project, opened_of, package, start_run, started

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


def test_users_take_turns_in_the_queue_of_runs(project: Project) -> None:
    with opened_of(project) as org:
        deploy(org, package({"Orders": definition("Orders")}))
        other = org.users.add("desk@evalmeta.local", "Desk", now=1.0)
        many = [start_run(org, EVALUATION_DEFINITION, "Orders", RunOptions()) for _ in range(3)]
        one = start_run(org, EVALUATION_DEFINITION, "Orders", RunOptions(), user=other)
        assert [run_id for run_id, _ in org.runs.queue()] == [many[0], one, *many[1:]]


def test_projects_that_share_a_store_leave_each_others_runs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: str
) -> None:
    monkeypatch.setenv(STORE_VARIABLE, store_url)
    mine, other = (find_project(make_project(tmp_path / name).root) for name in ("mine", "other"))
    with opened_of(mine) as org, opened_of(other) as elsewhere:
        deploy(org, package({"Orders": definition("Orders")}))
        run_id = start_run(org, EVALUATION_DEFINITION, "Orders", RunOptions())
        assert [queued for queued, _ in org.runs.queue(org.project)] == [run_id]
        assert elsewhere.runs.get(run_id)
        assert elsewhere.runs.queue(elsewhere.project) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "words"), [("MAX_WAITING_RUNS", "2 runs wait"), ("MAX_WAITING_RUNS_OF_USER", "2 runs of yours wait")]
)
def test_a_served_org_accepts_only_so_many_waiting_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch, limit: str, words: str
) -> None:
    monkeypatch.setattr(limits, limit, 2)
    with opened_of(project) as org:
        deploy(org, package({"Orders": definition("Orders")}))
        served = replace(org, is_served=True)
        for _ in range(2):
            start_run(served, EVALUATION_DEFINITION, "Orders", RunOptions())
        with pytest.raises(OrgFault, match=words) as raised:
            start_run(served, EVALUATION_DEFINITION, "Orders", RunOptions())
        assert (raised.value.code, raised.value.status) == ("REQUEST_LIMIT_EXCEEDED", 429)
        start_run(org, EVALUATION_DEFINITION, "Orders", RunOptions())


def test_the_logs_of_old_runs_are_deleted(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("4KB000000000001GAA", "3A2000000000002GAA", "4KB000000000003GAA", "server"):
        (logs / f"{name}.log").touch()
    sweep_run_logs(tmp_path, kept=1)
    assert {path.stem for path in logs.iterdir()} == {"4KB000000000003GAA", "server"}


def test_closing_without_work_is_done_at_once(project: Project) -> None:
    asyncio.run(InProcessWorkers().close())
    asyncio.run(DetachedWorker(project.root, project.store).close())
    assert not (project.state_dir / "logs").exists()


def test_a_run_whose_process_cannot_be_started_waits(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    run_id = started(project, cases=1)
    project.state_dir.mkdir(exist_ok=True)
    (project.state_dir / "logs").write_text("")

    async def watch() -> None:
        with opened_of(project) as org:
            watching = asyncio.create_task(ServedWorkers(project.root, project.store).watch(org))
            while run_id not in caplog.text:
                await asyncio.sleep(0.01)
            watching.cancel()
            assert org.runs.get(run_id).status is RunStatus.NEW

    asyncio.run(watch())


def test_only_its_owner_can_read_what_an_agent_prints(project: Project) -> None:
    started(project, cases=1)
    worker = DetachedWorker(project.root, project.store)
    worker.launch("4KB000000000009GAA")
    asyncio.run(worker.close())
    log = project.state_dir / "logs" / "4KB000000000009GAA.log"
    assert [path.stat().st_mode & 0o777 for path in (log, log.parent)] == [0o600, 0o700]


def test_a_worker_that_cannot_be_started_is_reported_with_advice(project: Project) -> None:
    run_id = started(project, cases=1)
    project.state_dir.mkdir(exist_ok=True)
    (project.state_dir / "logs").write_text("")
    worker = DetachedWorker(project.root, project.store)
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
            watching = asyncio.create_task(ServedWorkers(project.root, project.store).watch(org))
            while not log.exists() or log.read_text().count("no room") < 2:
                await asyncio.sleep(0.01)
            org.database.execute("DROP TRIGGER full_disk")
            while not org.runs.get(run_id).status.is_over:
                await asyncio.sleep(0.01)
            watching.cancel()
            assert org.runs.get(run_id).status is RunStatus.COMPLETED

    asyncio.run(asyncio.wait_for(watch(), 60))
