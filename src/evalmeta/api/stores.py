"""Stores of runs: which one a word names, bringing one up to date, checking it, and copying all of it to another."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import EvalmetaError, NotFound, Suggestion, UsageError
from evalmeta.model.store import STORE_VARIABLE, Store, read_store_url
from evalmeta.package.trust import STATE_FOLDER
from evalmeta.report.text import and_more, count
from evalmeta.store.copying import copy_store
from evalmeta.store.database import layout_of, open_database
from evalmeta.store.spool import spooled_files
from evalmeta.store.sqlite import check_integrity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.package.project import Project
    from evalmeta.store.copying import TableContent
    from evalmeta.store.database import Database

LOCAL: Final = "local"
SHARED: Final = "shared"
_SKEW_SECONDS: Final = 2.0
_SHOWN: Final = 3
_FILE: Final = "org.sqlite3"


def find_store(project: Project, word: str) -> Store:
    """Return the store that a word names: `local`, `shared`, a state folder or a URL without a password.

    Raise UsageError if there is no such store, and for a password, which other users could read on the command line.
    """
    if word == LOCAL:
        return Store(project.state_dir)
    if word == SHARED:
        if project.store.url is None:
            raise UsageError(
                "no shared store is configured",
                actions=[
                    f"Set {STORE_VARIABLE}, or url in [store] of evalmeta.toml, to postgresql://USER@HOST/DATABASE."
                ],
            )
        return project.store
    if "://" not in word:
        return Store(_folder(Path(word).absolute()))
    try:
        url = read_store_url(word)
    except ValueError as error:
        raise UsageError(f"the store {error}") from None
    if url.has_password:
        raise UsageError(
            "a password was given on the command line, where other users of this machine can read it",
            actions=[
                f"Set {STORE_VARIABLE} to the URL, and write {SHARED} instead. Change the password.",
                "Or leave it out of the URL, and keep it in ~/.pgpass or PGPASSWORD.",
            ],
        )
    return Store(project.state_dir, url)


def with_store(project: Project, word: str) -> Project:
    """Return a project with another store: `local`, `shared`, or a URL; raise UsageError like `find_store`."""
    store = find_store(project, word)
    if store.folder != project.state_dir:
        raise UsageError(f"{word} is not a shared store", actions=[f"Set EVALMETA_HOME to the folder: {store.folder}"])
    return replace(project, store_url=store.url.secret if store.url else "")


def _folder(folder: Path) -> Path:
    """Return a state folder; raise UsageError for a folder that only has one, such as a project's."""
    if not (folder / _FILE).exists() and (folder / STATE_FOLDER / _FILE).exists():
        raise UsageError(f"{folder} is not a state folder", actions=[f"Did you mean {folder / STATE_FOLDER}?"])
    return folder


def _exists(store: Store) -> bool:
    return (store.folder / _FILE).exists()


class Migration(NamedTuple):
    """The numbers of a store's layout before and after a migration; 0 is a store that was just created."""

    store: str
    before: int
    after: int


def migrate_store(store: Store) -> Migration:
    """Bring the layout of a store up to date; raise StoreError if that is not possible."""
    before = layout_of(store)
    with open_database(store) as database:
        return Migration(database.name, before, layout_of(store))


class StoreCheck(NamedTuple):
    """The result of a check, and what to do if it is not ok."""

    subject: str
    status: Literal["ok", "warning", "error"]
    message: str
    action: str = ""


def check_store(store: Store) -> Iterator[StoreCheck]:
    """Check whether a store can be reached and used, and whether its rows belong together; yield each result."""
    if store.url is None and not _exists(store):
        yield StoreCheck("store", "ok", f"{store.folder / _FILE} does not exist yet; the first run creates it")
        return
    try:
        if store.url is None:
            check_integrity(store.folder)
        begun = time.monotonic()
        with open_database(store) as database:
            opened = f"{database.name}, opened in {1000 * (time.monotonic() - begun):.0f} ms"
            yield StoreCheck("store", "ok", f"{opened}, layout {layout_of(store)}")
            if store.url is not None:
                yield from check_server(database)
            yield from _check_rows(database)
            yield from check_unsent(store)
    except EvalmetaError as error:
        yield StoreCheck("store", "error", str(error), " ".join(error.actions))


_SERVER: Final = """
    SELECT current_setting('server_version'), current_schema(), current_user,
      current_setting('fsync') = 'off' OR current_setting('full_page_writes') = 'off',
      current_setting('synchronous_commit') = 'off', rolsuper,
      has_schema_privilege(current_schema(), 'CREATE'), has_database_privilege(current_database(), 'TEMPORARY')
    FROM pg_roles WHERE rolname = current_user
"""
# The number of the layout is only read.
_REFUSED: Final = """
    SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
      AND NOT (has_table_privilege(oid, 'SELECT') AND (starts_with(relname, 'evalmeta_')
        OR has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
          AND has_table_privilege(oid, 'DELETE')))
    ORDER BY relname
"""


