from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.raters.labels import Labels, Pair, read_pairs, write_pairs
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
    assert read_pairs(written(tmp_path, line), labels=Labels(threshold=3))[0].right is right


def test_our_own_names_come_first(tmp_path: Path) -> None:
    line = json.dumps({"expected": "a", "reference": "x", "actual": "b", "output": "y", "right": True, "score": 0})
    assert read_pairs(written(tmp_path, line)) == (Pair("a", "b", right=True),)


def test_errors_have_the_class_that_the_caller_needs(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        read_pairs(tmp_path / "no.jsonl", raises=SettingsError)


CHOICES = {"good": 5.0, "partial": 3.0, "poor": 1.0}


@pytest.mark.parametrize(("label", "right"), [("partial", True), ("poor", False)])
def test_the_named_verdicts_of_a_rater_can_be_labels(tmp_path: Path, label: str, *, right: bool) -> None:
    line = json.dumps({"expected": "a", "actual": "b", "label": label})
    file = written(tmp_path, line)
    assert read_pairs(file, labels=Labels(choices=CHOICES)) == (Pair("a", "b", right, choice=label),)
    with pytest.raises(UsageError, match=r"'label' is '\w+', but must be true or false"):
        read_pairs(file)


def test_another_passing_score_changes_what_named_verdicts_mean(tmp_path: Path) -> None:
    file = written(tmp_path, json.dumps({"expected": "a", "actual": "b", "label": "partial"}))
    assert not read_pairs(file, labels=Labels(choices=CHOICES, passing=4.0))[0].right


RESULTS = """\
utterance,expectation,label,case_verdict,verdict,score,expected,actual,explanation,right
When?,output_validation,Response,FAILED,FAILURE,0,On Monday.,'=Soon,days differ,no
When?,output_validation,Response,PASSED,PASS,5,On Monday.,On Monday.,same,
When?,coherence,Coherence,PASSED,PASS,5,,On Monday.,fine,yes
"""


def test_results_of_evalmeta_are_pairs_where_a_person_has_added_a_label(tmp_path: Path) -> None:
    assert read_pairs(written(tmp_path, RESULTS, "results.csv")) == (
        Pair("On Monday.", "=Soon", right=False, utterance="When?"),
    )


def test_results_of_another_metric_are_pairs_of_that_metric(tmp_path: Path) -> None:
    pairs = read_pairs(written(tmp_path, RESULTS, "results.csv"), metric="coherence")
    assert pairs == (Pair("", "On Monday.", right=True, utterance="When?"),)


def test_the_verdicts_of_results_are_no_labels(tmp_path: Path) -> None:
    text = "\n".join(line.rpartition(",")[0] for line in RESULTS.splitlines())
    with pytest.raises(UsageError, match="has no labelled pairs"):
        read_pairs(written(tmp_path, text, "results.csv"))


def test_written_pairs_are_read_back(tmp_path: Path) -> None:
    pairs = (Pair("a\nb", "c", right=True, utterance="u"), Pair("ä", "", right=False, reason="No answer."))
    assert read_pairs(written(tmp_path, write_pairs(pairs))) == pairs
