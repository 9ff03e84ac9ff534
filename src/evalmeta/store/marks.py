"""People's judgements of results, with a note. They never change a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from evalmeta.model.login import User
    from evalmeta.store.database import Database, Row

Judgement = Literal["right", "wrong", "pass", "fail"]
"""Whether a verdict is right, or, if the result was not decided, what it should be."""

_SELECT: Final = """
    SELECT org_url, run_id, iteration, number, name, turn, user_id, user_name, is_right, should_pass, note, marked_at
    FROM mark
"""


class ResultPlace(NamedTuple):
    """Where a result is; without a name, all results of a case.

    Attributes:
        org_url: the address of the run's org; empty for the project's own.
        name: the name of the expectation; `NAME#1`, `NAME#2` and so on if several results of the turn have it.
        turn: the judged turn; 0 in a case of one turn.
    """

    org_url: str
    run_id: str
    iteration: int
    number: int
    name: str = ""
    turn: int = 0


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
    sql = """
        INSERT OR REPLACE INTO mark (
          org_url, run_id, iteration, number, name, turn, user_id, user_name, is_right, should_pass, note, marked_at
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """
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
    sql = f"{_SELECT} WHERE org_url = ? AND run_id = ? AND iteration = ? AND number = ? ORDER BY marked_at"
    return [_mark(row) for row in database.query(sql, place[:4])]


def list_marks(database: Database, *, run_id: str | None = None, org_url: str = "") -> list[Mark]:
    """Return the judgements of the results of a run, or of all runs, in the order of the results."""
    where = "WHERE ?1 IS NULL OR (run_id = ?1 AND org_url = ?2)"
    order = "ORDER BY org_url, run_id, number, iteration, turn, name, marked_at"
    return [_mark(row) for row in database.query(f"{_SELECT} {where} {order}", (run_id, org_url))]


def _mark(row: Row) -> Mark:
    *place, user_id, user_name, is_right, should_pass, note, at = row
    decided: Judgement = "right" if is_right else "wrong"
    judgement: Judgement = decided if should_pass is None else "pass" if should_pass else "fail"
    return Mark(ResultPlace(*place), user_id, user_name, judgement, note, at)
