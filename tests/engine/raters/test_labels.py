from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.raters.labels import Pair, read_pairs, write_pairs
from evalmeta.errors import SettingsError, UsageError

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
        ("p.jsonl", '{"expected": "a", "actual": "b", "score": 4}', "1: 'score' is the score 4; add --label-threshold"),
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


EXPORTS = {
    "MLflow": ("inputs,outputs,expected_response,label", "When?,Soon.,On Monday.,incorrect"),
    "Databricks": ("request,response,expected_response,correct", "When?,Soon.,On Monday.,no"),
    "LangSmith": ("input,output,reference,score", "When?,Soon.,On Monday.,0"),
    "by hand": ("question,answer,ideal,human", "When?,Soon.,On Monday.,Fail"),
}


@pytest.mark.parametrize("lines", EXPORTS.values(), ids=EXPORTS)
def test_names_and_labels_of_other_systems_are_read(tmp_path: Path, lines: tuple[str, str]) -> None:
    file = written(tmp_path, "\n".join(lines), "export.csv")
    assert read_pairs(file) == (Pair("On Monday.", "Soon.", right=False, utterance="When?"),)


@pytest.mark.parametrize(
    ("label", "right"),
    [(True, True), (1, True), (1.0, True), ("Good", True), (" yes ", True), (False, False), (0, False), ("bad", False)],
)
def test_labels_can_be_booleans_numbers_and_words(tmp_path: Path, label: object, *, right: bool) -> None:
    line = json.dumps({"expected": "a", "actual": "b", "label": label})
    assert read_pairs(written(tmp_path, line))[0].right is right


@pytest.mark.parametrize(("score", "right"), [(1, False), (2.9, False), (3, True), ("4", True)])
def test_a_threshold_turns_scores_into_labels(tmp_path: Path, score: object, *, right: bool) -> None:
    line = json.dumps({"expected": "a", "actual": "b", "score": score})
    assert read_pairs(written(tmp_path, line), threshold=3)[0].right is right


def test_our_own_names_come_first(tmp_path: Path) -> None:
    line = json.dumps({"expected": "a", "reference": "x", "actual": "b", "output": "y", "right": True, "score": 0})
    assert read_pairs(written(tmp_path, line)) == (Pair("a", "b", right=True),)


def test_errors_have_the_class_that_the_caller_needs(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        read_pairs(tmp_path / "no.jsonl", raises=SettingsError)


def test_written_pairs_are_read_back(tmp_path: Path) -> None:
    pairs = (Pair("a\nb", "c", right=True, utterance="u"), Pair("ä", "", right=False, reason="No answer."))
    assert read_pairs(written(tmp_path, write_pairs(pairs))) == pairs
