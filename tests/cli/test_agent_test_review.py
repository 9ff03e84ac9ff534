"""`evalmeta run`, `validate`, `convert` and `test accept` with cases that a person must review."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import evalmeta as library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
def answer(utterance):
    if "crash" in utterance:
        raise ValueError("down")
    return {"outcome": utterance, "topic": "Orders"}
"""
WHY = "the case is marked for review: it would"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").write_text('[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, *reviewed: str, counted: tuple[str, ...] = (), mark: str = "  review: true\n") -> None:
    """Write a spec whose cases expect `good`; the first ones are to be reviewed."""
    cases = [f"- input: {text}\n  contains: good\n{mark}" for text in reviewed]
    cases += [f"- input: {text}\n  contains: good\n" for text in counted]
    (folder / "t.yaml").write_text("subject: Desk\ntestCases:\n" + "".join(cases))


@pytest.mark.parametrize("reviewed", ["good", "bad"])
@pytest.mark.parametrize(("counted", "code"), [((), 100), (("good", "good"), 0), (("bad", "good"), 100)])
def test_a_case_to_review_never_passes_and_never_fails(
    folder: Path, evalmeta: Program, reviewed: str, counted: tuple[str, ...], code: int
) -> None:
    write(folder, reviewed, counted=counted)
    done = evalmeta("run", "t.yaml", "--json")
    assert done.code == code
    [run] = json.loads(done.out)["result"]
    assert run["evalmeta"]["counts"]["undecided"] == 1
    assert run["testCases"][0]["verdict"] == "UNDECIDED"
    [result] = run["testCases"][0]["testResults"]
    assert (result["expectedValue"], result["actualValue"]) == ("good", reviewed)
    assert f"{WHY} {'pass' if reviewed == 'good' else 'fail'}; " in json.dumps(result)


def test_a_case_to_review_without_checks_is_undecided_too(folder: Path, evalmeta: Program) -> None:
    (folder / "t.yaml").write_text("subject: Desk\ntestCases:\n- input: good\n  review: true\n")
    assert ", 1 undecided" in evalmeta("run", "t.yaml").out


def test_an_agent_that_breaks_is_an_error_also_in_review(folder: Path, evalmeta: Program) -> None:
    write(folder, "crash", counted=("good",))
    assert evalmeta("run", "t.yaml").code == 1


def test_undecided_fail_makes_a_case_to_review_fail(folder: Path, evalmeta: Program) -> None:
    write(folder, "good", counted=("good", "good"))
    assert evalmeta("run", "t.yaml", "--undecided", "fail").code == 100


@pytest.mark.parametrize("name", ["junit.xml", "r.html", "r.md", "r.json", "r.csv", "r.tap", "r.ctrf.json"])
def test_every_report_says_why_the_case_is_undecided(folder: Path, evalmeta: Program, name: str) -> None:
    write(folder, "good", counted=("good",))
    evalmeta("run", "t.yaml", "--report", name)
    assert "the case is marked for review" in (folder / name).read_text()


def test_validate_warns_of_a_case_to_review_with_its_line(folder: Path, evalmeta: Program) -> None:
    write(folder, "good", counted=("good",))
    done = evalmeta("validate", "t.yaml", "--result-format", "sarif")
    [result] = json.loads(done.out)["runs"][0]["results"]
    assert (done.code, result["ruleId"], result["level"]) == (0, "review-pending", "warning")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


@pytest.mark.parametrize("value", ["", " yes please", " 1"])
def test_a_mark_that_is_not_true_or_false_is_an_error(folder: Path, evalmeta: Program, value: str) -> None:
    write(folder, "good", mark=f"  review:{value}\n")
    done = evalmeta("run", "t.yaml")
    assert done.code == 2
    assert "review" in done.err


def test_a_reviewed_case_counts_again(folder: Path, evalmeta: Program) -> None:
    write(folder, "good", mark="  review: false\n")
    assert evalmeta("run", "t.yaml").code == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "input,contains,review\ngood,good,true\ngood,good,\n"),
        ("t.jsonl", '{"input": "good", "contains": "good", "review": true}\n{"input": "good", "contains": "good"}\n'),
    ],
)
def test_tables_and_json_lines_hold_the_mark(folder: Path, evalmeta: Program, name: str, text: str) -> None:
    (folder / name).write_text(text)
    done = evalmeta("run", name, "--agent", "Desk")
    assert ": 1 passed, 0 failed, 0 errors, 1 undecided" in done.out


def test_all_turns_of_a_conversation_are_to_be_reviewed(folder: Path, evalmeta: Program) -> None:
    turns = "  - {input: good, contains: good}\n  - {input: bad, contains: good}\n"
    (folder / "t.yaml").write_text(f"subject: Desk\ntestCases:\n- review: true\n  turns:\n{turns}")
    [run] = json.loads(evalmeta("run", "t.yaml", "--json").out)["result"]
    assert [result["result"] for result in run["testCases"][0]["testResults"]] == [None, None]


def test_rescoring_keeps_a_case_to_review_undecided(folder: Path, evalmeta: Program) -> None:
    write(folder, "good", counted=("good",))
    evalmeta("run", "t.yaml")
    assert ": 1 passed, 0 failed, 0 errors, 1 undecided" in evalmeta("test", "rescore", "latest").out


@pytest.mark.parametrize("target", ["definition", "testspec", "adk", "csv"])
def test_a_conversion_leaves_the_case_out_and_says_so(folder: Path, evalmeta: Program, target: str) -> None:
    write(folder, "surely", counted=("other",))
    done = evalmeta("convert", "t.yaml", "--to", target)
    assert "case 1: the whole case: a person must review it (review: true)" in done.err
    assert "surely" not in done.out
    assert "other" in done.out


def test_accept_changes_the_expectation_and_leaves_the_mark(folder: Path, evalmeta: Program) -> None:
    (folder / "t.yaml").write_text("subject: Desk\ntestCases:\n- input: good\n  topic: Returns\n  review: true\n")
    evalmeta("run", "t.yaml")
    done = evalmeta("test", "accept", "--job-id", "latest", "--case", "1", "--yes")
    assert "would still be marked for review" in done.out + done.err
    assert (folder / "t.yaml").read_text().endswith("- input: good\n  topic: Orders\n  review: true\n")


def test_cases_of_python_can_be_marked() -> None:
    case = {"input": "good", "contains": "good", "review": True}
    finished = library.evaluate([case], lambda utterance: f"{utterance}!")
    assert [result.verdict for result in finished.run.cases] == ["UNDECIDED"]
    assert not finished.succeeded
