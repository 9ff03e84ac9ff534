from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError, StoreLocked
from evalmeta.store.database import Database, open_database
from evalmeta.store.sqlite import SqliteDatabase, check_integrity, migrate

pytestmark = pytest.mark.sqlite
FILE = "org.sqlite3"
EVMT = 0x45564D54
OPENER = """\
import pathlib, sys
from evalmeta.store.database import open_database
print(flush=True)
sys.stdin.readline()
open_database(pathlib.Path(sys.argv[1])).close()
"""


def put(database: Database, prefix: str) -> None:
    database.execute("INSERT INTO counter VALUES (?, 1)", (prefix,))


def prefixes(database: Database) -> list[str]:
    return [prefix for (prefix,) in database.query("SELECT prefix FROM counter WHERE prefix <> '005' ORDER BY prefix")]


def other(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / FILE, isolation_level=None)


def test_a_new_folder_is_private_and_has_a_readme(database: Database, folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert "Delete this folder" in (folder / "README").read_text()
    assert (folder / ".gitignore").read_text() == "*\n"
    assert Path(database.name) == folder / FILE


def test_only_its_owner_can_read_a_new_database(database: Database, folder: Path) -> None:
    put(database, "a")
    files = [path for path in folder.iterdir() if path.name.startswith(FILE)]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_an_existing_folder_gets_only_the_databases_files(folder: Path) -> None:
    folder.mkdir()
    open_database(folder).close()
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_committed_rows_are_there_after_reopening(database: Database, folder: Path) -> None:
    put(database, "a")
    database.close()
    with open_database(folder) as reopened:
        assert prefixes(reopened) == ["a"]


def test_every_commit_reaches_the_disk_before_it_returns(database: Database) -> None:
    full = 2
    assert database.query("PRAGMA synchronous") == [(full,)]
    assert database.query("PRAGMA journal_mode") == [("wal",)]
    assert [database.query(f"PRAGMA {name}") for name in ("fullfsync", "checkpoint_fullfsync")] == [[(1,)], [(1,)]]


def test_a_transaction_commits_all_or_nothing(database: Database) -> None:
    def fail() -> None:
        with database.transaction():
            put(database, "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.transaction():
        put(database, "b")
    assert prefixes(database) == ["b"]


def test_a_commit_that_fails_leaves_no_transaction_behind(database: Database) -> None:
    def fail() -> None:
        with database.transaction():
            database.execute("PRAGMA defer_foreign_keys = ON")
            database.execute("INSERT INTO case_result VALUES ('no such run', 1, 1, 'PASS', x'')")

    with pytest.raises(StoreError):
        fail()
    with database.transaction():
        put(database, "a")
    assert prefixes(database) == ["a"]


def test_a_database_that_another_program_locks_is_reported(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.05)
    with closing(other(folder)) as holder, open_database(folder) as waiting:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="locked by another program") as raised:
            put(waiting, "a")
        assert raised.value.actions
        assert prefixes(database) == []


def test_a_new_database_that_another_program_locks_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.05)
    folder.mkdir()
    with closing(other(folder)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLocked):
            open_database(folder)


