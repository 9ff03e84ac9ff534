from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import StoreError, UsageError
from evalmeta.model.login import ADMIN
from evalmeta.model.store import Store, read_store_url
from evalmeta.store.copying import copy_store, tables
from evalmeta.store.database import open_database
from evalmeta.store.users import Holder, Sessions, Users
from store.filled import ROWS, all_rows, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.store.copying import TableContent
    from evalmeta.store.database import Database

pytestmark = pytest.mark.sqlite  # they copy a folder's store


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Database]:
    with open_database(tmp_path / "target") as opened:
        yield opened


def test_all_tables_are_known_and_parents_come_first(database: Database) -> None:
    names = [table.name for table in tables()]
    stored = database.query("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert sorted(names) == sorted(name for (name,) in stored)
    for table in tables():
        columns = database.query(f"SELECT name FROM pragma_table_info('{table.name}')")
        assert table.columns == tuple(name for (name,) in columns)
        parents = database.query(f"SELECT \"table\" FROM pragma_foreign_key_list('{table.name}')")
        assert all(names.index(parent) < names.index(table.name) for (parent,) in parents)


def test_a_copy_has_the_same_rows_in_all_tables_in_the_same_order(database: Database, target: Database) -> None:
    fill(database)
    said: list[TableContent] = []
    assert copy_store(database, target, on_table=said.append)
    assert all_rows(target) == all_rows(database)
    assert all(all_rows(target).values())
    assert {(content.name, content.rows) for content in said} == {
        (name, len(stored)) for name, stored in all_rows(database).items()
    }
    assert len({content.checksum for content in said}) == len(said)


def test_a_new_store_is_copied_with_its_first_user(database: Database, target: Database) -> None:
    database.execute("UPDATE counter SET last = 7")
    copy_store(database, target)
    assert all_rows(target) == all_rows(database)


def test_a_copy_that_is_repeated_finds_the_same_all_rows(database: Database, target: Database) -> None:
    fill(database)
    first: list[TableContent] = []
    again: list[TableContent] = []
    assert copy_store(database, target, on_table=first.append)
    assert not copy_store(database, target, on_table=again.append)
    assert again == first


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE case_result SET body = x'00' WHERE number = 1000",
        "UPDATE run SET error = NULL WHERE error = ''",
        "DELETE FROM rating WHERE body = ''",
        "UPDATE org_user SET name = 'Other' WHERE id = '005000000000001AAA'",
    ],
)
def test_a_store_with_other_rows_is_refused_and_stays(database: Database, target: Database, change: str) -> None:
    fill(database)
    copy_store(database, target)
    assert target.execute(change) == 1
    before = all_rows(target)
    with pytest.raises(UsageError, match="is not empty, and differs"):
        copy_store(database, target)
    assert all_rows(target) == before


def test_a_copy_that_fails_leaves_an_empty_store(
    database: Database, target: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database)
    new = all_rows(target)
    load = type(target).load

    def fail(self: Database, table: str, *values: object) -> None:
        if table == "case_result":
            raise StoreError("the disk is full")
        load(self, table, *values)

    monkeypatch.setattr(type(target), "load", fail)
    with pytest.raises(StoreError, match="full"):
        copy_store(database, target)
    assert all_rows(target) == new
    monkeypatch.undo()
    assert copy_store(database, target)


def test_what_is_not_stored_as_it_was_written_is_not_committed(database: Database, target: Database) -> None:
    fill(database)
    new = all_rows(target)
    target.execute("CREATE TRIGGER odd AFTER INSERT ON rating BEGIN UPDATE rating SET body = 'other'; END")
    with pytest.raises(StoreError, match="does not have what was written to rating"):
        copy_store(database, target)
    assert all_rows(target) == new


def test_a_store_with_a_run_in_progress_is_not_copied(database: Database, target: Database) -> None:
    fill(database)
    database.execute("UPDATE run SET status = 'IN_PROGRESS', lease_until = 9e9 WHERE total = 7")
    with pytest.raises(UsageError, match="is in progress"):
        copy_store(database, target)


@pytest.fixture
def shared(tmp_path: Path, store_url: str) -> Iterator[Database]:
    with open_database(Store(tmp_path / "shared", read_store_url(store_url))) as opened:
        yield opened


def test_all_tables_have_the_same_columns_in_postgres(shared: Database) -> None:
    sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
    others = {"listed_run", "run_use", "evalmeta_layout", "searched_run", "searched_text"}
    stored = {(table, column) for table, column in shared.query(sql) if table not in others}
    assert stored == {(table.name, column) for table in tables() for column in table.columns}


