"""A cache of the ratings of language models."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.store.database import Database


class Ratings:
    """Texts by key, each kept for `limits.RATING_KEPT_SECONDS`."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def find(self, key: str) -> str | None:
        """Return the text of a key; None if there is none or it has expired."""
        rows = self._database.query("SELECT body FROM rating WHERE key = ? AND created_at >= ?", (key, self._oldest()))
        return rows[0][0] if rows else None

    def keep(self, key: str, body: str) -> None:
        """Save a text under a key, and delete expired texts."""
        sql = "INSERT OR REPLACE INTO rating (key, body, created_at) VALUES (?, ?, ?)"
        with self._database.transaction():
            self._database.execute("DELETE FROM rating WHERE created_at < ?", (self._oldest(),))
            self._database.execute(sql, (key, body, self._clock()))

    def _oldest(self) -> float:
        return self._clock() - limits.RATING_KEPT_SECONDS
