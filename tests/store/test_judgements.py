from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.model.statistics import JudgeCheck
from evalmeta.store.database import open_database
from evalmeta.store.judgements import FolderRatings, MemoryRatings, Ratings, find_check, keep_check
from stores import store_in

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
    before = open_database(store_in(folder))
    Ratings(before).keep("a", "said")
    before.close()
    after = open_database(store_in(folder))
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


JUDGE = ("llm m at http://127.0.0.1/v1", "v2, rubric 0123abcd")
CHECK = JudgeCheck(45, 50, 36, 40)


def test_the_latest_check_of_a_judge_is_kept(tmp_path: Path) -> None:
    keep_check(tmp_path, JUDGE, 3.0, JudgeCheck(1, 2, 1, 2))
    keep_check(tmp_path, JUDGE, 3.0, CHECK)
    assert JudgeCheck.read(find_check(tmp_path, JUDGE, 3.0)) == CHECK


@pytest.mark.parametrize(
    ("judge", "threshold"),
    [(("llm other", JUDGE[1]), 3.0), ((JUDGE[0], "v3"), 3.0), ((JUDGE[0], "v2, rubric 4567cdef"), 3.0), (JUDGE, 4.0)],
)
def test_another_model_prompt_rubric_or_threshold_has_no_check(
    tmp_path: Path, judge: tuple[str, str], threshold: float
) -> None:
    keep_check(tmp_path, JUDGE, 3.0, CHECK)
    assert find_check(tmp_path, judge, threshold) == ""


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"llm m": 1}'])
def test_a_damaged_file_has_no_checks_and_is_replaced(tmp_path: Path, damage: str) -> None:
    (tmp_path / "judge-checks.json").write_text(damage)
    assert find_check(tmp_path, JUDGE, 3.0) == ""
    keep_check(tmp_path, JUDGE, 3.0, CHECK)
    assert find_check(tmp_path, JUDGE, 3.0) == CHECK.text


@pytest.mark.parametrize("check", [JudgeCheck(0, 0, 3, 4), JudgeCheck(3, 4, 0, 0)])
def test_a_check_without_right_or_without_wrong_answers_corrects_nothing(tmp_path: Path, check: JudgeCheck) -> None:
    keep_check(tmp_path, JUDGE, 3.0, check)
    assert find_check(tmp_path, JUDGE, 3.0) == ""
