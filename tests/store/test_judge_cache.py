from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.store.database import open_database
from evalmeta.store.judge_cache import Ratings

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.store.database import Database


def test_texts_are_found_by_their_keys(database: Database) -> None:
    ratings = Ratings(database)
    ratings.keep("a", "first")
    ratings.keep("b", "other")
    ratings.keep("a", "second")
    assert [ratings.find(key) for key in ("a", "b", "c")] == ["second", "other", None]


def test_texts_are_there_for_the_next_process(folder: Path) -> None:
    before = open_database(folder)
    Ratings(before).keep("a", "said")
    before.close()
    after = open_database(folder)
    assert Ratings(after).find("a") == "said"
    after.close()


def test_expired_texts_are_not_found_and_are_deleted(database: Database) -> None:
    Ratings(database, clock=lambda: 0.0).keep("a", "said")
    later = Ratings(database, clock=lambda: limits.RATING_KEPT_SECONDS + 1)
    assert later.find("a") is None
    later.keep("b", "said")
    assert database.query("SELECT key FROM rating") == [("b",)]
