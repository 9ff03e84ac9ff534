"""The SQLite database of a state folder: opening, migrations, transactions, and its size."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked
from evalmeta.model.store import Store
from evalmeta.package.trust import state_file
from evalmeta.store.sql import by_number, placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from evalmeta.store.sql import Row, Value

_INSERT: Final = "INSERT INTO"
_LOCK_POLL_SECONDS: Final = 0.02
_SIGNS_OF_LOCKS: Final = ("locked", "busy", "locking protocol")
_SIGNS_OF_DAMAGE: Final = ("malformed", "no such table", "no such column", "Could not decode to UTF-8")
# Other programs write between two steps: each takes some hundredths of a second.
_PAGES_OF_A_STEP: Final = 2_000
_ROOM_TO_REWRITE: Final = 2.2
_PAGES: Final = """
    SELECT page_size, page_count, freelist_count, auto_vacuum
    FROM pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_auto_vacuum
"""
# How many steps of SQLite's machine pass between two looks at the clock.
_STEPS_OF_A_CHECK: Final = 10_000
_APPLICATION_ID: Final = 0x45564D54  # "EVMT"
# One statement, so that a file which another process creates is seen either empty or complete.
_HEADER: Final = """
    SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
           (SELECT count(*) FROM sqlite_master)
