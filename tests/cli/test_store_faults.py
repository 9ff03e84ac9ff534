"""Runs and deployments whose database fails: they stop and say why, what was kept stays, and they can go on."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalmeta.errors import StoreError, StoreFull
from evalmeta.model.login import ADMIN
from evalmeta.model.run import RunStatus
from evalmeta.model.run_options import RunOptions
from evalmeta.org.jobs import run_jobs, submit_deployment
from evalmeta.org.run_worker import work
from evalmeta.package.project import find_project
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.store.database import open_database
from org.parts import asked, definition, make_project, opened_of, package, started, xml_of
from suites import make_suite

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import CaseResult
    from evalmeta.org.organization import Organization
    from evalmeta.package.project import Project

CASES, WAIT = 40, 120
RUN = "4KB000000000001GAA"
RESUME = ("test", "resume", "--job-id", RUN)
GO_ON = f"Resume it: evalmeta test resume --job-id {RUN}"
# Limits are set before anything reads them.
SCRIPT = """\
import json, resource, sqlite3, sys
from evalmeta import limits
for name, value in json.loads(sys.argv[1]).items():
    if name == "file_bytes":
        resource.setrlimit(resource.RLIMIT_FSIZE, (value, value))
    elif name == "more_pages":
        def connect(*args, open_file=sqlite3.connect, more=value, **options):
            opened = open_file(*args, **options)
            [(pages,)] = opened.execute("PRAGMA page_count").fetchall()
            opened.execute(f"PRAGMA max_page_count = {limits.__dict__.setdefault('pages', pages) + more}")
            return opened
        sqlite3.connect = connect
    else:
        setattr(limits, name, value)
from evalmeta.cli.main import main
main(sys.argv[2:])
"""
AGENT = """\
import asyncio, os, pathlib, sqlite3

here = pathlib.Path(__file__).parent
store = here / ".evalmeta" / "org.sqlite3"

