"""A database of each earlier layout, with rows of its time, opens and keeps them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from evalmeta.store.database import open_database
from evalmeta.store.jobs import Jobs
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = files("evalmeta.store") / "migrations"
SCRIPTS = [each.read_text() for each in sorted(FOLDER.iterdir(), key=lambda each: each.name) if ".sql" in each.name]
APPLICATION = 0x45564D54
RUN = "4KB000000000001GAA"
# The columns that the first layout had; later ones have defaults.
ROWS = {
    "counter": {"prefix": "4KA", "last": 1},
    "component": {
        "type": "AiEvaluationDefinition",
        "full_name": "Orders",
        "id": "4KA000000000001AAA",
        "content": b"<x/>\r\n",
        "created_at": 1.0,
        "modified_at": 2.0,
    },
    "run": {
        "id": RUN,
        "definition": "Orders",
        "content": b"<x/>",
        "subject_name": "Desk",
        "status": "COMPLETED",
        "options": b"{}",
        "total": 1,
        "created_at": 1.0,
        "ended_at": 2.0,
    },
    "case_result": {
        "run_id": RUN,
        "iteration": 1,
        "number": 1,
        "verdict": "PASS",
        "body": b'{"testNumber": 1, "status": "COMPLETED", "inputs": {"utterance": "Hi"},'
        b' "generatedData": {"outcome": "Here."}, "testResults": [{"name": "n", "result": "PASS", "score": 1}]}',
    },
}
FIRST_JOB = {"id": "0Af000000000001AAA", "kind": "deploy", "created_at": 1.0, "reply": b"<reply/>"}


def make_database(folder: Path, layout: int) -> None:
    """Create a database as it was with the first scripts; its rows are as old as it is."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "org.sqlite3", isolation_level=None)) as database:
        for number, script in enumerate(SCRIPTS[:layout], 1):
            database.executescript(script)
            if number == 1:
                insert(database, "job", FIRST_JOB)
        for table, row in ROWS.items():
            insert(database, table, row)
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {layout}")


def insert(database: sqlite3.Connection, table: str, row: dict[str, object]) -> None:
    places = ", ".join("?" * len(row))
    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))  # noqa: S608 - made above


@pytest.mark.parametrize("layout", range(1, len(SCRIPTS) + 1))
def test_a_database_of_every_layout_opens_and_keeps_its_rows(tmp_path: Path, layout: int) -> None:
    make_database(tmp_path / "state", layout)
    with open_database(tmp_path / "state") as database:
        assert database.query("PRAGMA user_version") == [(len(SCRIPTS),)]
        assert database.query("PRAGMA integrity_check") == [("ok",)]
        assert database.query("PRAGMA foreign_key_check") == []
        assert database.query("SELECT full_name, content, modified_at FROM component") == [("Orders", b"<x/>\r\n", 2.0)]
        assert Jobs(database).reply("0Af000000000001AAA") == b"<reply/>"
        run = Runs(database).get(RUN)
        assert (run and run.definition, run and run.status, run and run.answers_of) == ("Orders", "COMPLETED", None)
        [case] = Runs(database).cases(RUN)
        assert (case.generated and case.generated.outcome, case.verdict) == ("Here.", "PASS")
