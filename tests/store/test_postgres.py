from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError, StoreLocked, StoreUnreachable
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.store import Store, read_store_url
from evalmeta.store.copying import tables
from evalmeta.store.database import dry_run, open_database
from evalmeta.store.postgres import PostgresDatabase
from evalmeta.store.runs import Lease, RunJournal, Runs
from postgres_servers import DISCONNECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.store.database import Database
    from postgres_servers import PostgresServers, PostgresStore

pytestmark = [pytest.mark.postgres, pytest.mark.sqlite]

COLUMNS = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"


@pytest.fixture
def store(store_url: str, tmp_path: Path) -> Store:
    return Store(tmp_path / "state", read_store_url(store_url))


@pytest.fixture
def database(store: Store) -> Iterator[Database]:
    with open_database(store) as opened:
        yield opened


def started(database: Database, worker: str = "w") -> str:
    runs = Runs(database)
    run_id = runs.start(
        EVALUATION_DEFINITION, Evaluation("Orders", "Desk", ()), RunContent(b"x"), RunOptions(), total=4, now=1
    )
    runs.claim(run_id, worker, taken_from=Lease(None, None), until=2)
    return run_id


def results(count: int) -> list[CaseResult]:
    return [CaseResult(number, 1, "?", Verdict.PASS, 1.0, 2.0) for number in range(1, count + 1)]


def put(database: Database, prefix: str) -> None:
    database.execute("INSERT INTO counter VALUES (?, 1)", (prefix,))


def prefixes(database: Database) -> list[str]:
    return [prefix for (prefix,) in database.query("SELECT prefix FROM counter WHERE prefix <> '005' ORDER BY prefix")]


def test_a_schema_has_the_tables_and_columns_of_sqlite(database: Database) -> None:
    columns = {(table, column) for table, column in database.query(COLUMNS)}
    assert {(table.name, column) for table in tables() for column in table.columns} <= columns


def test_the_state_folder_is_not_needed(database: Database, store: Store) -> None:
    put(database, "a")
    assert not store.folder.exists()