"""
_README: Final = """\
evalmeta stores the project's embedded org here: deployed definitions, runs and their results, the results
of runs in other orgs, and the common state of the project and an org after the last deploy or retrieve.
Delete this folder to start with an empty org; nothing else depends on it.
"""


class SqliteDatabase:
    """One connection to the file in a state folder, as `Database` describes it."""

    __slots__ = ("_connection", "name", "path", "store")

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.store = Store(path.parent)
        self.path = path
        self.name = str(path)

    @property
    def folder(self) -> Path:
        """Return the state folder."""
        return self.store.folder

    @property
    def exists(self) -> bool:
        """Return whether the file is still there."""
        return self.path.exists()

    def query(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return all rows of a query."""
        with _store_errors(self.path):
            return self._connection.execute(sql, _bound(sql, values)).fetchall()

    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[Row]:
        """Yield the rows of a query one by one, as they were when the first was read."""
        with _store_errors(self.path):
            yield from self._connection.execute(sql, _bound(sql, values))

    def execute(self, sql: str, values: Sequence[Value] = ()) -> int:
        """Execute a statement, and return the number of changed rows."""
        with _store_errors(self.path):
            return self._connection.execute(sql, _bound(sql, values)).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Execute a statement for each row of values."""
        with _store_errors(self.path):
            self._connection.executemany(sql, (_bound(sql, row) for row in rows))

    def execute_script(self, sql: str) -> None:
        """Execute statements to their ends, outside a transaction, such as pragmas that work step by step."""
        with _store_errors(self.path):
            self._connection.executescript(sql)

    def add_function(self, name: str, function: Callable[[bytes], bytes]) -> None:
        """Let this connection's SQL call a function."""
        self._connection.create_function(name, 1, function, deterministic=True)

    def insert_new(
        self,
        table: str,
        columns: str,
        rows: Callable[[], Iterable[Sequence[Value]]],
        *,
        count: int,  # noqa: ARG002 - as Database
    ) -> int:
        """Insert many rows but those whose keys are there already; return how many are new."""
        places = ", ".join("?" * (columns.count(",") + 1))
        sql = f"{_INSERT} {table} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING"
        with _store_errors(self.path):
            return self._connection.executemany(sql, rows()).rowcount

    @property
    def row_lock(self) -> str:
        """Return nothing: transactions lock the file."""
        return ""

    def now(self) -> float:
        """Return the time of this machine."""
        return time.time()

    @contextmanager
    def transaction(self, *, is_alone: bool = True) -> Iterator[None]:  # noqa: ARG002 - as Database
        """Commit all changes in the block, or none if it raises; writers wait for each other."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries in the block see the database as it is at the first; nothing may be changed."""
        self.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
        """Insert many rows; call it inside a transaction."""
        self.execute_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders(columns)})", rows)

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Raise StoreLocked in the block if another program has locked the database for `seconds`."""
        [(usual,)] = self.query("PRAGMA busy_timeout")
        self.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")
        try:
            yield
        finally:
            self.execute(f"PRAGMA busy_timeout = {usual}")

    @contextmanager
    def references_unchecked(self) -> Iterator[None]:
        """Let rows in the block be deleted before those that refer to them; use it outside a transaction."""
        self.execute("PRAGMA foreign_keys = OFF")
        try:
            yield
        finally:
            self.execute("PRAGMA foreign_keys = ON")

    def size(self) -> int:
        """Return the size of the files in bytes, the log included."""
        files_of_it = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files_of_it if file.exists())

    def shrink(self) -> None:
        """Make the file smaller by its free room.

        If little is in use, the file is written anew, which takes a second for 100 MB and needs twice as much room on
        the disk. Otherwise, or if there is not enough room, free pages are given back step by step for
        `limits.SHRINK_SECONDS`; new runs use what is left. A file from before incremental vacuum must be written anew.
        """
        [(page_size, pages, free, mode)] = self.query(_PAGES)
        used = page_size * (pages - free)
        has_room = shutil.disk_usage(self.folder).free > _ROOM_TO_REWRITE * used
        if free and has_room and used <= limits.MAX_REWRITTEN_BYTES:
            self.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self.execute("VACUUM")
        elif mode:
            self._give_pages_back(free)
        # The log may be as large as the file was; it stays if somebody reads.
        with suppress(StoreError):
            self.query("PRAGMA wal_checkpoint(TRUNCATE)")

    def _give_pages_back(self, free: int) -> None:
        deadline = time.monotonic() + limits.SHRINK_SECONDS
        while free and time.monotonic() < deadline:
            with pause_after():
                self.execute_script(f"PRAGMA incremental_vacuum({_PAGES_OF_A_STEP})")
            [(free,)] = self.query("PRAGMA freelist_count")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def pause_after() -> Iterator[None]:
    """Leave the database to other programs after the block: a sixth of the time, so that none waits too long."""
    begun = time.monotonic()
    yield
    time.sleep((time.monotonic() - begun) / 5)


def open_sqlite(folder: Path, *, layout: int | None = None) -> SqliteDatabase:
    """Open the database in a state folder; create both if they do not exist.

    `layout` is the number of an older layout in which to create it.

    Commits reach the disk before they return (WAL, synchronous FULL). Raise StoreLocked if another program locks the
    file, StoreCorrupt if it is not a database of evalmeta, and StoreError if it cannot be used otherwise.
    """
    # SQLite would follow links.
    path, *_ = [state_file(folder, f"org.sqlite3{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    try:
        make_state_folder(folder)
        if not path.exists():
            # Only the owner can read the file; SQLite creates the files beside it with the same mode.
            path.touch(mode=0o600)
        connection = sqlite3.connect(path, timeout=limits.STORE_BUSY_SECONDS, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"{path} cannot be opened: {error}", actions=["Make the folder writable, or set EVALMETA_HOME to another."]
        ) from None
    database = SqliteDatabase(connection, path)
    try:
        _prepare(database, layout)
    except BaseException:
        connection.close()
        raise
    return database


def check_integrity(folder: Path, *, seconds: float = limits.INTEGRITY_SECONDS) -> bool:
    """Raise StoreCorrupt if the database in a state folder is damaged; a folder without a database is not.

    Return whether all of it was checked within so many seconds. Damage to a page can lead to any wrong value, so that
    code which reads it may raise anything.
    """
    path = state_file(folder, "org.sqlite3")
    if not path.exists():
        return True
    with _store_errors(path), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        deadline = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_OF_A_CHECK)
        try:
            [(state, *_rest), *_others] = connection.execute("PRAGMA quick_check(1)").fetchall()
        except sqlite3.OperationalError as error:
            if str(error) == "interrupted":
                return False
            raise
    if state != "ok":
        raise _corrupt(path, state)
    return True


def make_state_folder(folder: Path) -> None:
    """Create the folder with a README; an existing folder gets no other files than the database."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if folder.is_dir():
            return
        raise
    for name, content in {"README": _README, ".gitignore": "*\n"}.items():
        (folder / name).write_text(content, encoding="utf-8")


