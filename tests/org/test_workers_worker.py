from __future__ import annotations

import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import StoreError
from evalmeta.model.run import RunStatus
from evalmeta.model.run_options import RunOptions
from evalmeta.org.run_worker import main
from evalmeta.org.runs import is_abandoned
from org.parts import asked, make_project, opened_of, started

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

CASES = 100
KILLS = 4
NAMES = [f"Orders {number}" for number in range(1, CASES + 1)]
WAIT = 120
STARTER = """\
import asyncio, pathlib, sys
from evalmeta.api.org_targets import connect
from evalmeta.client.runs import start_run
from evalmeta.package.project import find_project

async def start():
    async with connect(find_project(pathlib.Path(sys.argv[1])), detached=True) as connection:
        print(await start_run(connection, "Orders"))

asyncio.run(start())
"""


def begin(project: Project, run_id: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "evalmeta.org.run_worker", str(project.root), run_id])


def wait_for(what: object) -> None:
    deadline = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def kept(project: Project, run_id: str) -> list[str]:
    with opened_of(project) as org:
        return [case.utterance for case in org.runs.cases(run_id)]


def is_completed(project: Project, run_id: str) -> bool:
    with opened_of(project) as org:
        return org.runs.get(run_id).status is RunStatus.COMPLETED


def kill_in_the_middle(project: Project, run_id: str) -> None:
    before = len(asked(project))
    worker = begin(project, run_id)
    wait_for(lambda: len(asked(project)) >= before + random.randint(1, 4))  # noqa: S311 - not for secrets
    time.sleep(random.uniform(0, 0.03))  # noqa: S311
    worker.kill()
    worker.wait()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project", seconds=0.02)


@pytest.mark.slow
def test_a_run_killed_again_and_again_asks_only_what_is_missing(tmp_path: Path) -> None:
    # The agent takes much longer than a commit, so that the bound below also holds on a busy machine.
    project = make_project(tmp_path / "project", seconds=0.2)
    run_id = started(project, cases=CASES, options=RunOptions(concurrency=2))
    for _ in range(KILLS):
        kill_in_the_middle(project, run_id)
        done, before = kept(project, run_id), len(asked(project))
        with opened_of(project) as org:
            assert is_abandoned(org, org.runs.get(run_id))
    assert begin(project, run_id).wait(WAIT) == 0

    assert set(done).isdisjoint(asked(project)[before:])
    assert kept(project, run_id) == NAMES
    # At each kill both askers may have an answer on its way to disk and another question out.
    assert len(asked(project)) <= CASES + 2 * 2 * KILLS
    assert is_completed(project, run_id)


@pytest.mark.slow
def test_two_workers_at_once_do_no_case_twice(project: Project) -> None:
    run_id = started(project, cases=CASES)
    workers = [begin(project, run_id) for _ in range(2)]
    assert [worker.wait(WAIT) for worker in workers] == [0, 0]
    wait_for(lambda: is_completed(project, run_id))
    assert kept(project, run_id) == NAMES
    assert sorted(asked(project)) == sorted(NAMES)


@pytest.mark.slow
def test_a_run_continues_after_the_process_that_started_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALMETA_HOME", "elsewhere/state")
    monkeypatch.chdir(project.root.parent)
    (project.root / "socket.py").write_text("raise SystemExit('the wrong module')")
    started(project, cases=CASES)
    command = [sys.executable, "-c", STARTER, str(project.root)]
    run_id = subprocess.run(command, check=True, capture_output=True, text=True, timeout=WAIT).stdout.strip()
    wait_for(lambda: is_completed(project, run_id))
    assert kept(project, run_id) == NAMES
    assert (project.state_dir / "logs" / f"{run_id}.log").read_text() == ""


def test_a_worker_does_its_runs_in_order(project: Project) -> None:
    run_ids = [started(project, cases=cases) for cases in (2, 3)]
    main(str(project.root), *run_ids, "4KB000000000009GAA")
    assert [kept(project, run_id) for run_id in run_ids] == [NAMES[:2], NAMES[:3]]


def test_a_worker_reports_database_errors(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        for view in ("run_use", "listed_run"):
            org.database.execute(f"DROP VIEW {view}")
        org.database.execute("ALTER TABLE run DROP COLUMN total")
    main(str(project.root), run_id)
    assert f"run {run_id}: " in capsys.readouterr().err


@pytest.mark.sqlite
def test_a_worker_needs_a_database_that_opens(project: Project) -> None:
    project.state_dir.write_text("")
    with pytest.raises(StoreError):
        main(str(project.root), "4KB000000000001GAA")