def test_a_process_that_was_forked_leaves_the_connections_of_the_other_one_alone(
    database: Database, store: Store
) -> None:
    open_database(store).close()
    if not (child := os.fork()):
        with open_database(store) as own:
            put(own, "child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with open_database(store) as again:
        assert prefixes(again) == prefixes(database) == ["child"]


@pytest.mark.parametrize("number", [3, 300])
def test_results_are_there_for_all_once_they_are_appended(database: Database, store: Store, number: int) -> None:
    run_id = started(database)
    RunJournal(database, run_id, "w").append(results(number))
    with open_database(store) as other:
        assert Runs(other).cases(run_id) == tuple(results(number))
        RunJournal(other, run_id, "w").append(results(number + 1))
    assert len(Runs(database).cases(run_id)) == number + 1


def test_a_transaction_commits_all_or_nothing(database: Database, store: Store) -> None:
    with suppress(ZeroDivisionError), database.transaction():
        put(database, "a")
        _ = 1 / 0
    with database.transaction(), dry_run(database):
        put(database, "b")
    with database.transaction():
        put(database, "c")
        with open_database(store) as other:
            assert prefixes(other) == []
    assert prefixes(database) == ["c"]


def test_writers_wait_for_each_other_and_results_of_a_run_for_nobody(database: Database, store: Store) -> None:
    run_id = started(database)
    with open_database(store) as other, other.transaction():
        with database.waiting(0), pytest.raises(StoreLocked, match=r"/evalmeta is locked by another program"):
            put(database, "a")
        RunJournal(database, run_id, "w").append(results(1))
    put(database, "b")
    assert prefixes(database)[-1] == "b"


def test_a_run_is_not_taken_over_while_results_are_appended(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, insert = started(database), PostgresDatabase.insert_new

    def claim_and_insert(own: PostgresDatabase, *values: object, **named: int) -> int:
        with open_database(store) as other, other.waiting(0), pytest.raises(StoreLocked):
            Runs(other).claim(run_id, "v", taken_from=Lease("w", 2), until=9)
        return insert(own, *values, **named)

    monkeypatch.setattr(PostgresDatabase, "insert_new", claim_and_insert)
    RunJournal(database, run_id, "w").append(results(1))
    assert Runs(database).claim(run_id, "v", taken_from=Lease("w", 2), until=9)
    with pytest.raises(StoreError, match="taken over by another worker"):
        RunJournal(database, run_id, "w").append(results(1))


@pytest.mark.parametrize("number", [1, 300])
def test_results_that_another_worker_is_appending_are_waited_for(database: Database, store: Store, number: int) -> None:
    run_id, columns = started(database), "run_id, iteration, number, verdict, body"
    journal = RunJournal(database, run_id, "w")
    with open_database(store) as other, other.transaction(is_alone=False):
        other.insert_new("case_result", columns, lambda: [(run_id, 1, number, "ERROR", b"[]")], count=1)
        with pytest.raises(StoreLocked):
            journal.append(results(number))
        assert journal.finished() == frozenset()
    journal.append(results(number))
    assert len(journal.finished()) == number
    assert Runs(database).count(run_id)[Verdict.ERROR] == 1


def test_a_run_is_not_taken_over_while_results_are_appended_again(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, copy = started(database), PostgresDatabase._copy  # noqa: SLF001 - the moment between both attempts
    RunJournal(database, run_id, "w").append(results(300))
    tables_of_copies = []

    def claim_and_copy(own: PostgresDatabase, table: str, *values: object) -> int:
        tables_of_copies.append(table)
        with open_database(store) as other, other.waiting(0), pytest.raises(StoreLocked):
            Runs(other).claim(run_id, "v", taken_from=Lease("w", 2), until=9)
        return copy(own, table, *values)

    monkeypatch.setattr(PostgresDatabase, "_copy", claim_and_copy)
    RunJournal(database, run_id, "w").append(results(301))
    assert tables_of_copies == ["case_result", "incoming"]
    assert len(Runs(database).cases(run_id)) == 301


def test_many_processes_may_open_a_new_schema_at_once(store: Store) -> None:
    script = (
        "from pathlib import Path; from evalmeta.package.project import find_project; "
        "from evalmeta.store.database import open_database; "
        "open_database(find_project(Path.cwd(), or_folder=True).store).close()"
    )
    store.folder.mkdir()
    environment = {"EVALMETA_STORE": store.url.secret, "PATH": ""}
    options = {"cwd": store.folder, "env": environment, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", script], **options) for _ in range(4)]
    assert [process.communicate()[1] for process in processes] == [""] * 4
    migrations = list((files("evalmeta.store") / "migrations" / "postgres").iterdir())
    with open_database(store) as database:
        assert database.query("SELECT version FROM evalmeta_layout") == [(len(migrations),)]


def test_rows_are_read_one_by_one_while_others_are_written(database: Database) -> None:
    run_id = started(database)
    RunJournal(database, run_id, "w").append(results(3_000))
    read = database.rows("SELECT number FROM case_result ORDER BY number")
    assert next(read) == (1,)
    put(database, "a")
    assert sum(1 for _ in read) == 2_999
    with database.snapshot():
        read = database.rows("SELECT number FROM case_result ORDER BY number")
        assert next(read) == (1,)
        assert database.query("SELECT count(*) FROM case_result") == [(3_000,)]
        assert sum(1 for _ in read) == 2_999


def test_a_connection_that_the_server_ended_is_made_again(
    database: Database, postgres_store: PostgresStore, postgres_servers: PostgresServers
) -> None:
    def end() -> None:
        with postgres_servers.postgres.connect() as admin:
            admin.execute(DISCONNECT, [postgres_store.name])

    put(database, "a")
    end()
    assert prefixes(database) == ["a"]
    end()
    put(database, "b")
    with pytest.raises(StoreUnreachable, match="cannot be reached"), database.transaction():  # noqa: PT012
        end()
        put(database, "c")
    assert prefixes(database) == ["a", "b"]


def test_a_server_that_is_gone_is_reported_without_the_password(tmp_path: Path) -> None:
    store = Store(tmp_path, read_store_url("postgresql://me:hunter2@127.0.0.1:9/evals"))
    with pytest.raises(StoreUnreachable, match=r"^postgresql://127.0.0.1:9/evals cannot be reached: ") as caught:
        open_database(store)
    assert "hunter2" not in str(caught.value)


def test_a_refused_login_is_reported_without_the_password(store: Store, postgres_store: PostgresStore) -> None:
    wrong = Store(store.folder, read_store_url(store.url.secret.replace(":", ":wrong", 2).replace("wrong//", "//")))
    with pytest.raises(StoreError, match=r"^postgresql://127.0.0.1:\d+/evalmeta: the login was refused") as caught:
        open_database(wrong)
    assert postgres_store.password not in str(caught.value)


def test_a_role_without_a_schema_learns_how_to_make_one(
    store: Store, postgres_store: PostgresStore, postgres_servers: PostgresServers
) -> None:
    with postgres_servers.postgres.connect() as admin:
        admin.execute(f"ALTER ROLE {postgres_store.name} SET search_path = ''")
    with pytest.raises(StoreError, match="has no schema") as caught:
        open_database(store)
    assert "CREATE SCHEMA" in str(caught.value.actions)


def test_a_schema_of_a_newer_evalmeta_asks_for_an_upgrade(database: Database, store: Store) -> None:
    database.execute("UPDATE evalmeta_layout SET version = 99")
    with pytest.raises(StoreError, match="layout 99, this one supports"):
        open_database(store)


def test_threads_share_a_bounded_number_of_connections(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.1)
    held, done = threading.Barrier(limits.MAX_STORE_CONNECTIONS), threading.Event()

    def hold() -> None:
        with open_database(store):
            held.wait(60)
            done.wait(60)

    threads = [threading.Thread(target=hold) for _ in range(limits.MAX_STORE_CONNECTIONS - 1)]
    for thread in threads:
        thread.start()
    held.wait(60)
    # One that has a connection gets another, so that nobody waits for himself.
    open_database(store).close()
    errors: list[StoreLocked] = []

    def refused() -> None:
        try:
            open_database(store).close()
        except StoreLocked as error:
            errors.append(error)

    (late := threading.Thread(target=refused)).start()
    late.join()
    done.set()
    for thread in threads:
        thread.join()
    assert "all its connections" in str(errors[0])
    put(database, "a")


def test_the_clock_is_that_of_the_server(database: Database) -> None:
    assert abs(database.now() - time.time()) < 60
    [(now,)] = database.query("SELECT extract(epoch FROM clock_timestamp())::double precision")
    assert abs(database.now() - now) < 5


def test_a_server_that_does_not_answer_is_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_REPLY_SECONDS", 0.2)
    with pytest.raises(StoreUnreachable, match=r"no answer for 0\.2 s"):
        database.query("SELECT pg_sleep(60)")
    monkeypatch.undo()
    assert prefixes(database) == []
