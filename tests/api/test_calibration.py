from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.calibration import check_rater
from evalmeta.engine.raters.labels import Pair, read_pairs
from evalmeta.errors import ProjectError, SettingsError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

LINE = '{"expected": "It is 5.", "actual": "It is 6.", "right": false}\n'


def written(folder: Path, text: str, name: str = "pairs.jsonl") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_pairs_are_read_from_json_lines(tmp_path: Path) -> None:
    extra = '{"expected": "a", "actual": "b", "right": true, "utterance": "u", "rule": "same", "split": "s"}'
    assert read_pairs(written(tmp_path, f"{LINE}\n{extra}")) == (
        Pair("It is 5.", "It is 6.", right=False),
        Pair("a", "b", right=True, utterance="u", rule="same", split="s"),
    )


def test_pairs_are_read_from_csv(tmp_path: Path) -> None:
    text = 'expected,actual,right,split\n"It is\n5.",It is 6.,No,x\nb,c,true,\n'
    assert read_pairs(written(tmp_path, text, "pairs.csv")) == (
        Pair("It is\n5.", "It is 6.", right=False, split="x"),
        Pair("b", "c", right=True),
    )


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("p.jsonl", LINE + "{", r"p\.jsonl:2: is not valid JSON"),
        ("p.jsonl", "[1]", r"p\.jsonl:1: is not a JSON object"),
        ("p.jsonl", '{"actual": "b", "right": true}', "1: 'expected' is missing"),
        ("p.jsonl", '{"expected": 5, "actual": "b", "right": true}', "1: 'expected' is 5"),
        ("p.jsonl", '{"expected": "a", "actual": "b", "right": [1]}', r"1: 'right' is \[1\]"),
        ("p.jsonl", '{"expected": "a", "actual": "b", "score": 4}', "1: 'score' is the score 4; add --threshold"),
        ("p.jsonl", "", "has no labelled pairs"),
        ("p.csv", "expected,actual,right\na,b,maybe\n", "2: 'right' is 'maybe'"),
        ("p.csv", "expected,actual,right\na,b,true,c\n", "2: has more fields"),
        ("p.csv", "expected,actual,right\na,b\n", "2: 'right' is None"),
        ("p.csv", 'expected,actual,right\na,"b"c,true\n', "is not valid CSV"),
    ],
)
def test_an_invalid_line_is_reported_with_its_location(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_pairs(written(tmp_path, text, name))


def test_rules_need_no_project(tmp_path: Path) -> None:
    judged = asyncio.run(check_rater(written(tmp_path, LINE), start=tmp_path))
    assert [one.rule for one in judged] == ["numbers"]


def test_a_rater_of_the_project_can_be_checked(tmp_path: Path) -> None:
    written(tmp_path, '[raters.own]\nadapter = "rules"\n', "evalmeta.toml")
    file = written(tmp_path, LINE)
    assert asyncio.run(check_rater(file, rater="own", start=tmp_path))[0].is_right
    assert asyncio.run(check_rater(file, start=tmp_path))[0].is_right


def test_an_unknown_rater_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, LINE)
    with pytest.raises(ProjectError):
        asyncio.run(check_rater(file, rater="own", start=tmp_path))
    written(tmp_path, "", "evalmeta.toml")
    with pytest.raises(SettingsError, match="the rater 'own' is not configured"):
        asyncio.run(check_rater(file, rater="own", start=tmp_path))