def test_a_writer_waits_for_the_one_before(database: Database, folder: Path) -> None:
    code = (
        "import sqlite3, sys, time\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE'); print(flush=True); time.sleep(0.2)\n"
        "c.execute(\"INSERT INTO counter VALUES ('a', 1)\"); c.execute('COMMIT')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, folder / FILE], stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        put(database, "b")
    assert prefixes(database) == ["a", "b"]


def test_many_processes_may_open_a_new_database_at_once(folder: Path) -> None:
    command = [sys.executable, "-c", OPENER, str(folder)]
    openers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    for opener in openers:
        opener.stdout.readline()
    for opener in openers:
        opener.stdin.write("\n")
        opener.stdin.flush()
    assert [opener.communicate(timeout=120)[1] for opener in openers] == [""] * 5


def test_a_file_that_is_not_a_database_is_corrupt(folder: Path) -> None:
    folder.mkdir()
    (folder / FILE).write_bytes(b"not a database at all, " * 100)
    with pytest.raises(StoreCorrupt, match=r"org\.sqlite3 is not a valid database") as raised:
        open_database(folder)
    assert "Move org.sqlite3, and org.sqlite3-wal if it exists" in raised.value.actions[0]


@pytest.mark.parametrize("sql", ["CREATE TABLE theirs (a)", "PRAGMA application_id = 7"])
def test_a_database_of_another_program_is_left_alone(folder: Path, sql: str) -> None:
    folder.mkdir()
    with closing(other(folder)) as theirs:
        theirs.execute(sql)
    before = (folder / FILE).read_bytes()
    with pytest.raises(StoreCorrupt, match="belongs to another program"):
        open_database(folder)
    assert (folder / FILE).read_bytes() == before


FIRST = "CREATE TABLE book (title TEXT);\n\nINSERT INTO book VALUES ('Emma')"
SECOND = "-- Books have authors.\nALTER TABLE book ADD COLUMN author TEXT;\n\nUPDATE book SET author = 'Austen'"


def test_each_migration_is_applied_once_and_keeps_the_rows(folder: Path) -> None:
    folder.mkdir()
    with SqliteDatabase(other(folder), folder / FILE) as database:
        migrate(database, [FIRST])
        database.execute("INSERT INTO book VALUES ('Ulysses')")
        for _ in range(2):
            migrate(database, [FIRST, SECOND])
        assert database.query("SELECT * FROM book") == [("Emma", "Austen"), ("Ulysses", "Austen")]
        assert database.query("PRAGMA user_version") == [(2,)]


def test_a_migration_that_fails_changes_nothing(folder: Path) -> None:
    folder.mkdir()
    with SqliteDatabase(other(folder), folder / FILE) as database:
        migrate(database, [FIRST])
        with pytest.raises(StoreError):
            migrate(database, [FIRST, f"{SECOND};\nSELECT * FROM missing"])
        assert database.query("SELECT * FROM book") == [("Emma",)]
        assert database.query("PRAGMA user_version") == [(1,)]


def test_a_database_of_a_newer_evalmeta_asks_for_an_upgrade(database: Database, folder: Path) -> None:
    database.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="created by a newer evalmeta") as raised:
        open_database(folder)
    assert raised.value.actions == ("Upgrade evalmeta.",)


def test_a_file_instead_of_the_folder_is_reported(folder: Path) -> None:
    folder.write_text("")
    with pytest.raises(StoreError, match="cannot be opened") as raised:
        open_database(folder)
    assert "EVALMETA_HOME" in raised.value.actions[0]


def test_a_folder_instead_of_the_file_is_reported(folder: Path) -> None:
    (folder / FILE).mkdir(parents=True)
    with pytest.raises(StoreError, match=r"org\.sqlite3"):
        open_database(folder)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_truncated_database_is_reported(database: Database, folder: Path, kept: float) -> None:
    rows = ((f"N{number}", f"{number:04d}", bytes(2_000)) for number in range(100))
    database.execute_many("INSERT INTO component VALUES ('T', ?, ?, ?, 1, 1, '', '')", rows)
    database.close()
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(StoreError, match=r"org\.sqlite3"), open_database(folder) as cut:
        cut.query("SELECT sum(length(content)) FROM component")


def test_a_database_that_lost_a_table_is_corrupt(database: Database) -> None:
    database.execute("DROP TABLE counter")
    with pytest.raises(StoreCorrupt, match="no such table"):
        prefixes(database)


def test_a_read_only_database_is_reported(database: Database) -> None:
    database.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="readonly") as raised:
        put(database, "a")
    assert "writable" in raised.value.actions[0]


def test_a_database_that_takes_long_to_check_is_healthy_as_far_as_it_was_checked(
    database: Database, folder: Path
) -> None:
    rows = ((f"{row}", "x" * 900) for row in range(5_000))
    with database.transaction():
        database.execute_many("INSERT INTO rating VALUES (?, ?, 0)", rows)
    assert not check_integrity(folder, seconds=0)
    assert check_integrity(folder, seconds=600)


def test_room_that_rows_had_can_be_given_back(database: Database) -> None:
    assert database.query("PRAGMA auto_vacuum") == [(2,)]
