"""The SQLite file behind an org: opened safely, migrated, and its errors put into words.

Record ids as Salesforce makes them: 15 characters that count up, and 3 that check their case.

Emptying an org.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Self


Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[Any, ...]  # type: ignore[explicit-any] # what the columns hold, which only SQL knows


_LOCK_POLL_SECONDS: Final = 0.02
_APPLICATION_ID: Final = 0x45564D54  # "EVMT"
# One statement, so that a file which another process is making is seen either empty or made.
_HEADER: Final = """
    SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
           (SELECT count(*) FROM sqlite_master)
"""
_README: Final = """\
evalmeta keeps the project's embedded org here: deployed definitions, runs and their results; what came
back from runs in other orgs; and what the project and an org had in common after the last deploy or retrieve.
Delete this folder to begin with an empty org; nothing else depends on it.
"""


class Database:
    """One connection; every statement and transaction reports trouble as a StoreError.

    Use it in a `with` statement: leaving it closes the connection.
    """

    __slots__ = ("_connection", "path")

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    def query(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Gives all rows of a statement."""
        with _in_words(self.path):
            return self._connection.execute(sql, values).fetchall()

    def execute(self, sql: str, values: Sequence[Value] = ()) -> int:
        """Carries out a statement and gives the number of rows it changed."""
        with _in_words(self.path):
            return self._connection.execute(sql, values).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Carries out a statement for every row."""
        with _in_words(self.path):
            self._connection.executemany(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits all that happens inside, or nothing of it; writers wait for each other."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            raise

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Undoes all that happens inside, at its end; use it in a transaction, to see what would come of it."""
        self.execute("SAVEPOINT trial")
        try:
            yield
        finally:
            self.execute("ROLLBACK TO trial")
            self.execute("RELEASE trial")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_database(folder: Path) -> Database:
    """Opens the database in a state folder, and makes both when they are not there.

    Commits reach the disk before they return (WAL, synchronous FULL).

    Raises:
        StoreLocked: another program holds it longer than the limit.
        StoreCorrupt: the file is no database of evalmeta.
        StoreError: the folder cannot be written, or a newer evalmeta made the file.
    """
    path = folder / "org.sqlite3"
    try:
        _make_folder(folder)
        _make_file(path)
        connection = sqlite3.connect(path, timeout=limits.STORE_BUSY_SECONDS, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"{path} cannot be opened: {error}", actions=["Make the folder writable, or set EVALMETA_HOME to another."]
        ) from None
    database = Database(connection, path)
    try:
        _prepare(database)
    except BaseException:
        connection.close()
        raise
    return database


def _make_folder(folder: Path) -> None:
    """Makes the folder; one that is there may hold somebody's work and gets no files but the database's."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if folder.is_dir():
            return
        raise
    for name, content in {"README": _README, ".gitignore": "*\n"}.items():
        (folder / name).write_text(content, encoding="utf-8")


def _make_file(path: Path) -> None:
    """Makes an empty file that only its owner may read; SQLite gives the files beside it the same mode."""
    if not path.exists():
        path.touch(mode=0o600)


def _prepare(database: Database) -> None:
    database.execute("PRAGMA foreign_keys = ON")
    database.execute("PRAGMA synchronous = FULL")
    [(application_id, version, tables)] = database.query(_HEADER)
    migrations = _migrations()
    if application_id != _APPLICATION_ID and (application_id or tables):
        raise _corrupt(database.path, "it is a database of another program")
    if version > len(migrations):
        raise StoreError(
            f"{database.path} was made by a newer evalmeta (layout {version}, this one knows {len(migrations)})",
            actions=["Upgrade evalmeta."],
        )
    if version < len(migrations):
        _switch_to_wal(database)
        _migrate(database, migrations)


def _switch_to_wal(database: Database) -> None:
    """Switches the file to WAL; SQLite does not wait for others here by itself."""
    deadline = time.monotonic() + limits.STORE_BUSY_SECONDS
    while True:
        try:
            database.query("PRAGMA journal_mode = WAL")
        except StoreLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOCK_POLL_SECONDS)
        else:
            return


def _migrate(database: Database, migrations: Sequence[str]) -> None:
    with database.transaction():
        [(version,)] = database.query("PRAGMA user_version")
        for script in migrations[version:]:
            for statement in script.split(";\n"):
                database.execute(statement)
        database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {len(migrations)}")


def _migrations() -> list[str]:
    folder = files("evalmeta.store") / "migrations"
    scripts = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return [each.read_text(encoding="utf-8") for each in scripts]


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise StoreLocked(
                f"{path} is held by another program", actions=["Wait until it is done, then run the command again."]
            ) from None
        if "malformed" in str(error) or "no such table" in str(error):
            raise _corrupt(path, str(error)) from None
        raise StoreError(
            f"{path}: {error}", actions=["Check that the disk has room and the file is writable."]
        ) from None
    except sqlite3.DatabaseError as error:
        raise _corrupt(path, str(error)) from None


def _corrupt(path: Path, reason: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is no usable database: {reason}",
        actions=[f"Move {path.name} away and deploy again; the definitions in the project are not touched."],
    )


_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
_SHORT_CHARS: Final = 15
_CHUNK: Final = 5


def next_ids(database: Database, prefix: str, count: int = 1) -> list[str]:
    """Takes the next ids of a kind; call it inside the transaction that uses them."""
    sql = "INSERT INTO counter VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET last = last + ? RETURNING last"
    [(last,)] = database.query(sql, (prefix, count, count))
    return [checked_id(f"{prefix}{number:012d}") for number in range(last - count + 1, last + 1)]


def whole_id(record_id: str) -> str:
    """Gives an id of 15 characters with all 18, as orgs take both; any other text stays as it is."""
    return checked_id(record_id) if len(record_id) == _SHORT_CHARS else record_id


def checked_id(id15: str) -> str:
    """Adds the three characters that tell which of the fifteen are capitals, for readers that ignore case."""
    chunks = (id15[start : start + _CHUNK] for start in range(0, len(id15), _CHUNK))
    return id15 + "".join(
        _ALPHABET[sum(1 << place for place, char in enumerate(chunk) if char.isupper())] for chunk in chunks
    )


# Those that are referred to come last.
_CONTENTS: Final = ("case_result", "run", "job", "component")


def empty(database: Database, *, is_ours: Callable[[str], bool]) -> None:
    """Deletes components, jobs, runs and results, all or none; users, tokens and the numbers of ids stay.

    Args:
        database: the org's.
        is_ours: tells whether an address is one of this org's, so that what projects and
            the org had in common is forgotten too.
    """
    with database.transaction():
        for table in _CONTENTS:
            database.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
        urls = database.query("SELECT DISTINCT org_url FROM synced")
        database.execute_many("DELETE FROM synced WHERE org_url = ?", [row for row in urls if is_ours(row[0])])
