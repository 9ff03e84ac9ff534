"""The file of the full-text search beside a SQLite store: opening it, and making it again if it cannot be used.

It is a file of its own, so that writing it never locks the journal of a run. It has the words of texts, not the texts.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError
from evalmeta.package.trust import state_file
from evalmeta.store.sqlite import SqliteDatabase, switch_to_wal

if TYPE_CHECKING:
    from pathlib import Path

_NAME: Final = "search.sqlite3"
_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
# A file of another layout is made again.
_LAYOUT: Final = 1
_CREATE: Final = (
    """
    CREATE TABLE searched_run (
      number    INTEGER NOT NULL PRIMARY KEY,
      org_url   TEXT NOT NULL,
      run_id    TEXT NOT NULL,
      stamp     TEXT NOT NULL,
      iteration INTEGER NOT NULL,
      last_case INTEGER NOT NULL,
      is_whole  INTEGER NOT NULL,
      UNIQUE (org_url, run_id)
    )
    """,
    # The words come prepared: the tokenizer splits them at spaces only.
    """
    CREATE VIRTUAL TABLE searched_text
    USING fts5 (words, content = '', columnsize = 0, detail = none, tokenize = 'ascii')
    """,
    f"PRAGMA user_version = {_LAYOUT}",
)


def open_search_file(folder: Path) -> SqliteDatabase:
    """Open the file in a state folder; create it if it does not exist, and again if it is damaged.

    Raise StoreError if this SQLite has no full-text search, or the file cannot be used otherwise.
    """
    try:
        return _open(folder)
    except StoreCorrupt:
        discard_search_file(folder)
        return _open(folder)


def discard_search_file(folder: Path) -> None:
    """Delete the file, which is made again from the results."""
    for suffix in _SUFFIXES:
        state_file(folder, f"{_NAME}{suffix}").unlink(missing_ok=True)


def has_search_file(folder: Path) -> bool:
    """Return whether there is a file in a state folder."""
    return state_file(folder, _NAME).exists()


def _open(folder: Path) -> SqliteDatabase:
    path, *_ = [state_file(folder, f"{_NAME}{suffix}") for suffix in _SUFFIXES]
    try:
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, timeout=limits.STORE_BUSY_SECONDS, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path} cannot be opened: {error}", actions=["Make the folder writable."]) from None
    index = SqliteDatabase(connection, path)
    try:
        _prepare(index)
    except BaseException:
        with suppress(sqlite3.Error):
            connection.close()
        raise
    return index


def _prepare(index: SqliteDatabase) -> None:
    # What a power cut loses is made again.
    index.execute("PRAGMA synchronous = NORMAL")
    [(layout,)] = index.query("PRAGMA user_version")
    if layout == _LAYOUT:
        return
    if layout:
        raise StoreCorrupt(f"{index.name} was written by another evalmeta")
    switch_to_wal(index)
    with index.transaction():
        # Another process may have been first.
        [(layout,)] = index.query("PRAGMA user_version")
        for statement in _CREATE if not layout else ():
            index.execute(statement)
