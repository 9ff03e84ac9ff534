"""Two commands at one project at the same time, in every combination: each ends clearly, and nothing is torn."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import pytest

from evalmeta.store.database import open_database
from org.parts import definition, make_project, xml_of

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "deploy": ("deploy", "--ignore-conflicts"),
    "run": ("test", "run", "--wait"),
    "retrieve": ("retrieve", "--metadata", "AiEvaluationDefinition", "--ignore-conflicts"),
    "reset": ("org", "reset", "--no-prompt"),
}
WAIT = 120


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*combinations_with_replacement(COMMANDS, 2)], ids=" and ".join)
def test_two_commands_at_once_end_clearly_and_tear_nothing(tmp_path: Path, pair: tuple[str, str]) -> None:
    project = make_project(tmp_path / "project", seconds=0.01)
    (project.root / xml_of("Orders")).parent.mkdir()
    words = [sys.executable, "-m", "evalmeta"]
    for turn in range(3):
        (project.root / xml_of("Orders")).write_bytes(definition("Orders", cases=5 + turn))
        subprocess.run([*words, *COMMANDS["deploy"]], cwd=project.root, capture_output=True, timeout=WAIT, check=False)
        running = [
            subprocess.Popen(
                [*words, *COMMANDS[name]], cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for name in pair
        ]
        for name, process in zip(pair, running, strict=True):
            out, err = process.communicate(timeout=WAIT)
            assert "Traceback" not in err, (name, err)
            assert process.returncode == 0 or "Error (" in err + out or "not passed" in out, (name, out, err)
    with open_database(project.store) as database:
        assert database.query("PRAGMA foreign_key_check") == []
    with closing(sqlite3.connect(project.state_dir / "org.sqlite3")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert (project.root / xml_of("Orders")).read_bytes() == definition("Orders", cases=7)
