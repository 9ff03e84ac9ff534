from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import StoreError, UsageError
from evalmeta.store.copying import copy_store, tables
from evalmeta.store.database import open_database
from store.filled import all_rows, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.store.copying import TableContent
    from evalmeta.store.database import Database


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
