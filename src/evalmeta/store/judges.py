"""Stored ratings of language models, and how often raters were right about labelled pairs.

Ratings are in a database, or in the memory of the process. The checks that `evalmeta rater check` made are a file of a
state folder.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import EvalmetaError, StoreError
from evalmeta.model.statistics import JudgeCheck
from evalmeta.package.files import put_file, read_file
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.store.database import Database


_CHECKS_FILE: Final = "judge-checks.json"


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
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction():
            self._database.execute("DELETE FROM rating WHERE created_at < ?", (self._oldest(),))
            self._database.execute(sql, (key, body, self._clock()))

    def _oldest(self) -> float:
        return self._clock() - limits.RATING_KEPT_SECONDS


class NewRatings:
    """A cache that keeps new ratings and never returns one, so that everything is judged anew."""

    __slots__ = ("_ratings",)

    def __init__(self, ratings: Ratings) -> None:
        self._ratings = ratings

    def find(self, key: str) -> str | None:  # noqa: ARG002 - as RatingCache
        """Return None."""
        return None

    def keep(self, key: str, body: str) -> None:
        """Save a text under a key."""
        self._ratings.keep(key, body)


class MemoryRatings:
    """Texts by key, as long as the process runs; the oldest are dropped beyond `limits.MAX_MEMORY_RATINGS`."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def find(self, key: str) -> str | None:
        """Return the text of a key; None if there is none."""
        return self._texts.get(key)

    def keep(self, key: str, body: str) -> None:
        """Save a text under a key."""
        self._texts[key] = body
        if len(self._texts) > limits.MAX_MEMORY_RATINGS:
            self._texts.pop(next(iter(self._texts)))


_OF_PROCESS: Final = MemoryRatings()


class FolderRatings:
    """The ratings in a state folder, whose database is opened when it is first needed.

    Without a folder, or if the database cannot be used, the process keeps the ratings in its memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._database: Database | None = None

    def find(self, key: str) -> str | None:
        """Return the text of a key; None if there is none."""
        return self._ratings().find(key)

    def keep(self, key: str, body: str) -> None:
        """Save a text under a key."""
        self._ratings().keep(key, body)

    def close(self) -> None:
        """Close the database, if it was opened."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _ratings(self) -> Ratings | MemoryRatings:
        if self._database is None and self._folder is not None:
            with suppress(StoreError):
                self._database = open_database(self._folder)
            if self._database is None:
                self._folder = None
        return _OF_PROCESS if self._database is None else Ratings(self._database)


def keep_check(state_dir: Path, judge: tuple[str, str], threshold: float, check: JudgeCheck) -> None:
    """Save the check of a judge, instead of an earlier one of the same models, prompts and threshold."""
    checks = {**_read_checks(state_dir), _check_key(judge, threshold): check.text}
    put_file(state_dir / _CHECKS_FILE, orjson.dumps(checks, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def find_check(state_dir: Path, judge: tuple[str, str], threshold: float) -> str:
    """Return the latest check of a judge as runs record it; empty if it was not checked."""
    text = _read_checks(state_dir).get(_check_key(judge, threshold), "")
    return text if isinstance(text, str) and JudgeCheck.read(text) else ""


def _check_key(judge: tuple[str, str], threshold: float) -> str:
    rater, prompt = judge
    return f"{rater}, prompt {prompt}, threshold {threshold:g}"


def _read_checks(state_dir: Path) -> dict[str, object]:
    """Return the checks by their keys; none if the file is missing or damaged, because a new check replaces it."""
    try:
        checks = orjson.loads(read_file(state_dir / _CHECKS_FILE, max_bytes=limits.MAX_JSON_BYTES))
    except (EvalmetaError, OSError, orjson.JSONDecodeError):
        return {}
    return checks if isinstance(checks, dict) else {}