async def answer(utterance):
    file = os.open(here / "asked.txt", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(file, f"{utterance}\\n".encode())
    os.close(file)
    await asyncio.sleep(0.02)
    if utterance == "Orders 20" and not (here / "mended").exists():
        FAULT
    return {"outcome": "Done. " * 2_000, "topic": "Orders"}
"""
# The database is locked only after the results of earlier cases are in it.
LOCK = """global held
        held = sqlite3.connect(store, isolation_level=None)
        while held.execute("SELECT count(*) FROM case_result").fetchone() == (0,):
            await asyncio.sleep(0.01)
        held.execute("BEGIN EXCLUSIVE")"""
QUICKLY = {"STORE_BUSY_SECONDS": 0.2, "LOCKED_SECONDS": 1}


class Said(NamedTuple):
    code: int
    out: str
    err: str


def project_with(folder: Path, fault: str = "pass") -> Project:
    project = make_project(folder / "project", agent=AGENT.replace("FAULT", fault))
    assert started(project, cases=CASES, options=RunOptions(concurrency=4)) == RUN
    return project


def call(project: Project, *words: str, before: tuple[str, ...] = (), **settings: float) -> Said:
    command = [*before, sys.executable, "-c", SCRIPT, json.dumps(settings), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, cwd=project.root, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


def kept(project: Project) -> list[CaseResult]:
    with opened_of(project) as org:
        return list(org.runs.cases(RUN))


def check_that_it_goes_on(project: Project, before: list[CaseResult]) -> None:
    """Carries the run to its end: what was kept stays as it is and is not asked again."""
    questions = len(asked(project))
    (project.root / "mended").touch()
    done = call(project, *RESUME)
    after = kept(project)
    assert (done.code, "40 passed, 0 failed, 0 errors" in done.out) == (0, True), done
    assert [each.number for each in after] == list(range(1, CASES + 1))
    assert all(each in after for each in before)
    assert {each.utterance for each in before}.isdisjoint(asked(project)[questions:])
    with opened_of(project) as org:
        assert org.database.query("PRAGMA integrity_check") == [("ok",)]


def traces(err: str) -> list[str]:
    """Gives the places that tracebacks tell of, but for those of coverage, which cannot write its own file either."""
    places = [line for line in err.splitlines() if line.startswith('  File "')]
    return [line for line in places if "/coverage/" not in line]


@pytest.mark.slow
def test_a_full_disk_stops_the_run_and_free_space_lets_it_resume(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    done = call(project, *RESUME, file_bytes=300_000)
    before = kept(project)
    assert (done.code, GO_ON in done.err) == (4, True), done
    assert "Check that the disk has room" in done.err
    assert not traces(done.err)
    assert len(before) < CASES
    check_that_it_goes_on(project, before)


@pytest.mark.slow
def test_a_database_that_another_program_holds_for_long_stops_the_run(tmp_path: Path) -> None:
    project = project_with(tmp_path, LOCK)
    done = call(project, *RESUME, "--json", **QUICKLY)
    before, said = kept(project), json.loads(done.out)
    assert (done.code, said["name"], said["exitCode"]) == (4, "StoreError", 4)
    assert said["message"] == f"run {RUN} stopped: .evalmeta/org.sqlite3 is locked by another program"
    assert GO_ON in "\n".join(said["actions"])
    assert 0 < len(before) < CASES
    check_that_it_goes_on(project, before)


@pytest.mark.slow
def test_a_database_that_was_overwritten_stops_the_run(tmp_path: Path) -> None:
    project = project_with(tmp_path, 'store.write_bytes(b"garbage" * 100_000)')
    done = call(project, *RESUME)
    again = call(project, *RESUME)
    assert (done.code, again.code) == (4, 4)
    for said in (done.err, again.err):
        assert "org.sqlite3 is not a valid database" in said
        assert "Move org.sqlite3, and org.sqlite3-wal if it exists, to another folder" in said
        assert "Traceback" not in said


@pytest.mark.slow
def test_an_unwritable_folder_is_reported_and_nothing_is_lost(tmp_path: Path) -> None:
    before: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root may write everywhere")
        before = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    project = project_with(tmp_path, LOCK)
    call(project, *RESUME, **QUICKLY)
    results = kept(project)
    store = project.state_dir / "org.sqlite3"
    store.chmod(0o400)
    project.state_dir.chmod(0o500)
    try:
        done = call(project, *RESUME, before=before)
    finally:
        project.state_dir.chmod(0o700)
        store.chmod(0o600)
    assert (done.code, "org.sqlite3" in done.err, "Traceback" in done.err) == (4, True, False), done
    assert "writable" in done.err
    check_that_it_goes_on(project, results)


@pytest.mark.slow
def test_a_background_run_stopped_by_a_full_disk_can_be_resumed(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    with opened_of(project) as org:
        [(pages,)] = org.database.query("PRAGMA page_count")
        org.database.query(f"PRAGMA max_page_count = {pages + 20}")
        with pytest.raises(StoreError, match="database or disk is full"):
            asyncio.run(work(org, RUN))
        assert org.runs.get(RUN).status is RunStatus.IN_PROGRESS
        assert org.runs.lease(RUN).worker is None
    assert re.search(r"IN_PROGRESS +stopped", call(project, "test", "history").out)
    said = call(project, "test", "results", "--job-id", RUN).err
    assert f"No process works on it. Continue it: evalmeta test resume --job-id {RUN}" in said
    check_that_it_goes_on(project, kept(project))


def project_to_deploy(folder: Path) -> Project:
    """A project whose first deployment is in its org, and a change that needs much more room."""
    project = make_project(folder / "project")
    assert deploy_here(project, cases=1).code == 0
    write_definition(project, cases=1_000)
    return project


def deploy_here(project: Project, *, cases: int, **settings: float) -> Said:
    write_definition(project, cases=cases)
    return call(project, "deploy", "--ignore-conflicts", **settings)


def submit(org: Organization, *, cases: int) -> str:
    """Submit a deployment that no other thread carries out."""
    zip_file = package({"Orders": definition("Orders", cases=cases)})
    return submit_deployment(replace(org, wake=lambda: None), ADMIN, zip_file, DeployOptions())


def write_definition(project: Project, *, cases: int) -> None:
    path = project.root / xml_of("Orders")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(definition("Orders", cases=cases))


@pytest.mark.slow
def test_a_deployment_that_finds_no_room_says_so_and_gives_up(tmp_path: Path) -> None:
    project = project_to_deploy(tmp_path)
    done = deploy_here(project, cases=1_000, more_pages=30, DISK_FULL_SECONDS=0.3)
    assert (done.code, traces(done.err)) == (4, []), done
    assert "deployments and retrieves wait: " in done.err
    assert "database or disk is full; deploy 0Af000000000002CAA has waited 0.3 seconds for room" in done.err
    assert "Make room on the disk: the job is then executed by the next command." in done.err
    again = call(project, "deploy", "resume", "--job-id", "0Af000000000002CAA")
    assert (again.code, "Deployed 1 component" in again.out) == (0, True), again


@pytest.mark.slow
def test_a_deployment_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    project = project_to_deploy(tmp_path)
    with opened_of(project) as org:
        [(pages,)] = org.database.query("PRAGMA page_count")
        job_id = submit(org, cases=1_000)
        org.database.query(f"PRAGMA max_page_count = {pages + 30}")
        with pytest.raises(StoreFull):
            run_jobs(org)
        org.database.query("PRAGMA max_page_count = 1000000")
        run_jobs(org)
        assert org.jobs.get("deploy", job_id).status == "Succeeded"


@pytest.mark.slow
@pytest.mark.parametrize("words", [("deploy",), ("retrieve", "--metadata", "AiEvaluationDefinition")])
def test_a_damaged_database_ends_deploy_and_retrieve_at_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    project = project_to_deploy(tmp_path)
    damage(project, table="component")
    done = call(project, *words)
    assert (done.code, traces(done.err)) == (4, []), done
    assert "org.sqlite3 is not a valid database" in done.err


def damage(project: Project, *, table: str, sql: str = "") -> None:
    """Overwrites the first page of a table, after a statement."""
    store = project.state_dir / "org.sqlite3"
    with sqlite3.connect(store) as connection:
        connection.execute(sql)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
        [(size,)] = connection.execute("PRAGMA page_size").fetchall()
    connection.close()
    content = bytearray(store.read_bytes())
    content[(root - 1) * size : root * size] = b"\xff" * size
    store.write_bytes(content)


@pytest.mark.slow
def test_a_job_that_a_damaged_page_fails_says_what_to_do(tmp_path: Path) -> None:
    project = project_to_deploy(tmp_path)
    damage(project, table="component")
    with opened_of(project) as org:
        job_id = submit(org, cases=2)
        run_jobs(org)
        job = org.jobs.get("deploy", job_id)
        reply = org.jobs.reply(job_id).decode()
    assert job.status == "Failed"
    assert "so deploy again. The files of the project stay as they are." in reply


@pytest.mark.slow
def test_an_unexpected_error_is_told_from_the_damage_that_led_to_it(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    damage(project, table="mark", sql="UPDATE run SET options = '[5]'")
    done = call(project, "test", "history")
    assert (done.code, "org.sqlite3 is not a valid database" in done.err) == (4, True), done
    assert "defect" not in done.err


@pytest.mark.slow
def test_a_run_goes_on_while_another_program_holds_the_database(tmp_path: Path) -> None:
    """The agent holds it for a while: a blocked event loop would not let it go on, and the lock would stay."""
    holding = """global held
        held = sqlite3.connect(store, isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        for _ in range(30):
            await asyncio.sleep(0.01)
        held.execute("ROLLBACK")"""
    project = make_project(tmp_path / "project", agent=AGENT.replace("FAULT", holding))
    assert started(project, cases=CASES, options=RunOptions(concurrency=10)) == RUN
    done = call(project, *RESUME)
    assert (done.code, "40 passed, 0 failed, 0 errors" in done.out) == (0, True), done
    assert sorted(asked(project)) == sorted(set(asked(project)))


@pytest.mark.slow
def test_a_full_disk_while_tests_start_leaves_a_suite_that_says_what_is_missing_and_is_completed(
    tmp_path: Path,
) -> None:
    suite = make_suite(tmp_path / "project", tests=30, cases=1, wanted=0)
    project = find_project(suite.root)
    open_database(project.store).close()
    full = call(project, "test", "run", ".", "--wait", more_pages=5)
    assert full.code == 4
    [named] = re.findall(r"Not started: (.*)\.", full.err)
    missing = named.split(", ")
    assert (0 < len(missing) < 30, missing[-1]) == (True, "Test_29")
    assert "When the database can be used, start them: evalmeta test resume --unfinished" in full.err
    assert not traces(full.err)

    results = call(project, "test", "results", "--job-id", "latest")
    assert f"{len(missing)} tests never started: {missing[0]}" in results.err
    resumed = call(project, "test", "resume", "--unfinished")
    assert (resumed.code, "30 of 30 runs passed" in resumed.out) == (0, True), resumed
    assert set(suite.asked()) == set(suite.questions)
