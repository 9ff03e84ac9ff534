"""Builds three projects, each with a store that has twelve days of runs, in which five things break.

    python tests/viewer/twelve_days.py FOLDER [CASES]

FOLDER must not have the folders `shop` (test specs), `service` (definitions) and `weather` (evaluation sets of ADK);
see three_projects.py for what breaks. To look at one: `cd FOLDER/shop && evalmeta view`. CASES is the number of cases
of one more test of the shop, which is new on day 9.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from engine.raters.llm.model_server import model_serving
from viewer.three_projects import EARLIER_DAY, LAST_DAY, PROJECTS, SHOP, SPEC_HEAD, TOOL_REMOVED

if TYPE_CHECKING:
    from viewer.three_projects import ExampleProject

DAY_SECONDS: Final = 86_400.0
_MORNING_SECONDS: Final = (9 * 60 + 19) * 60.0
_MANY: Final = "- input: Where is order {number}?\n  contains: Friday\n"
_MOVE_RUN: Final = """
    UPDATE run SET created_at = created_at + ?1, started_at = started_at + ?1, ended_at = ended_at + ?1 WHERE id = ?2
"""
_COMMITS: Final = {1: "First tests", 4: "Faster answers", EARLIER_DAY: "Other answers for one", LAST_DAY: TOOL_REMOVED}


def build_project(project: ExampleProject, folder: Path, *, cases: int = 0) -> None:
    """Write a project and its store."""
    files = {**project.files, ".gitignore": ".evalmeta/\n__pycache__/\nevalmeta.toml\n"}
    with model_serving(project.judgement) as judge:
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{url}", judge.url) if path == "evalmeta.toml" else text)
        _git(folder, "init", "--quiet", "--initial-branch", "main")
        today = time.time() // DAY_SECONDS * DAY_SECONDS
        for day in range(1, LAST_DAY):
            if cases and project is SHOP and day == EARLIER_DAY:
                many = "".join(_MANY.format(number=50_000 + number) for number in range(cases))
                (folder / "tests/many.yaml").write_text(SPEC_HEAD.format(name="Many") + many)
            _day(project, folder, day, today)
    _day(project, folder, LAST_DAY, today)


def _day(project: ExampleProject, folder: Path, day: int, today: float) -> None:
    """Commit what changes on a day, run all tests, and move the runs to that day."""
    for edit in project.edits.get(day, ()):
        file = folder / edit.file
        text = file.read_text()
        if edit.old not in text:
            raise ValueError(f"{file} does not have {edit.old!r}")
        file.write_text(text.replace(edit.old, edit.new, 1))
    if subject := _COMMITS.get(day):
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--allow-empty", "--message", subject)
    command = [sys.executable, "-m", "evalmeta", "run", project.tests, "--rater", "judge", "--quiet"]
    compared = ["--baseline", "previous"] if day > 1 else []
    environment, begun = {**os.environ, "DAY": str(day)}, time.time()
    done = subprocess.run(
        [*command, *compared], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 1, 100}:
        raise RuntimeError(done.stderr)
    _move(folder, begun, min(begun, today - (LAST_DAY - day) * DAY_SECONDS + _MORNING_SECONDS))


def _move(folder: Path, before: float, to: float) -> None:
    """Give the runs that started after a time the times of another day."""
    store = sqlite3.connect(folder / ".evalmeta" / "org.sqlite3")
    with store:
        runs = store.execute("SELECT id, created_at FROM run WHERE created_at >= ?", (before,)).fetchall()
        shift = to - min(created for _, created in runs)
        for run_id, _ in runs:
            store.execute(_MOVE_RUN, (shift, run_id))
            cases = store.execute("SELECT iteration, number, body FROM case_result WHERE run_id = ?", (run_id,))
            for iteration, number, body in cases.fetchall():
                case = orjson.loads(body)
                case[4], case[5] = case[4] + shift, case[5] + shift
                sql = "UPDATE case_result SET body = ? WHERE run_id = ? AND iteration = ? AND number = ?"
                store.execute(sql, (orjson.dumps(case), run_id, iteration, number))
        store.execute("UPDATE suite SET created_at = created_at + ? WHERE created_at >= ?", (shift, before))
    store.close()


def _git(folder: Path, *words: str) -> None:
    names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", *names, "-C", str(folder), *words], check=True, capture_output=True)  # noqa: S607


if __name__ == "__main__":
    for example in PROJECTS:
        build_project(example, Path(sys.argv[1]) / example.name, cases=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
