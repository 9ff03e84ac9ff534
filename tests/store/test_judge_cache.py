from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.store.database import open_database
from evalmeta.store.judge_cache import FolderRatings, MemoryRatings, Ratings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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


def test_a_folder_keeps_texts_in_its_database_and_opens_it_only_if_needed(tmp_path: Path) -> None:
    ratings = FolderRatings(tmp_path)
    ratings.close()
    assert [*tmp_path.iterdir()] == []
    ratings.keep("a", "said")
    ratings.close()
    again = FolderRatings(tmp_path)
    assert again.find("a") == "said"
    again.close()


def test_memory_drops_the_oldest_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MEMORY_RATINGS", 2)
    ratings = MemoryRatings()
    for key in "abc":
        ratings.keep(key, "said")
    assert [ratings.find(key) for key in "abc"] == [None, "said", "said"]
