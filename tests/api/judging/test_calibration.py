from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.judging.calibration import check_rater
from evalmeta.errors import ProjectError, SettingsError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

LINE = '{"expected": "It is 5.", "actual": "It is 6.", "right": false}\n'


def written(folder: Path, text: str, name: str = "pairs.jsonl") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_rules_need_no_project(tmp_path: Path) -> None:
    checked = asyncio.run(check_rater(written(tmp_path, LINE), start=tmp_path))
    assert [one.rule for one in checked.rated] == ["numbers"]


def test_a_rater_of_the_project_can_be_checked(tmp_path: Path) -> None:
    written(tmp_path, '[raters.own]\nadapter = "rules"\n', "evalmeta.toml")
    file = written(tmp_path, LINE)
    assert asyncio.run(check_rater(file, rater="own", start=tmp_path)).rated[0].is_right
    assert asyncio.run(check_rater(file, start=tmp_path)).rated[0].is_right


def test_a_label_threshold_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="label_threshold is nan"):
        asyncio.run(check_rater(written(tmp_path, LINE), start=tmp_path, label_threshold=math.nan))


def test_an_unknown_rater_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, LINE)
    with pytest.raises(ProjectError):
        asyncio.run(check_rater(file, rater="own", start=tmp_path))
    written(tmp_path, "", "evalmeta.toml")
    with pytest.raises(SettingsError, match="the rater 'own' is not configured"):
        asyncio.run(check_rater(file, rater="own", start=tmp_path))