def check_server(database: Database) -> Iterator[StoreCheck]:
    """Check the server of a shared store, and what the role may do; yield each result."""
    [row] = database.query(_SERVER)
    version, schema, role, is_unsafe, is_late, is_superuser, may_create, may_copy = row
    yield StoreCheck("server", "ok", f"Postgres {version}, schema {schema}, role {role}")
    if is_unsafe or is_late:
        setting = "fsync or full_page_writes" if is_unsafe else "synchronous_commit"
        message = f"{setting} is off: results that were reported can be lost when the server stops"
        yield StoreCheck("durability", "warning", message, "Turn it on in postgresql.conf, or for the role.")
    yield _check_privileges(database, is_superuser=is_superuser, may_create=may_create, may_copy=may_copy)
    skew = database.now() - time.time()
    message = f"the server is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine"
    if abs(skew) > _SKEW_SECONDS:
        yield StoreCheck("clock", "warning", message, "Times of runs differ between machines: use NTP.")
    else:
        yield StoreCheck("clock", "ok", message)


def _check_privileges(database: Database, *, is_superuser: bool, may_create: bool, may_copy: bool) -> StoreCheck:
    missing = [f"SELECT, INSERT, UPDATE and DELETE on {table}" for (table,) in database.query(_REFUSED)]
    missing += [] if may_copy else ["TEMPORARY on the database"]
    if missing:
        message = f"the role lacks {and_more(missing, _SHOWN)}"
        return StoreCheck("privileges", "error", message, "Grant them to the role.")
    if is_superuser:
        action = "Use a role that owns only the schema of the team."
        return StoreCheck("privileges", "warning", "the role is a superuser, which no store needs", action)
    owner = "may" if may_create else "may not"
    return StoreCheck("privileges", "ok", f"all that runs need; the role {owner} change the layout")


_DAMAGE: Final = {
    "results without their run": "SELECT count(*) FROM case_result WHERE run_id NOT IN (SELECT id FROM run)",
    "completed runs without all their results": """
        SELECT count(*) FROM run WHERE status = 'COMPLETED'
          AND total > (SELECT count(*) FROM case_result WHERE run_id = run.id)
    """,
    "runs without the content of their test": """
        SELECT count(*) FROM run
        WHERE content_sha256 IS NOT NULL AND content_sha256 NOT IN (SELECT sha256 FROM content)
    """,
}


def _check_rows(database: Database) -> Iterator[StoreCheck]:
    found = [(what, database.query(sql)[0][0]) for what, sql in _DAMAGE.items()]
    unreadable, read = _unreadable_results(database)
    damage = [f"{number:,} {what}" for what, number in (*found, ("results that cannot be read", unreadable)) if number]
    if damage:
        action = "Copy what is left to another store, or restore a backup."
        yield StoreCheck("rows", "error", ", ".join(damage), action)
        return
    [(runs, results)] = database.query("SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM case_result)")
    partly = f" ({read:,} of them read)" if read < results else ""
    yield StoreCheck("rows", "ok", f"{count(runs, 'run')} with {count(results, 'result')}{partly}")


def check_unsent(store: Store) -> Iterator[StoreCheck]:
    """Yield a warning if results wait on this machine."""
    run_ids = [path.name.partition("-")[0] for path in spooled_files(store.folder)]
    if run_ids:
        message = f"results of {and_more(run_ids, _SHOWN)} wait on this machine until their store can be reached"
        yield StoreCheck("unsent", "warning", message, Suggestion("Send them", "test", "resume", "--unfinished"))


def _unreadable_results(database: Database) -> tuple[int, int]:
    """Read results for some seconds; return how many were not JSON, and how many were read."""
    deadline = time.monotonic() + limits.INTEGRITY_SECONDS
    unreadable = read = 0
    for (body,) in database.rows("SELECT body FROM case_result"):
        read += 1
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError:
            unreadable += 1
        if time.monotonic() > deadline:
            break
    return unreadable, read


def copy_all(source: Store, target: Store, *, on_table: Callable[[TableContent], None]) -> bool:
    """Copy a store into an empty one; see `evalmeta.store.copying.copy_store`."""
    if source.url is None and not _exists(source):
        raise NotFound(f"there is no store in {source.folder}")
    with open_database(source) as before, open_database(target) as after:
        if before.name == after.name:
            raise UsageError(f"{before.name} cannot be copied to itself")
        return copy_store(before, after, on_table=on_table)
