"""The SQLite database of an org: opening, migrations, transactions and record ids."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked
from evalmeta.package.trust import state_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Self


Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[Any, ...]  # type: ignore[explicit-any] # only the SQL knows the types of the columns

_LOCK_POLL_SECONDS: Final = 0.02
# Tables that others refer to come last.
_DELETIONS: Final = (
    "DELETE FROM case_result",
    "DELETE FROM mark WHERE org_url = ''",
    "DELETE FROM run_digest WHERE org_url = ''",
    "DELETE FROM run",
    """DELETE FROM content
       WHERE sha256 NOT IN (SELECT content_sha256 FROM remote_run WHERE content_sha256 NOT NULL)""",
    "DELETE FROM suite WHERE org_url = ''",
    "DELETE FROM job",
    "DELETE FROM component",
    "DELETE FROM agent",
)
_SIGNS_OF_LOCKS: Final = ("locked", "busy", "locking protocol")
_SIGNS_OF_DAMAGE: Final = ("malformed", "no such table", "no such column", "Could not decode to UTF-8")
# How many steps of SQLite's machine pass between two looks at the clock.
_STEPS_OF_A_CHECK: Final = 10_000
_CHECKSUM_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
# Further characters of an id only check the first 15.
SHORT_ID_CHARS: Final = 15
_ID_CHUNK: Final = 5
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


class Database:
    """One connection; every statement and transaction reports trouble as a StoreError.

    Use it in a `with` statement: leaving it closes the connection.
    """

    __slots__ = ("_connection", "path")

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

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

    @contextmanager
    def transaction(self) -> Iterator[None]:
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
    def waiting(self, seconds: float) -> Iterator[None]:
        """Raise StoreLocked in the block if another program has locked the database for `seconds`."""
        [(usual,)] = self.query("PRAGMA busy_timeout")
        self.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")
        try:
            yield
        finally:
            self.execute(f"PRAGMA busy_timeout = {usual}")

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Undo all changes in the block at its end; use it inside a transaction."""
        self.execute("SAVEPOINT dry_run")
        try:
            yield
        finally:
            self.execute("ROLLBACK TO dry_run")
            self.execute("RELEASE dry_run")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_database(folder: Path) -> Database:
    """Open the database in a state folder; create both if they do not exist.

    Commits reach the disk before they return (WAL, synchronous FULL). Raise StoreLocked if another program locks the
    file, StoreCorrupt if it is not a database of evalmeta, and StoreError if it cannot be used otherwise.
    """
    # SQLite would follow links.
    path, *_ = [state_file(folder, f"org.sqlite3{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    try:
        _make_folder(folder)
        if not path.exists():
            # Only the owner can read the file; SQLite creates the files beside it with the same mode.
            path.touch(mode=0o600)
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


def _make_folder(folder: Path) -> None:
    """Create the folder with a README; an existing folder gets no other files than the database."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if folder.is_dir():
            return
        raise
    for name, content in {"README": _README, ".gitignore": "*\n"}.items():
        (folder / name).write_text(content, encoding="utf-8")


def _prepare(database: Database) -> None:
    database.execute("PRAGMA foreign_keys = ON")
    database.execute("PRAGMA synchronous = FULL")
    # On macOS, commits are otherwise left in the cache of the disk; other systems ignore it.
    for name in ("fullfsync", "checkpoint_fullfsync"):
        database.execute(f"PRAGMA {name} = ON")
    scripts = [path for path in (files("evalmeta.store") / "migrations").iterdir() if path.name.endswith(".sql")]
    migrate(
        database, [script.read_text(encoding="utf-8") for script in sorted(scripts, key=lambda script: script.name)]
    )


def migrate(database: Database, migrations: Sequence[str]) -> None:
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
        _switch_to_wal(database)
        _migrate(database, migrations)


def _switch_to_wal(database: Database) -> None:
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


def _migrate(database: Database, migrations: Sequence[str]) -> None:
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
    return {str(number): value for number, value in enumerate(values, 1)} if "?1" in sql else values


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
        actions=[f"Move {path.name} away and deploy again; the definitions in the project stay as they are."],
    )


def next_ids(database: Database, prefix: str, count: int = 1) -> list[str]:
    """Return new record ids with a prefix; call it inside the transaction that uses them."""
    sql = "INSERT INTO counter VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET last = last + ? RETURNING last"
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