def test_a_copy_to_postgres_and_back_is_identical(database: Database, shared: Database, target: Database) -> None:
    fill(database)
    there: list[TableContent] = []
    back: list[TableContent] = []
    assert copy_store(database, shared, on_table=there.append)
    assert copy_store(shared, target, on_table=back.append)
    assert there == back
    for name, stored in all_rows(database).items():
        assert sorted(map(repr, stored)) == sorted(map(repr, all_rows(target)[name])), name
    assert not copy_store(shared, database)
    assert not copy_store(target, shared)


def test_a_copy_to_postgres_that_fails_leaves_an_empty_store(
    database: Database, shared: Database, target: Database
) -> None:
    fill(database)
    database.execute("UPDATE rating SET body = 'a' || char(0) WHERE body = ''")
    with pytest.raises(StoreError, match="rating"):
        copy_store(database, shared)
    assert copy_store(target, shared)


def test_new_rows_of_a_copy_have_numbers_of_their_own(database: Database, shared: Database) -> None:
    fill(database)
    copy_store(database, shared)
    sql = "INSERT INTO receipt (project, org_url, kind, job_id, kept_at) VALUES ('', '', '', '', 1) RETURNING number"
    with shared.transaction():
        assert shared.query(sql) == [(1000 + ROWS,)]


def test_tokens_and_sessions_are_valid_only_in_the_store_where_they_were_made(
    database: Database, shared: Database, target: Database
) -> None:
    token = Users(database).add_token(ADMIN, org_id="00D", now=10, expires=20)
    session = Sessions(database).add(Holder(ADMIN.id), now=10)
    copy_store(database, shared)
    copy_store(shared, target)
    for store, is_valid in ((database, True), (shared, False), (target, False)):
        assert Users(store).user_of(token, now=11) == (ADMIN if is_valid else None)
        assert [listed.is_void for listed in Users(store).list_tokens()] == [not is_valid]
        assert Sessions(store).user_of(session, now=11) == (ADMIN if is_valid else None)


def test_a_token_of_a_shared_store_is_valid_on_every_machine(
    tmp_path: Path, store_url: str, shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = Users(shared).add_token(ADMIN, org_id="00D", now=10, expires=20)
    session = Sessions(shared).add(Holder(ADMIN.id), now=10)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another-user"))
    with open_database(Store(tmp_path / "another-machine", read_store_url(store_url))) as there:
        assert Users(there).user_of(token, now=11) == ADMIN
        assert Sessions(there).user_of(session, now=11) == ADMIN


# Copies a store, and stops in the middle of the results.
STALLED = """
import sys, time
from pathlib import Path
from evalmeta.model.store import Store, read_store_url
from evalmeta.store.copying import copy_store
from evalmeta.store.database import open_database

class Stalling:
    def __init__(self, database):
        self._database = database
    def __getattr__(self, name):
        return getattr(self._database, name)
    def rows(self, sql):
        for number, row in enumerate(self._database.rows(sql)):
            if number == 3 and "FROM case_result" in sql:
                print("stalled", flush=True)
                time.sleep(1000)
            yield row

folder, target, url = sys.argv[1:]
store = Store(Path(target), read_store_url(url) if url else None)
with open_database(Path(folder)) as source, open_database(store) as database:
    copy_store(Stalling(source), database)
"""


def killed_copy(folder: Path, target: Path, url: str = "") -> None:
    """Kill a process in the middle of a copy."""
    with subprocess.Popen(
        [sys.executable, "-c", STALLED, str(folder), str(target), url], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "stalled\n"
        process.kill()


def test_a_copy_that_is_killed_leaves_an_empty_store(database: Database, folder: Path, tmp_path: Path) -> None:
    fill(database)
    killed_copy(folder, tmp_path / "target")
    with open_database(tmp_path / "target") as target:
        assert {name for name, stored in all_rows(target).items() if stored} == {"org_user", "counter"}
        assert copy_store(database, target)


def test_a_copy_to_postgres_that_is_killed_leaves_an_empty_store(
    database: Database, folder: Path, tmp_path: Path, shared: Database, store_url: str
) -> None:
    fill(database)
    killed_copy(folder, tmp_path / "target", store_url)
    assert shared.query("SELECT count(*) FROM rating") == [(0,)]
    assert copy_store(database, shared)
