"""`evalmeta test mark` and `evalmeta test marks`, from a run to the check of a rater."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = "def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'It arrives on Tuesday.'}\n"
SPEC = "subject: desk:answer\ncases:\n- input: When?\n  expectedOutcome: It arrives on Monday.\n  topic: Orders\n"
CASE = ("--job-id", "latest", "--case", "1")


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC)
    assert evalmeta("run", "orders.yaml").code == 100


def test_judgements_are_listed_and_exported_for_the_check_of_raters(tmp_path: Path, evalmeta: Program) -> None:
    note = ("--note", "Tuesday is fine: sk-abcdefghijklmnopqrstuvwxyz")
    assert evalmeta("test", "mark", "wrong", *CASE, "--expectation", "Response", *note).code == 0
    assert evalmeta("test", "mark", "right", *CASE, "--expectation", "Topic").code == 0
    listed = evalmeta("test", "marks", "--job-id", "latest").out
    assert "Tuesday is fine: [secret]" in listed
    assert listed.endswith("People agreed with 1 of 2 decided results.\n")
    exported = evalmeta("test", "marks", "--export", "pairs.jsonl")
    assert exported.out == "Created pairs.jsonl: 1 labelled pair.\n"
    assert "1 result skipped: it was not rated by a rater" in exported.err
    assert json.loads((tmp_path / "pairs.jsonl").read_text())["right"] is True
    checked = json.loads(evalmeta("rater", "check", "pairs.jsonl", "--json").out)
    assert checked["status"] == 0


def test_an_undecided_result_is_judged_by_what_it_should_be_and_exported(tmp_path: Path, evalmeta: Program) -> None:
    (tmp_path / "orders.yaml").write_text(SPEC + "  metrics: [coherence]\n")
    evalmeta("run", "orders.yaml")
    place = (*CASE, "--expectation", "coherence")
    refused = evalmeta("test", "mark", "wrong", *place)
    assert (refused.code, "was not decided" in refused.err, "pass or fail" in refused.err) == (2, True, True)
    assert evalmeta("test", "mark", "fail", *place, "--note", "No day.").code == 0
    assert "should fail" in evalmeta("test", "marks").out
    assert "People marked" not in evalmeta("test", "results", "--job-id", "latest").err
    evalmeta("test", "marks", "--export", "pairs.jsonl", "--metric", "coherence")
    pair = json.loads((tmp_path / "pairs.jsonl").read_text())
    assert (pair["actual"], pair["right"], pair["reason"]) == ("It arrives on Tuesday.", False, "No day.")
    assert evalmeta("rater", "check", "pairs.jsonl", "--metric", "coherence").code == 0


def test_a_judgement_changes_no_verdict_and_can_be_removed(evalmeta: Program) -> None:
    before = evalmeta("test", "results", "--job-id", "latest").out
    evalmeta("test", "mark", "wrong", *CASE, "--expectation", "Response")
    after = evalmeta("test", "results", "--job-id", "latest")
    assert after.out == before
    assert "People marked 1 verdict as wrong. List them: evalmeta test marks --job-id" in after.err
    removed = evalmeta("test", "mark", *CASE, "--expectation", "Response", "--remove", "--json")
    assert json.loads(removed.out)["result"]["judgement"] is None
    assert evalmeta("test", "marks").out == "Nobody has judged a result here.\n"


def test_reset_deletes_judgements_with_their_runs(evalmeta: Program) -> None:
    evalmeta("test", "mark", "wrong", *CASE, "--expectation", "Response")
    evalmeta("org", "reset", "--no-prompt")
    assert json.loads(evalmeta("test", "marks", "--json").out)["result"]["marks"] == []


def test_a_call_without_a_judgement_or_without_anything_to_export_is_refused(evalmeta: Program) -> None:
    assert "Give one of right, wrong, pass, fail and --remove." in evalmeta("test", "mark", *CASE).err
    refused = evalmeta("test", "marks", "--export", "pairs.jsonl")
    assert (refused.code, "a judgement of a result of bot_response_rating cannot be found" in refused.err) == (2, True)
