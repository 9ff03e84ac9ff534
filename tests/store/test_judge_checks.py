from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.model.statistics import JudgeCheck
from evalmeta.store.judge_checks import find_check, keep_check

if TYPE_CHECKING:
    from pathlib import Path

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
