"""What was judged: stored ratings of language models, checks of raters, and people's marks, which change no verdict.

Ratings are in a database, or in the memory of the process. The checks that `evalmeta rater check` made are a file of a
state folder.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import EvalmetaError, StoreError
from evalmeta.model.statistics import JudgeCheck
from evalmeta.package.files import put_file, read_file
from evalmeta.package.trust import state_file
from evalmeta.store.database import Database, open_database
from evalmeta.store.sql import upsert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.login import User
    from evalmeta.model.store import Store
    from evalmeta.store.sql import Row


_CHECKS_FILE: Final = "judge-checks.json"


@dataclass(frozen=True, slots=True)
class Ratings:
    """Texts by key, each kept for `limits.RATING_KEPT_SECONDS`."""

    _database: Database
    clock: Callable[[], float] = field(default=time.time, kw_only=True)

    def find(self, key: str) -> str | None:
        """Return the text of a key; None if there is none or it has expired."""
        rows = self._database.query("SELECT body FROM rating WHERE key = ? AND created_at >= ?", (key, self._oldest()))
        return rows[0][0] if rows else None

    def keep(self, key: str, body: str) -> None:
        """Save a text under a key, and delete expired texts."""
        sql = upsert("rating", "key", "key, body, created_at")
        with self._database.waiting(limits.LOOP_LOCKED_SECONDS), self._database.transaction():
            self._database.execute("DELETE FROM rating WHERE created_at < ?", (self._oldest(),))
            self._database.execute(sql, (key, body, self.clock()))

    def _oldest(self) -> float:
        return self.clock() - limits.RATING_KEPT_SECONDS


@dataclass(frozen=True, slots=True)
class NewRatings:
    """A cache that keeps new ratings and never returns one, so that everything is judged anew."""

    _ratings: Ratings

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

    def __init__(self, place: Store | Path | None) -> None:
        self._place = place
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
        if self._database is None and self._place is not None:
            with suppress(StoreError):
                self._database = open_database(self._place)
            if self._database is None:
                self._place = None
        return _OF_PROCESS if self._database is None else Ratings(self._database)


def keep_check(state_dir: Path, judge: tuple[str, str], threshold: float, check: JudgeCheck) -> None:
    """Save the check of a judge, instead of an earlier one of the same models, prompts and threshold."""
    checks = {**_read_checks(state_dir), _check_key(judge, threshold): check.text}
    put_file(
        state_file(state_dir, _CHECKS_FILE), orjson.dumps(checks, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    )


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
        checks = orjson.loads(read_file(state_file(state_dir, _CHECKS_FILE), max_bytes=limits.MAX_JSON_BYTES))
    except (EvalmetaError, OSError, orjson.JSONDecodeError):
        return {}
    return checks if isinstance(checks, dict) else {}


Judgement = Literal["right", "wrong", "pass", "fail"]
"""Whether a verdict is right, or, if the result was not decided, what it should be."""

_MARK_KEY: Final = "org_url, run_id, iteration, number, name, turn, user_id"
_MARK_COLUMNS: Final = f"{_MARK_KEY}, user_name, is_right, should_pass, note, marked_at"
_SELECT_MARK: Final = f"SELECT {_MARK_COLUMNS} FROM mark"  # noqa: S608 - constants


class ResultPlace(NamedTuple):
    """Where a result is; without a name, all results of a case."""

    org_url: str  # the address of the run's org; empty for the project's own
    run_id: str
    iteration: int
    number: int
    name: str = ""  # the name of the expectation; `NAME#1`, `NAME#2` and so on if several results of the turn have it
    turn: int = 0  # the judged turn; 0 in a case of one turn


@dataclass(frozen=True, slots=True)
class Mark:
    """A person's judgement of a result; `at` is in seconds since the epoch."""

    place: ResultPlace
    user_id: str
    user_name: str
    judgement: Judgement
    note: str
    at: float

    @property
    def words(self) -> str:
        """Return the judgement as people read it."""
        return f"should {self.judgement}" if self.judgement in {"pass", "fail"} else self.judgement


def keep_mark(
    database: Database, place: ResultPlace, user: User, judgement: Judgement, *, note: str, now: float
) -> None:
    """Save a person's judgement of a result, instead of an earlier one of the same person."""
    sql = upsert("mark", _MARK_KEY, _MARK_COLUMNS)
    should_pass = judgement == "pass" if judgement in {"pass", "fail"} else None
    database.execute(sql, (*place, user.id, user.name, judgement == "right", should_pass, note, now))


def remove_mark(database: Database, place: ResultPlace, user: User) -> bool:
    """Delete a person's judgement of a result; False if there is none."""
    sql = """
        DELETE FROM mark WHERE org_url = ? AND run_id = ? AND iteration = ? AND number = ? AND name = ? AND turn = ?
          AND user_id = ?
    """
    return database.execute(sql, (*place, user.id)) == 1


def marks_of_case(database: Database, place: ResultPlace) -> list[Mark]:
    """Return the judgements of all results of a case, the oldest first."""
    sql = f"{_SELECT_MARK} WHERE org_url = ? AND run_id = ? AND iteration = ? AND number = ? ORDER BY marked_at"
    return [_mark(row) for row in database.query(sql, place[:4])]


def list_marks(database: Database, *, run_id: str | None = None, org_url: str = "") -> list[Mark]:
    """Return the judgements of the results of a run, or of all runs, in the order of the results."""
    where = "WHERE (run_id = ?1 AND org_url = ?2) OR ?1 IS NULL"
    order = "ORDER BY org_url, run_id, number, iteration, turn, name, marked_at"
    return [_mark(row) for row in database.query(f"{_SELECT_MARK} {where} {order}", (run_id, org_url))]


def _mark(row: Row) -> Mark:
    *place, user_id, user_name, is_right, should_pass, note, at = row
    decided: Judgement = "right" if is_right else "wrong"
    judgement: Judgement = decided if should_pass is None else "pass" if should_pass else "fail"
    return Mark(ResultPlace(*place), user_id, user_name, judgement, note, at)
