from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

import orjson
import pytest

from evalmeta.errors import StoreError
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.login import User
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.model.run import Run, RunContent, RunStatus
from evalmeta.model.run_options import Origin, RunOptions, Scoring
from evalmeta.protocol.runs import write_options
from evalmeta.store.database import open_database
from evalmeta.store.remote_runs import RemoteRun, RemoteRuns
from evalmeta.store.run_lists import list_runs, runs_of_suite
from evalmeta.store.runs import Runs
from evalmeta.store.sqlite import migrate
from evalmeta.store.suites import Suite, Suites, SuiteTest
from stores import store_in

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.store.database import Database

SUITE, URL = "a1b2c3d4e5f6", "https://dev.example"


def options(place: int, **others: object) -> RunOptions:
    return replace(RunOptions(origin=Origin(SUITE, "main", "", ("smoke",), place)), **others)


TESTS = (
    SuiteTest(EVALUATION_DEFINITION, "Orders", options(1, cases=(1, 3)), "v1"),
    SuiteTest(TESTING_DEFINITION, "Orders", options(2, iterations=3), "v2", {"path": "a.yaml", "reading": {"n": 1}}),
    SuiteTest(EVALUATION_DEFINITION, "Returns", options(3, scoring=Scoring(topics="contains")), "v3"),
)


def begun(database: Database, suite: str = SUITE, *, created: float = 100.0, org_url: str = "") -> Suites:
    tests = tuple(
        replace(test, options=replace(test.options, origin=test.options.origin._replace(suite=suite))) for test in TESTS
    )
    suites = Suites(database)
    suites.keep(Suite(suite, org_url, "", created, tests))
    return suites


def start(database: Database, place: int, name: str = "Orders", *, user: str = "005", **others: object) -> str:
    content = RunContent(b"<xml/>")
    who = User(user, "me@example.com", "Me", is_admin=False)
    evaluation = Evaluation(name, "Desk", (Case(1, ()),))
    return Runs(database).start(
        EVALUATION_DEFINITION, evaluation, content, options(place, **others), total=1, now=place, user=who
    )


def test_a_suite_is_read_back_as_it_was_saved(database: Database) -> None:
    suite = begun(database).get(SUITE)
    assert suite == Suite(SUITE, "", "", 100.0, TESTS)
    assert [test.key for test in suite.tests][:2] == ["AiEvaluationDefinition:Orders", "AiTestingDefinition:Orders"]


def test_a_suite_is_saved_as_a_whole_or_not_at_all(database: Database) -> None:
    suites = Suites(database)
    with pytest.raises(StoreError):
        suites.keep(Suite(SUITE, "", "", 1.0, (*TESTS, TESTS[0])))
    assert suites.get(SUITE) is None


def test_a_test_is_due_until_it_has_a_run_here_or_in_another_org(database: Database) -> None:
    suites = begun(database)
    start(database, 1)
    RemoteRuns(database).keep(
        RemoteRun(URL, "dev", Run("3A2000000000001AAA", "Orders", "", RunStatus.NEW, 1.0, 0, options=options(2)), ())
    )
    assert [test.state for test in suites.get(SUITE).tests] == ["started", "started", "due"]
    assert suites.unfinished() == [SUITE]
    start(database, 3, "Returns")
    assert suites.unfinished() == []


def test_a_start_that_is_repeated_makes_no_second_run_of_a_test(database: Database) -> None:
    begun(database)
    first = start(database, 1)
    assert start(database, 1) == first
    assert start(database, 2) != first
    assert len(list_runs(database)) == 2


def test_a_suite_of_another_user_with_the_same_id_has_its_own_runs(database: Database) -> None:
    assert start(database, 1) != start(database, 1, user="006")


def test_runs_that_ask_again_are_no_runs_of_the_suite(database: Database) -> None:
    begun(database)
    second, first = start(database, 3, "Returns"), start(database, 1)
    assert start(database, 0, confirms=first) != start(database, 0, confirms=first)
    assert [run.id for run in runs_of_suite(database, SUITE)] == [first, second]


def test_a_skipped_test_is_not_due_and_a_suite_without_other_tests_is_forgotten(database: Database) -> None:
    suites = begun(database)
    suites.settle(TESTS[:2], "skipped")
    assert [test.state for test in suites.get(SUITE).tests] == ["skipped", "skipped", "due"]
    suites.settle(TESTS[2:], "skipped")
    assert suites.get(SUITE) is None
    assert database.query("SELECT * FROM suite_test") == []


def test_what_has_started_is_not_canceled(database: Database) -> None:
    suites = begun(database)
    start(database, 1)
    suites.settle(TESTS, "canceled")
    assert [test.state for test in suites.get(SUITE).tests] == ["started", "canceled", "canceled"]


def test_the_latest_suite_is_the_one_that_began_last(database: Database) -> None:
    assert Suites(database).latest() is None
    begun(database, "one", created=5.0, org_url=URL)
    begun(database, "two", created=3.0)
    assert Suites(database).latest() == ("one", 5.0)
    assert Suites(database).latest(org_url="") == ("two", 3.0)
    assert Suites(database).unfinished() == ["two", "one"]


@pytest.mark.sqlite
def test_a_database_of_the_first_layout_keeps_its_runs_which_have_no_place(folder: Path) -> None:
    first = (files("evalmeta.store") / "migrations" / "0001.sql").read_text(encoding="utf-8")
    open_database(store_in(folder)).close()
    (folder / "org.sqlite3").unlink()
    import sqlite3

    from evalmeta.store.sqlite import SqliteDatabase

    with SqliteDatabase(sqlite3.connect(folder / "org.sqlite3", isolation_level=None), folder / "org.sqlite3") as old:
        migrate(old, [first])
        written = orjson.dumps(write_options(options(0)))
        for number, suite in enumerate(("", "", SUITE, SUITE)):
            old.execute(
                "INSERT INTO run (id, definition, kind, content, subject_name, status, options, total, user_id, suite,"
                " branch, confirms, created_at)"
                " VALUES (?, 'Orders', 'xml', x'', 'Desk', 'NEW', ?, 1, '005', ?, '', '', ?)",
                (f"4KB00000000000{number}AAA", written, suite, number),
            )
    with open_database(store_in(folder)) as database:
        assert [run.suite for run in list_runs(database)] == ["", "", SUITE, SUITE]
        assert [run.id for run in runs_of_suite(database, SUITE)] == ["4KB000000000002AAA", "4KB000000000003AAA"]
        assert Suites(database).unfinished() == []
        start(database, 1)
        assert len(list_runs(database)) == 5
