"""Runs whose results cannot all be judged, as the command line reports them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
def answer(utterance):
    return "It will arrive on Friday."
"""
SPEC = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedOutcome: The agent tells the customer about the state of the order.
    metrics:
      - output_latency_milliseconds
"""
RUN = ("test", "run", "orders.yaml", "--subject", "desk:answer", "--wait")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain folder with an agent that returns text."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


ROUTED = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedTopic: Orders
    expectedActions: []
"""
REPORTING = """
def answer(utterance):
    return {"outcome": "It will arrive on Friday.", "topic": "", "actions": []}
"""


@pytest.mark.parametrize("profile", ["default", "testing-center"])
def test_a_plain_text_agents_topic_and_actions_are_undecided(evalmeta: Program, folder: Path, profile: str) -> None:
    (folder / "orders.yaml").write_text(ROUTED)
    done = evalmeta(*RUN, "--scoring", profile)
    assert done.code == 100
    assert "0 passed, 0 failed, 0 errors, 1 undecided" in done.out
    assert "the agent does not report its topic" in done.out
    assert "the agent does not report its actions; if it took none, it must return an empty list" in done.out


def test_unknown_and_empty_differ_in_the_journal_and_in_recorded_answers(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(ROUTED)
    (folder / "reporting.py").write_text(REPORTING)
    agents = {"desk:answer": [None, None], "reporting:answer": ["FAILURE", "PASS"]}
    for agent, verdicts in agents.items():
        done = evalmeta("test", "run", "orders.yaml", "--subject", agent, "--wait", "--json")
        first = json.loads(done.out)["result"][0]
        again = evalmeta("test", "rescore", first["evalmeta"]["runId"], "--json")
        (folder / "recorded.json").write_text(done.out)
        (folder / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "replay"\nfile = "recorded.json"\n')
        replayed = evalmeta("test", "run", "orders.yaml", "--subject", "Order_Desk", "--wait", "--json")
        for each in (done, again, replayed):
            [case] = json.loads(each.out)["result"][0]["testCases"]
            assert [result["result"] for result in case["testResults"][:2]] == verdicts


def test_a_case_with_only_undecided_and_measured_results_has_not_passed(evalmeta: Program) -> None:
    done = evalmeta(*RUN)
    assert done.code == 100
    assert "undecided 1 orders.yaml" in done.out
    assert "1 case: 0 passed, 0 failed, 0 errors, 1 undecided" in done.out
