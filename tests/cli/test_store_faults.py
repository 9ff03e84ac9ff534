"""Runs whose database fails: they stop and say why, their results are kept, and they can be resumed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalmeta.errors import StoreError
from evalmeta.model.run import RunOptions, RunStatus
from evalmeta.org.run_worker import work
from org.parts import asked, make_project, opened_of, started

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import CaseResult
    from evalmeta.package.project import Project

CASES, WAIT = 40, 120
RUN = "4KB000000000001GAA"
RESUME = ("test", "resume", "--job-id", RUN)
GO_ON = f"Resume it: evalmeta test resume --job-id {RUN}"
# Limits are set before anything reads them.
SCRIPT = """\
import json, resource, sys
from evalmeta import limits
for name, value in json.loads(sys.argv[1]).items():
    if name == "file_bytes":
        resource.setrlimit(resource.RLIMIT_FSIZE, (value, value))
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
        assert "Move org.sqlite3 away and deploy again" in said
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


def test_a_background_run_stopped_by_a_full_disk_can_be_resumed(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    with opened_of(project) as org:
        [(pages,)] = org.database.query("PRAGMA page_count")
        org.database.query(f"PRAGMA max_page_count = {pages + 20}")
        with pytest.raises(StoreError, match="database or disk is full"):
            asyncio.run(work(org, RUN))
        assert org.runs.get(RUN).status is RunStatus.IN_PROGRESS
        assert org.runs.lease(RUN).worker is None
    check_that_it_goes_on(project, kept(project))
