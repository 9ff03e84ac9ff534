"""The database of a project, whatever its kind: what its users may do, opening, and record ids."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.errors import StoreError
from evalmeta.model.store import Store, StoreUrl
from evalmeta.store.sqlite import layout_in, open_sqlite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Self

    from evalmeta.store.sql import Row, Value

# Tables that others refer to come last.
_DELETIONS: Final = (
    "DELETE FROM case_result",
    "DELETE FROM mark WHERE org_url = ''",
    "DELETE FROM run_digest WHERE org_url = ''",
    "DELETE FROM run",
    """DELETE FROM content
       WHERE sha256 NOT IN (SELECT content_sha256 FROM remote_run WHERE content_sha256 IS NOT NULL)""",
    "DELETE FROM suite WHERE org_url = ''",
    "DELETE FROM job",
    "DELETE FROM component",
    "DELETE FROM agent",
)
_CHECKSUM_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
# Further characters of an id only check the first 15.
SHORT_ID_CHARS: Final = 15
_ID_CHUNK: Final = 5


class Database(Protocol):
    """One connection; every statement and transaction reports trouble as a StoreError.

    Use it in a `with` statement: leaving it closes the connection. All SQL is understood by SQLite and by Postgres.
    """

    @property
    def store(self) -> Store:
        """Return where the database is."""

    @property
    def folder(self) -> Path:
        """Return the state folder, with the files that belong to this machine."""

    @property
    def name(self) -> str:
        """Return how messages name the database."""

    def now(self) -> float:
        """Return the time of the clock that all users of the database share, in seconds since the epoch."""

    @property
    def exists(self) -> bool:
        """Return whether it is still there: opening it again would make a new one otherwise."""

    def query(self, sql: str, values: Sequence[Value] = (), /) -> list[Row]:
        """Return all rows of a query."""

    def rows(self, sql: str, values: Sequence[Value] = (), /) -> Iterator[Row]:
        """Yield the rows of a query one by one, as they were when the first was read."""

    def execute(self, sql: str, values: Sequence[Value] = (), /) -> int:
        """Execute a statement, and return the number of changed rows."""

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]], /) -> None:
        """Execute a statement for each row of values."""

    def insert_new(
        self, table: str, columns: str, rows: Callable[[], Iterable[Sequence[Value]]], /, *, count: int
    ) -> int:
        """Insert `count` rows but those whose keys are there already; return how many are new.

        `rows` is called again if some of them are there. Use it in a transaction.
        """

    @property
    def row_lock(self) -> str:
        """Return what follows a query whose rows nobody shall change before the end of the transaction."""

    def transaction(self, *, is_alone: bool = True) -> AbstractContextManager[None]:
        """Commit all changes in the block, or none if it raises.

        Writers wait for each other, but a block that is not alone only for those that change the same rows, if the
        database can tell.
        """

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all queries in the block see the database as it is at the first; nothing may be changed."""

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]], /) -> None:
        """Insert many rows; call it inside a transaction."""

    def waiting(self, seconds: float, /) -> AbstractContextManager[None]:
        """Raise StoreLocked in the block if another program has locked the database for `seconds`."""

    def references_unchecked(self) -> AbstractContextManager[None]:
        """Let rows in the block be deleted before those that refer to them; use it outside a transaction."""

    def size(self) -> int:
        """Return the size in bytes."""

    def shrink(self) -> None:
        """Give room back that is free."""

    def close(self) -> None:
        """Close the connection."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


def open_database(place: Store | Path) -> Database:
    """Open the database of a store, or that in a state folder; create what does not exist.

    Commits are on disk before they return. Raise StoreLocked if another program locks the database, StoreCorrupt if it
    is not one of evalmeta, and StoreError if it cannot be used otherwise.
    """
    if not isinstance(place, Store):
        return open_sqlite(place)
    return open_sqlite(place.folder) if place.url is None else _open_postgres(place, place.url)


def layout_of(store: Store) -> int:
    """Return the number of the layout that a store has now; 0 if it does not exist yet."""
    if store.url is None:
        return layout_in(store.folder)
    from evalmeta.store.postgres import layout_of as layout_of_schema

    return layout_of_schema(store, store.url)


def _open_postgres(store: Store, url: StoreUrl) -> Database:
    try:
        from evalmeta.store.postgres import open_postgres
    except ImportError:
        raise StoreError(
            f"{url} needs psycopg, which is not installed", actions=["Run: pip install 'evalmeta[postgres]'"]
        ) from None
    return open_postgres(store, url)


@contextmanager
def dry_run(database: Database) -> Iterator[None]:
    """Undo all changes in the block at its end; use it inside a transaction."""
    database.execute("SAVEPOINT dry_run")
    try:
        yield
    finally:
        database.execute("ROLLBACK TO dry_run")
        database.execute("RELEASE dry_run")


def next_ids(database: Database, prefix: str, count: int = 1) -> list[str]:
    """Return new record ids with a prefix; call it inside the transaction that uses them."""
    sql = "INSERT INTO counter VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET last = counter.last + ? RETURNING last"
    [(last,)] = database.query(sql, (prefix, count, count))
    return [with_checksum(f"{prefix}{number:012d}") for number in range(last - count + 1, last + 1)]


def full_id(record_id: str) -> str:
    """Return a record id of 15 characters with all 18; any other text is returned unchanged."""
    return with_checksum(record_id) if len(record_id) == SHORT_ID_CHARS else record_id


def with_checksum(id15: str) -> str:
    """Return an id of 15 characters with the three that encode which of them are capitals."""
    chunks = (id15[start : start + _ID_CHUNK] for start in range(0, len(id15), _ID_CHUNK))
    return id15 + "".join(
        _CHECKSUM_CHARS[sum(1 << place for place, char in enumerate(chunk) if char.isupper())] for chunk in chunks
    )


def delete_contents(database: Database, *, is_ours: Callable[[str], bool]) -> None:
    """Delete components, jobs, runs and results in one transaction; users, tokens and id counters stay.

    The common state with orgs whose address `is_ours` is deleted too.
    """
    with database.transaction():
        for statement in _DELETIONS:
            database.execute(statement)
        urls = database.query("SELECT DISTINCT org_url FROM synced")
        database.execute_many("DELETE FROM synced WHERE org_url = ?", [row for row in urls if is_ours(row[0])])
