"""Copies of whole stores, also from one kind of database to the other, verified before they are committed.

A copy is one transaction of the target: if it is interrupted, the target is as empty as before. Rows are compared by a
checksum that does not depend on their order, which every kind of database has.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from contextlib import closing
from functools import cache
from graphlib import TopologicalSorter
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import StoreError, Suggestion, UsageError
from evalmeta.model.login import ADMIN
from evalmeta.store.sqlite import SqliteDatabase, read_migrations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evalmeta.store.database import Database
    from evalmeta.store.sql import Row, Value

_DIGEST_BYTES: Final = 16
_MODULUS: Final = 1 << 8 * _DIGEST_BYTES
# Every store is created with these rows.
_CREATED: Final = {"org_user": f"id = '{ADMIN.id}'", "counter": "prefix = '005' AND last = 1"}


class Table(NamedTuple):
    """A table of the layout that all kinds of databases have; the columns have SQLite's types.

    The key of a table without a rowid has the order of its rows in SQLite.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]
    has_rowid: bool


class TableContent(NamedTuple):
    """What a table has: the number of its rows, and their checksum."""

    name: str
    rows: int
    checksum: str


@cache
def tables() -> tuple[Table, ...]:
    """Return the tables; those that others refer to come first."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.create_function("sha256", 1, lambda content: hashlib.sha256(content).digest())
        for script in read_migrations():
            connection.executescript(script)
        names = sorted(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        parents = {name: {row[2] for row in connection.execute(f"PRAGMA foreign_key_list({name})")} for name in names}
        return tuple(_table(connection, name) for name in TopologicalSorter(parents).static_order())


def _table(connection: sqlite3.Connection, name: str) -> Table:
    rows = connection.execute(f"SELECT name, type, pk FROM pragma_table_info('{name}') ORDER BY cid").fetchall()
    [(has_rowid,)] = connection.execute(f"SELECT NOT wr FROM pragma_table_list('{name}')")
    key = sorted((place, column) for column, _, place in rows if place)
    columns, types, _ = zip(*rows, strict=True)
    return Table(name, columns, types, tuple(column for _, column in key), bool(has_rowid))


def copy_store(
    source: Database, target: Database, *, on_table: Callable[[TableContent], None] = lambda _: None
) -> bool:
    """Copy all rows into an empty store and return True; False if the store has exactly these rows already.

    `on_table` is called with what each table has. Raise UsageError if the target has other rows or runs of the source
    are in progress, and StoreError if the target does not have what was written: nothing is copied then.
    """
    with source.snapshot(), target.snapshot():
        _refuse_busy(source)
        if used := _used_tables(target):
            _compare(source, target, used, on_table)
            return False
    with source.snapshot(), target.transaction():
        if used := _used_tables(target):
            raise UsageError(f"another program has changed {target.name} meanwhile: {', '.join(used)}")
        for name in _CREATED:
            target.execute(f"DELETE FROM {name}")
        written = [_copy_table(source, target, table) for table in tables()]
        for table, content in zip(tables(), written, strict=True):
            if _content(target, table) != content:
                raise StoreError(f"{target.name} does not have what was written to {table.name}; nothing was copied")
            on_table(content)
    return True


def _refuse_busy(source: Database) -> None:
    sql = "SELECT id FROM run WHERE status IN ('NEW', 'IN_PROGRESS') AND lease_until > ? ORDER BY id"
    for (run_id,) in source.query(sql, (source.now(),)):
        raise UsageError(
            f"run {run_id} in {source.name} is in progress",
            actions=[Suggestion("Wait until it is done", "test", "resume", "--job-id", run_id)],
        )


def _used_tables(target: Database) -> list[str]:
    """Return the tables with rows that a new store does not have."""
    names = [table.name for table in tables()]
    created = {name: _CREATED.get(name, "1 = 0") for name in names}
    return [name for name in names if target.query(f"SELECT 1 FROM {name} WHERE NOT ({created[name]}) LIMIT 1")]


def _compare(source: Database, target: Database, used: list[str], on_table: Callable[[TableContent], None]) -> None:
    for table in tables():
        content = _content(source, table)
        if content != _content(target, table):
            raise UsageError(
                f"{target.name} is not empty, and differs from {source.name} in the table {table.name}; "
                f"it has rows in: {', '.join(used)}",
                actions=["Copy into an empty store: another folder, or another schema of the database."],
            )
        on_table(content)


def _copy_table(source: Database, target: Database, table: Table) -> TableContent:
    checksum = _Checksum()
    try:
        target.load(table.name, table.columns, checksum.counted(_rows(source, table)))
    except StoreError as error:
        raise type(error)(f"{error} (table {table.name}); nothing was copied", actions=error.actions) from None
    return checksum.content(table)


def _content(database: Database, table: Table) -> TableContent:
    checksum = _Checksum()
    for _ in checksum.counted(_rows(database, table)):
        pass
    return checksum.content(table)


def _rows(database: Database, table: Table) -> Iterator[Row]:
    """Yield the rows with values of the layout's types, in the order in which they were added, if that is known."""
    order = "rowid" if table.has_rowid and isinstance(database, SqliteDatabase) else ", ".join(table.key)
    sql = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {order}"
    for row in database.rows(sql):
        yield tuple(map(plain_value, table.types, row))


class _Checksum:
    """The number of rows, and the sum of their hashes."""

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0

    def counted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Pass rows on."""
        for row in rows:
            digest = blake2b(b"".join(map(_bytes_of, row)), digest_size=_DIGEST_BYTES).digest()
            self._sum += int.from_bytes(digest, "big")
            self._rows += 1
            yield row

    def content(self, table: Table) -> TableContent:
        """Return what was counted."""
        return TableContent(table.name, self._rows, f"{self._sum % _MODULUS:0{2 * _DIGEST_BYTES}x}")


def _bytes_of(value: Value) -> bytes:
    """Return the bytes of a value after its type and length, so that other values have others."""
    match value:
        case None:
            return b"n"
        case int():
            return b"i%d;" % value
        case float():
            return b"f" + struct.pack(">d", value)
        case str():
            encoded = value.encode()
            return b"s%d:%b" % (len(encoded), encoded)
        case _:
            return b"b%d:%b" % (len(value), value)


def plain_value(kind: str, value: object) -> Value:
    """Return a value of the type that its column has.

    Neither database keeps types as they are declared: SQLite keeps text in a column of bytes, Postgres true for 1.
    """
    match kind, value:
        case _, None:
            return None
        case "INTEGER", int():
            return int(value)
        case "REAL", int() | float():
            return float(value)
        case "TEXT", str() | bytes():
            return value if isinstance(value, str) else value.decode()
        case "BLOB", str() | bytes() | memoryview():
            return value.encode() if isinstance(value, str) else bytes(value)
        case _:
            raise StoreError(f"a value in a column of the type {kind} is a {type(value).__name__}")
