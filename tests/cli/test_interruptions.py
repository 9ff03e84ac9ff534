from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.run import RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.run_worker import work
from org.parts import asked, make_project, opened_of, started

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTER = Path(__file__).parent / "interrupted_runs.py"
CASES, TIMES = 60, 15
AGENT = """\
import asyncio, os, pathlib, time

here = pathlib.Path(__file__).parent
is_mended = (here / "mended").exists()

async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

class Session:
    async def ask(self, utterance):
        file = os.open(here / "asked.txt", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(file, f"{utterance}\\n".encode())
        os.close(file)
        self.number = int(utterance.split()[1])
        await asyncio.sleep(0.02)
        if not is_mended and self.number % 10 == 5:
            await asyncio.sleep(3600)
        if not is_mended and self.number % 10 == 6:
            await asyncio.to_thread(time.sleep, 3600)
        if not is_mended and self.number % 30 == 7:
            await stubborn()
        return {"outcome": "Done.", "topic": "Orders"}

    async def close(self):
        if not is_mended and self.number % 10 == 8:
            await asyncio.sleep(3600)

class Desk:
    def open(self):
        return Session()
"""
SETTINGS = '[subjects.Desk]\nadapter = "python"\ntarget = "desk:Desk"\n'


@pytest.mark.slow
def test_ctrl_c_at_random_moments_of_runs_that_hang_keeps_what_was_done(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    project = make_project(tmp_path / "project", agent=AGENT, settings=SETTINGS)
    run_id = started(project, cases=CASES, options=RunOptions(concurrency=30))
    command = [sys.executable, str(INTERRUPTER), str(project.root), run_id, str(TIMES), "1"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)
    record_property("said", f"interrupted a run {TIMES} times: {said['codes']}, {said['slow']} took too long")

    assert (said["codes"], said["slow"], said["traces"]) == ({"130": TIMES}, 0, 0), said
    with opened_of(project) as org:
        before, questions = org.runs.cases(run_id), len(asked(project))
        (project.root / "mended").touch()
        asyncio.run(work(org, run_id))
        after = org.runs.cases(run_id)
        assert org.database.query("PRAGMA integrity_check") == [("ok",)]
        assert org.runs.get(run_id).status is RunStatus.COMPLETED
    assert before
    assert [(each.number, each.verdict) for each in after] == [(n, Verdict.PASS) for n in range(1, CASES + 1)]
    assert {*before} <= {*after}
    assert {each.utterance for each in before}.isdisjoint(asked(project)[questions:])
