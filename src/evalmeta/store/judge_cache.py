"""What language models said of answers, kept so that the same question costs only once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.store.database import Database


class Ratings:
    """Keeps texts by key for `RATING_KEPT_SECONDS`."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def find(self, key: str) -> str | None:
        """Gives the text that is kept under a key; None when there is none, or when it is too old.

        Raises:
            StoreError: the database cannot be used.
        """
        rows = self._database.query("SELECT body FROM rating WHERE key = ? AND created_at >= ?", (key, self._oldest()))
        return rows[0][0] if rows else None

    def keep(self, key: str, body: str) -> None:
        """Keeps a text under a key, in place of what was there, and forgets what is too old.

        Raises:
            StoreError: the database cannot be used.
        """
        sql = "INSERT OR REPLACE INTO rating (key, body, created_at) VALUES (?, ?, ?)"
        with self._database.transaction():
            self._database.execute("DELETE FROM rating WHERE created_at < ?", (self._oldest(),))
            self._database.execute(sql, (key, body, self._clock()))

    def _oldest(self) -> float:
        return self._clock() - limits.RATING_KEPT_SECONDS
