from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers.actions import score_handoff
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict

TOLD = Action("transfer_to_agent", {"agent_name": "Events"})


def judge(expected: str | None, *actions: Action) -> TestResult:
    return score_handoff(Expectation("agent_handoff_match", expected), exchange(GeneratedData("", actions=actions)))


@pytest.mark.parametrize(
    "action", [TOLD, Action("transfer_to_agent", {"agent": "Events"}), Action("transfer_to_Events")]
)
def test_the_agent_that_a_transfer_names_is_compared(action: Action) -> None:
    assert judge(" Events ", Action("Find"), action).verdict is Verdict.PASS
    assert judge("events", action).verdict is Verdict.FAILURE
    assert judge("Desk", action).explanation == "the agent handed off to Events, not to Desk"


def test_the_last_transfer_counts() -> None:
    assert judge("Desk", TOLD, Action("transfer_to_Desk")).actual == "Desk"


@pytest.mark.parametrize(
    "action", [Action("Find"), Action("transfer_to_agent"), Action("transfer_to_agent", {"id": 7})]
)
def test_without_a_reported_handoff_the_result_is_undecided(action: Action) -> None:
    result = judge("Events", action)
    assert (result.verdict, result.score) == (Verdict.UNDECIDED, None)
    assert "reported no handoff" in result.explanation


@pytest.mark.parametrize("expected", [None, " "])
def test_without_an_expected_agent_nothing_is_decided(expected: str | None) -> None:
    assert judge(expected, TOLD).verdict is Verdict.UNDECIDED
