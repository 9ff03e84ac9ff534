"""A schema of Postgres as the store of a team: statements, transactions, the results of runs, and migrations.

It works behind PgBouncer in transaction mode: nothing outlives a transaction, and `search_path` belongs to the role.
"""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import psycopg

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError
from evalmeta.store.postgres_connections import pool_of, store_errors
from evalmeta.store.sql import plain, postgres_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from evalmeta.model.store import Store, StoreUrl
    from evalmeta.store.postgres_connections import Link
    from evalmeta.store.sql import Bound, Row, Value

# The first part of the keys of evalmeta's advisory locks; the second is made of the name of the schema.
_LOCKS: Final = 0x45564D54
_ALONE: Final = f"pg_advisory_xact_lock({_LOCKS}, hashtext(current_schema()))"
# Few rows are inserted faster than copied; not more, because all of them are in memory.
_FEW_ROWS: Final = 5
_SAVEPOINT: Final = "SAVEPOINT copied"
_UNDO: Final = "ROLLBACK TO copied"
_CREATE: Final = "CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS"
_INSERT: Final = "INSERT INTO"
_SELECT: Final = "SELECT"
# The columns that a sequence counts.
_COUNTED: Final = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attidentity <> ''"
_NUMBERS: Final = itertools.count()
_LAYOUT: Final = """
    SELECT current_schema(), to_regclass(quote_ident(current_schema()) || '.evalmeta_layout') IS NOT NULL
"""
_SIZE: Final = """
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""


class PostgresDatabase:
    """One connection to a schema, as `Database` describes it; it is open while it is used.

    A statement outside a transaction that finds its connection lost is executed on a new one; a write is always in a
    transaction, which is then not begun twice.
    """

    __slots__ = ("_in_transaction", "_link", "_pool", "_seconds", "name", "store")

    def __init__(self, store: Store, url: StoreUrl) -> None:
        self.store = store
        self.name = url.name
        self._pool = pool_of(url)
        self._link: Link = self._pool.take()
        self._in_transaction = False
        self._seconds = limits.STORE_BUSY_SECONDS

    @property
    def folder(self) -> Path:
        """Return the state folder, with the files that belong to this machine."""
        return self.store.folder

    @property
    def exists(self) -> bool:
        """Return that opening it makes no new database."""
        return True

    @property
    def row_lock(self) -> str:
        """Return what lets nobody change the rows of a query before the end of the transaction."""
        return " FOR SHARE"

    def now(self) -> float:
        """Return the time of the server's clock."""
        return time.time() + self._link.ahead

    def query(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return all rows of a query."""
        with self._errors():
            return self._executed(sql, values, binary=True).fetchall()

    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[Row]:
        """Yield the rows of a query one by one; other statements may be executed meanwhile.

        Outside a transaction they have a connection of their own, so that the caller can begin and end one.
        """
        text, bound = postgres_sql(sql, values)
        taken = nullcontext(self._link) if self._in_transaction else self._reading()
        with self._errors(), taken as link, link.connection.cursor(f"rows_{next(_NUMBERS)}") as cursor:
            cursor.itersize = limits.STORE_ROWS_OF_A_READ
            yield from cursor.execute(text, bound, binary=True)

    @contextmanager
    def _reading(self) -> Iterator[Link]:
        """Take another connection for the block, with a transaction that changes nothing."""
        with self._pool.taken() as link:
            try:
                link.connection.execute("BEGIN READ ONLY")
                yield link
            finally:
                with suppress(psycopg.Error):
                    link.connection.rollback()

    def execute(self, sql: str, values: Sequence[Value] = ()) -> int:
        """Execute a statement, in a transaction of its own outside one, and return the number of changed rows."""
        if not self._in_transaction:
            with self.transaction():
                return self.execute(sql, values)
        with self._errors():
            return self._executed(sql, values).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Execute a statement for each row of values."""
        if not self._in_transaction:
            with self.transaction():
                return self.execute_many(sql, rows)
        with self._errors():
            for row in rows:
                self._executed(sql, row)
        return None

    def insert_new(self, table: str, columns: str, rows: Callable[[], Iterable[Sequence[Value]]], *, count: int) -> int:
        """Insert many rows but those whose keys are there already; return how many are new. Use it in a transaction."""
        with self._errors():
            if 0 < count <= _FEW_ROWS:
                places = ", ".join([f"({', '.join('?' * (columns.count(',') + 1))})"] * count)
                sql = f"{_INSERT} {table} ({columns}) VALUES {places} ON CONFLICT DO NOTHING"
                return self._executed(sql, list(itertools.chain.from_iterable(rows()))).rowcount
            # Several statements in a message: the connection may be far away, and has no pipeline for a COPY.
            connection, read = self._link.connection, f"{_SELECT} {columns} FROM {table} LIMIT 0"
            described = connection.execute(f"{read}; {_SAVEPOINT}")
            try:
                # The server's work is half of that of an INSERT; but COPY refuses all rows if the key of one is there.
                return self._copy(table, columns, described, rows())
            except psycopg.errors.UniqueViolation:
                connection.execute(f"{_UNDO}; {_CREATE} {read}")
            self._copy("incoming", columns, described, rows())
            begin = f"{_INSERT} {table} ({columns})"
            return connection.execute(
                f"{begin} SELECT * FROM incoming ON CONFLICT DO NOTHING; DROP TABLE incoming"
            ).rowcount

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
        """Insert many rows; call it inside a transaction."""
        with self._errors():
            # A table of a large store takes longer than a statement may otherwise.
            self._executed(f"SET LOCAL statement_timeout = {round(limits.STORE_LOAD_SECONDS * 1000)}")
            names = ", ".join(columns)
            self._copy(table, names, self._executed(f"{_SELECT} {names} FROM {table} LIMIT 0"), rows)
            for (column,) in self.query(_COUNTED, (table,)):
                counter = f"pg_get_serial_sequence('{table}', '{column}')"
                self._executed(f"{_SELECT} setval({counter}, coalesce(max({column}), 0) + 1, FALSE) FROM {table}")

    def _copy(self, table: str, columns: str, like: psycopg.Cursor[Row], rows: Iterable[Sequence[Value]]) -> int:
        """Insert rows of the types that a query of these columns has; return their number."""
        cursor = self._link.connection.cursor()
        with cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types([column.type_code for column in like.description or []])
            for row in rows:
                copy.write_row([*map(plain, row)])
        return cursor.rowcount

    @contextmanager
    def transaction(self, *, is_alone: bool = True) -> Iterator[None]:
        """Commit all changes in the block, or none if it raises; writers wait for each other if they are alone."""
        try:
            with self._errors():
                self._begin(is_alone=is_alone)
            self._in_transaction = True
            yield
            with self._errors():
                self._link.connection.execute("COMMIT")
        except BaseException:
            with suppress(psycopg.Error):
                self._link.connection.rollback()
            raise
        finally:
            self._in_transaction = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries in the block see the database as it is at the first; nothing may be changed."""
        with self._errors():
            self._executed_again("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._in_transaction = True
        try:
            yield
        finally:
            self._in_transaction = False
            with suppress(psycopg.Error):
                self._link.connection.rollback()

    def _begin(self, *, is_alone: bool) -> None:
        # A limit of 0 is none. All of it is one message, because a connection may be far away.
        settings = {
            "lock_timeout": max(1, round(self._seconds * 1000)),
            "statement_timeout": round(limits.STORE_STATEMENT_SECONDS * 1000),
            "idle_in_transaction_session_timeout": round(limits.STORE_STATEMENT_SECONDS * 1000),
        }
        steps = [*(f"set_config('{name}', '{value}', TRUE)" for name, value in settings.items())]
        self._executed_again(f"BEGIN; SELECT {', '.join([*steps, *([_ALONE] if is_alone else [])])}")

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Raise StoreLocked in the block if others have locked what a transaction needs for `seconds`."""
        usual, self._seconds = self._seconds, seconds
        try:
            yield
        finally:
            self._seconds = usual

    @contextmanager
    def references_unchecked(self) -> Iterator[None]:
        """Do nothing: results, which are deleted after their run, do not refer to it here."""
        yield

    def size(self) -> int:
        """Return the size of the schema's tables in bytes."""
        [(size,)] = self.query(_SIZE)
        return int(size)

    def shrink(self) -> None:
        """Do nothing: the server's own vacuum gives room back."""

    def close(self) -> None:
        """Give the connection back."""
        if not self._link.is_given_back:
            self._pool.give_back(self._link)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _executed(self, sql: str, values: Sequence[Value] = (), *, binary: bool = False) -> psycopg.Cursor[Row]:
        """Execute a statement; bytes of rows that are sent as binary have half the size."""
        text, bound = postgres_sql(sql, values)
        if self._in_transaction:
            return self._link.connection.execute(text, bound, binary=binary)
        return self._executed_again(text, bound, binary=binary)

    def _executed_again(self, text: str, bound: Bound | None = None, *, binary: bool = False) -> psycopg.Cursor[Row]:
        """Execute what can be repeated: a connection that waited may be lost, because the server started again."""
        if not self._link.connection.closed:
            try:
                return self._link.connection.execute(text, bound, binary=binary)
            except psycopg.OperationalError:
                if not self._link.connection.closed:
                    raise
        self._link = self._pool.replaced(self._link)
        return self._link.connection.execute(text, bound, binary=binary)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise psycopg's errors as StoreErrors."""
        with store_errors(self.name):
            yield


def layout_of(store: Store, url: StoreUrl) -> int:
    """Return the number of the layout of a schema as it is; 0 if it has no tables."""
    with PostgresDatabase(store, url) as database:
        return _layout(database)


@cache
def _migrations() -> tuple[str, ...]:
    folder = files("evalmeta.store") / "migrations" / "postgres"
    scripts = sorted((path for path in folder.iterdir() if path.name.endswith(".sql")), key=lambda path: path.name)
    return tuple(script.read_text(encoding="utf-8") for script in scripts)


def open_postgres(store: Store, url: StoreUrl) -> PostgresDatabase:
    """Open a schema, and create its tables if it has none.

    Raise StoreUnreachable if the server does not answer, and StoreError if the schema cannot be used otherwise.
    """
    database = PostgresDatabase(store, url)
    try:
        migrate(database, _migrations())
    except BaseException:
        database.close()
        raise
    return database


def migrate(database: PostgresDatabase, migrations: Sequence[str]) -> None:
    """Apply the migrations that a schema does not have yet, in order; it records how many it has."""
    if _layout(database) == len(migrations):
        return
    with database.transaction():
        # Another process may have been first.
        known = _layout(database)
        if known > len(migrations):
            raise StoreError(
                f"{database.name} belongs to a newer evalmeta (layout {known}, this one supports {len(migrations)})",
                actions=["Upgrade evalmeta."],
            )
        for script in migrations[known:]:
            for statement in script.split(";\n"):
                database.execute(statement)
        if known < len(migrations):
            database.execute("UPDATE evalmeta_layout SET version = ?", (len(migrations),))


def _layout(database: PostgresDatabase) -> int:
    [(schema, is_there)] = database.query(_LAYOUT)
    if schema is None:
        raise StoreError(
            f"{database.name}: the role of this store has no schema",
            actions=[
                "Make one for each team: CREATE SCHEMA team AUTHORIZATION role; ALTER ROLE role SET search_path = team"
            ],
        )
    if not is_there:
        return 0
    rows = database.query("SELECT version FROM evalmeta_layout")
    if len(rows) != 1:
        raise StoreCorrupt(f"{database.name} is not a valid database: evalmeta_layout has {len(rows)} rows")
    return int(rows[0][0])
