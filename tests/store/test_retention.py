from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.store.database import open_database
from evalmeta.store.kept_numbers import keep_digest
from evalmeta.store.retention import delete_runs, old_runs
from evalmeta.store.runs import Runs
from store.test_run_lists_orgs import URL, run_here, run_there
from stores import store_in

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.store.database import Database

CONTENT = b"<AiEvaluationDefinition/>" * 100


@pytest.mark.sqlite
def test_runs_of_an_earlier_layout_keep_their_contents_and_share_them(folder: Path) -> None:
    folder.mkdir()
    scripts = sorted((files("evalmeta.store") / "migrations").iterdir(), key=lambda script: script.name)
    earlier = [script.read_text() for script in scripts if script.name < "0004.sql"]
    with closing(sqlite3.connect(folder / "org.sqlite3", isolation_level=None)) as connection:
        for script in earlier:
            connection.executescript(script)
        sql = """
            INSERT INTO run (id, definition, kind, content, subject_name, status, options, total, user_id, suite,
              branch, confirms, created_at)
            VALUES (?, 'Orders', ?, ?, 'Desk', 'COMPLETED', '{}', 1, '005', '', '', '', ?)
        """
        for place, kind, content in (
            (1, "definition", CONTENT),
            (2, "definition", CONTENT),
            (3, "file", b'{"file": "a"}'),
        ):
            connection.execute(sql, (f"4KB{place}", kind, content, float(place)))
        connection.execute(f"PRAGMA user_version = {len(earlier)}")
        connection.execute("PRAGMA application_id = 0x45564D54")
    with open_database(store_in(folder)) as database:
        runs = Runs(database)
        contents = [runs.content(f"4KB{place}") for place in (1, 2, 3)]
        assert [(content.data, content.kind.value) for content in contents] == [
            (CONTENT, "definition"), (CONTENT, "definition"), (b'{"file": "a"}', "file"),
        ]  # fmt: skip
        assert database.query("SELECT count(*) FROM content") == [(1,)]
        assert [run.id for run in old_runs(database, keep=1, before=None)] == ["4KB1", "4KB2"]
        assert database.query("PRAGMA auto_vacuum") == [(0,)]
        database.execute("DELETE FROM counter")
        old = old_runs(database, keep=1, before=None)
        database.execute("INSERT INTO used_run VALUES ('main.json', 'Orders', '4KB2')")
        assert [(run.id, run.use) for run in delete_runs(database, old)] == [("4KB1", ""), ("4KB2", "in a baseline")]
        assert database.query("SELECT id FROM run ORDER BY id") == [("4KB2",), ("4KB3",)]
        database.shrink()
        assert database.query("PRAGMA auto_vacuum") == [(2,)]


@pytest.mark.sqlite
@pytest.mark.parametrize("largest", [10**9, 0])
def test_room_is_given_back_by_writing_anew_or_step_by_step(
    database: Database, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr(limits, "MAX_REWRITTEN_BYTES", largest)
    with database.transaction():
        database.execute_many("INSERT INTO rating VALUES (?, ?, 0)", ((f"{row}", "x" * 900) for row in range(5_000)))
    before = database.size()
    database.execute("DELETE FROM rating WHERE key <> '7'")
    database.shrink()
    assert database.size() < 0.2 * before
    assert database.query("SELECT key FROM rating") == [("7",)]
    assert database.query("PRAGMA freelist_count") == [(0,)]


def test_nothing_that_was_kept_of_a_deleted_run_stays(database: Database) -> None:
    there = run_there(database, "Returns", Verdict.PASS, now=1.0)
    old, *newer = (run_here(database, "Orders", Verdict.PASS, now=now) for now in (2.0, 3.0, 4.0))
    for run_id in (old, *newer):
        Runs(database).finish(run_id, "w", RunStatus.COMPLETED, error=None, now=5.0)
    going = [old, f"{old} sort", f"{old} review", f"{newer[0]} {old}", " ".join((old, *newer)), " ".join((*newer, old))]
    staying = [newer[0], f"{newer[0]} cases", " ".join(newer), f"{there} {newer[0]}"]
    for key in (*going, *staying):
        keep_digest(database, key, "stamp", {})
    for key in (there, f"{newer[0]} {there}"):
        keep_digest(database, key, "stamp", {}, org_url=URL)

    assert [run.id for run in delete_runs(database, old_runs(database, keep=2, before=None))] == [old]

    kept = database.query("SELECT org_url, run_id FROM run_digest")
    assert {*kept} == {*(("", key) for key in staying), (URL, there), (URL, f"{newer[0]} {there}")}
