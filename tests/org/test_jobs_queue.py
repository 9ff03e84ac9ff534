from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.model.login import ADMIN
from evalmeta.model.settings import Settings
from evalmeta.org.jobs import JobQueue, submit_deployment
from evalmeta.org.organization import Organization
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.store.database import open_database
from org.parts import KIND, definition, package
from org.servers import wait_for
from stores import store_in

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ZIP = package({"A": definition("A")})


def submitted(folder: Path, count: int, queue: JobQueue | None = None) -> None:
    with open_database(store_in(folder)) as database:
        org = Organization(database, folder, Settings, lambda _: None, queue.wake if queue else lambda: None)
        if queue:
            queue.org = org
        for _ in range(count):
            submit_deployment(org, ADMIN, ZIP, DeployOptions())
        if queue:
            queue.close()


def unfinished(folder: Path) -> int:
    with open_database(store_in(folder)) as database:
        return Organization(database, folder, Settings, lambda _: None).jobs.count_unfinished()


def test_a_queue_that_is_closed_has_done_all_its_work(tmp_path: Path) -> None:
    submitted(tmp_path, 30, JobQueue())
    assert unfinished(tmp_path) == 0


def test_a_queue_that_is_closed_at_once_leaves_the_rest_for_later(tmp_path: Path) -> None:
    submitted(tmp_path, 50)
    queue = JobQueue()
    with open_database(store_in(tmp_path)) as database:
        queue.org = Organization(database, tmp_path, Settings, lambda _: None)
        queue.wake()
        queue.close(at_once=True)
    assert unfinished(tmp_path) > 0


def test_jobs_of_an_earlier_process_run_when_the_queue_wakes(tmp_path: Path) -> None:
    submitted(tmp_path, 3)
    assert unfinished(tmp_path) == 3
    submitted(tmp_path, 1, JobQueue())
    assert unfinished(tmp_path) == 0


def test_queues_of_one_database_carry_out_each_job_once(tmp_path: Path) -> None:
    open_database(store_in(tmp_path)).close()
    threads = [threading.Thread(target=submitted, args=(tmp_path, 10, JobQueue())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_database(store_in(tmp_path)) as database:
        org = Organization(database, tmp_path, Settings, lambda _: None)
        assert [job.status for job in org.jobs.history()] == ["Succeeded"] * 40
        assert [component.full_name for component in org.components.list(KIND.name)] == ["A"]


def test_a_job_that_breaks_the_org_ends_and_the_next_one_is_carried_out(tmp_path: Path) -> None:
    submitted(tmp_path, 1)
    with open_database(store_in(tmp_path)) as database:
        database.execute("UPDATE job SET request = 'text, which no zip is'")
    submitted(tmp_path, 1, JobQueue())
    with open_database(store_in(tmp_path)) as database:
        jobs = Organization(database, tmp_path, Settings, lambda _: None).jobs
        assert {job.status for job in jobs.history()} == {"Failed", "Succeeded"}


def test_a_job_delayed_by_a_locked_database_runs_without_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(tmp_path, 1)
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.01)
    queue = JobQueue()
    with open_database(store_in(tmp_path)) as database, open_database(store_in(tmp_path)) as other:
        queue.org = Organization(database, tmp_path, Settings, lambda _: None)
        with other.transaction():
            queue.wake()
            time.sleep(0.2)
        wait_for(lambda: unfinished(tmp_path) == 0)
        queue.close()


def test_a_queue_that_is_closed_does_not_wait_for_a_busy_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(tmp_path, 1)
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.01)
    with open_database(store_in(tmp_path)) as other, other.transaction():
        queue = JobQueue()
        queue.org = Organization(other, tmp_path, Settings, lambda _: None)
        queue.wake()
        queue.close()
    assert unfinished(tmp_path) == 1