def _prepare(database: SqliteDatabase, layout: int | None) -> None:
    database.execute("PRAGMA foreign_keys = ON")
    database.execute("PRAGMA synchronous = FULL")
    # On macOS, commits are otherwise left in the cache of the disk; other systems ignore it.
    for name in ("fullfsync", "checkpoint_fullfsync"):
        database.execute(f"PRAGMA {name} = ON")
    migrate(database, read_migrations()[:layout])


def read_migrations() -> list[str]:
    """Return the scripts of all migrations in their order; the layout has the number of the last."""
    scripts = [path for path in (files("evalmeta.store") / "migrations").iterdir() if path.name.endswith(".sql")]
    return [script.read_text(encoding="utf-8") for script in sorted(scripts, key=lambda script: script.name)]


def layout_in(folder: Path) -> int:
    """Return the number of the layout of the database in a state folder as it is; 0 if there is none."""
    path = state_file(folder, "org.sqlite3")
    if not path.exists():
        return 0
    with _store_errors(path), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        [(version,)] = connection.execute("PRAGMA user_version")
    return int(version)


def migrate(database: SqliteDatabase, migrations: Sequence[str]) -> None:
    """Apply the migrations that a database does not have yet, in order; it records how many it has.

    Raise StoreCorrupt if it belongs to another program, and StoreError if it has more.
    """
    [(application_id, version, tables)] = database.query(_HEADER)
    if application_id != _APPLICATION_ID and (application_id or tables):
        raise _corrupt(database.path, "it belongs to another program")
    if version > len(migrations):
        raise StoreError(
            f"{database.path} was created by a newer evalmeta (layout {version}, this one supports {len(migrations)})",
            actions=["Upgrade evalmeta."],
        )
    if version < len(migrations):
        if not tables:
            # Only an empty database can be made so that room is given back step by step.
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        switch_to_wal(database)
        _migrate(database, migrations)


def switch_to_wal(database: SqliteDatabase) -> None:
    """Switch the file to WAL; here SQLite does not wait for other programs by itself."""
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


def _migrate(database: SqliteDatabase, migrations: Sequence[str]) -> None:
    database.add_function("sha256", lambda content: hashlib.sha256(content).digest())
    with database.transaction():
        [(version,)] = database.query("PRAGMA user_version")
        for script in migrations[version:]:
            for statement in script.split(";\n"):
                database.execute(statement)
        database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {len(migrations)}")


def _bound(sql: str, values: Sequence[Value]) -> Sequence[Value] | dict[str, Value]:
    """Return values as sqlite3 binds them: since Python 3.14, it binds those of `?1` only by their names."""
    return by_number(values) if "?1" in sql else values


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as StoreErrors."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if any(sign in str(error) for sign in _SIGNS_OF_LOCKS):
            raise _locked(path) from None
        if any(sign in str(error) for sign in _SIGNS_OF_DAMAGE):
            raise _corrupt(path, str(error)) from None
        kind = StoreFull if "full" in str(error) else StoreError
        raise kind(f"{path}: {error}", actions=["Check that the disk has room and the file is writable."]) from None
    except sqlite3.DatabaseError as error:
        raise _corrupt(path, str(error)) from None
    except UnicodeDecodeError:
        # SQLite quotes damaged names in its messages.
        raise _corrupt(path, "database disk image is malformed") from None


def _locked(path: Path) -> StoreError:
    """Return the error for a lock that SQLite did not get: it does not say whether another program has it."""
    if reason := _lock_failure(path.parent):
        return StoreError(
            f"{path} cannot be used: files on its file system cannot be locked ({reason})",
            actions=["Set EVALMETA_HOME to a folder on a local disk."],
        )
    return StoreLocked(
        f"{path} is locked by another program", actions=["Wait until it is done, then run the command again."]
    )


def _lock_failure(folder: Path) -> str:
    """Return why no file in a folder can be locked; empty if one can, or this is not known."""
    if os.name != "posix":
        return ""
    import fcntl
    import tempfile

    # Not the database itself: when a process closes a file, it loses all its locks on it.
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.strerror or "locking fails"
    return ""


def _corrupt(path: Path, reason: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is not a valid database: {reason}",
        actions=[
            f"Move {path.name}, and {path.name}-wal if it exists, to another folder; then a new store is created.",
            "The new store has no runs and no components, so deploy again. The files of the project stay as they are.",
        ],
    )
