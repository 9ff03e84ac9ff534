from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.resources import files
from typing import TYPE_CHECKING

from evalmeta.store.components import Synced, open_tracking
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from pathlib import Path

KIND = "AiEvaluationDefinition"
URL = "http://org.invalid"
ONE, TWO = Synced(b"\x01" * 32, "2026-11-20T12:00:00.000Z"), Synced(b"\x02" * 32, "")


def test_remembered_components_are_there_later(tmp_path: Path) -> None:
    with open_tracking(tmp_path / "state", root=tmp_path, org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE, "Returns": TWO})

    with open_tracking(tmp_path / "state", root=tmp_path, org_url=URL) as tracking:
        assert tracking.load(KIND) == {"orders": ONE, "returns": TWO}


def test_names_ignore_case_and_the_last_state_wins(tmp_path: Path) -> None:
    with open_tracking(tmp_path / "state", root=tmp_path, org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE})
        tracking.remember(KIND, {"ORDERS": TWO})

        assert tracking.load(KIND) == {"orders": TWO}


def test_forgotten_components_are_gone(tmp_path: Path) -> None:
    with open_tracking(tmp_path / "state", root=tmp_path, org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE, "Returns": TWO})
        tracking.forget(KIND, ["orders"])

        assert tracking.load(KIND) == {"returns": TWO}


def test_orgs_and_projects_are_separate(tmp_path: Path) -> None:
    with open_tracking(tmp_path / "state", root=tmp_path / "a", org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE})

    for root, url in (("b", URL), ("a", "http://other.invalid")):
        with open_tracking(tmp_path / "state", root=tmp_path / root, org_url=url) as tracking:
            assert tracking.load(KIND) == {}


def test_a_project_moved_with_its_state_remembers(tmp_path: Path) -> None:
    with open_tracking(tmp_path / "a/.evalmeta", root=tmp_path / "a", org_url=URL) as tracking:
        tracking.remember(KIND, {"Orders": ONE})

    (tmp_path / "a").rename(tmp_path / "b")

    with open_tracking(tmp_path / "b/.evalmeta", root=tmp_path / "b", org_url=URL) as tracking:
        assert tracking.load(KIND) == {"orders": ONE}


def test_a_database_of_the_first_layout_gets_the_table_and_keeps_its_rows(tmp_path: Path) -> None:
    with open_database(tmp_path) as made:
        header = made.query("SELECT application_id FROM pragma_application_id")[0][0]
    (tmp_path / "org.sqlite3").unlink()
    script = (files("evalmeta.store") / "migrations/0001.sql").read_text()
    with closing(sqlite3.connect(tmp_path / "org.sqlite3")) as old:
        old.executescript(f"{script}; PRAGMA application_id = {header}; PRAGMA user_version = 1;")
        old.executescript("INSERT INTO counter VALUES ('4KA', 7);")

    with open_tracking(tmp_path, root=tmp_path, org_url=URL) as tracking:
        assert tracking.load(KIND) == {}
    with open_database(tmp_path) as migrated:
        assert migrated.query("SELECT last FROM counter WHERE prefix = '4KA'") == [(7,)]
