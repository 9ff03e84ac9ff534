from __future__ import annotations

from dataclasses import replace

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers import score
from evalmeta.engine.scorers.actions import score_handoff
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import EarlierTurn, TestResult, Verdict

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


def test_handoffs_that_the_agent_reports_count_instead_of_its_transfers() -> None:
    def told(*names: str) -> TestResult:
        generated = GeneratedData("", actions=(TOLD,), handoffs=names)
        return score_handoff(Expectation("agent_handoff_match", "Desk"), exchange(generated))

    assert told("Events", "Desk").verdict is Verdict.PASS
    assert (told().verdict, told().explanation) == (Verdict.FAILURE, "the agent handed off to no other, not to Desk")


TO_TRIAGE, TO_ORDERS = Action("transfer_to_agent", {"agent_name": "Triage"}), Action("transfer_to_Orders")


@pytest.mark.parametrize(
    ("turns", "verdict", "explanation"),
    [
        ([("Triage", None), ("Orders", None)], Verdict.PASS, "the handoffs are as expected"),
        ([("Triage", ()), ("Triage", ()), ("Orders", ())], Verdict.PASS, "the handoffs are as expected"),
        ([(None, (TO_TRIAGE, TO_ORDERS))], Verdict.PASS, "the handoffs are as expected"),
        ([("Orders", (TO_TRIAGE, TO_ORDERS))], Verdict.PASS, "the handoffs are as expected"),
        ([(None, (TO_TRIAGE, TO_ORDERS)), (None, ())], Verdict.PASS, "the handoffs are as expected"),
        ([("Triage", ())], Verdict.FAILURE, "handoff 2: expected Orders, got no other one"),
        ([("Orders", ())], Verdict.FAILURE, "handoff 1: expected Triage, got Orders"),
        (
            [("Triage", ()), ("Orders", ()), ("Refunds", ())],
            Verdict.FAILURE,
            "handoff 3: expected no other one, got Refunds",
        ),
        ([("", ())], Verdict.FAILURE, "handoff 1: expected Triage, got no other one"),
        ([(None, ())], Verdict.UNDECIDED, "the agent reports no handoffs: "),
        ([("Triage", ()), ("Orders", ()), (None, None)], Verdict.UNDECIDED, "the agent reports no handoffs in turn 3"),
        ([(None, (TO_TRIAGE, TO_ORDERS)), (None, None)], Verdict.UNDECIDED, "the agent reports no handoffs in turn 2"),
    ],
)
def test_handoffs_are_those_of_the_conversation_so_far(
    turns: list[tuple[str | None, tuple[Action, ...] | None]], verdict: Verdict, explanation: str
) -> None:
    *earlier, last = [GeneratedData("Done.", topic, actions) for topic, actions in turns]
    asked = exchange(last)._replace(earlier=tuple(EarlierTurn("Hi", generated) for generated in earlier))
    result = score(Expectation("handoffs", "['Triage', 'Orders']"), asked)
    assert isinstance(result, TestResult)
    assert (result.verdict, result.explanation[: len(explanation)]) == (verdict, explanation)


def test_no_handoffs_are_expected_only_of_an_agent_that_reports_them() -> None:
    none = Expectation("handoffs", "[]")
    verdicts = [score(none, exchange(GeneratedData("Hi", topic, ()))) for topic in ("", "Orders", None)]
    assert [result.verdict for result in verdicts if isinstance(result, TestResult)] == [
        Verdict.PASS,
        Verdict.FAILURE,
        Verdict.UNDECIDED,
    ]


REPORTED = ("Triage", "Orders")


@pytest.mark.parametrize(
    ("turns", "verdict", "explanation"),
    [
        ([GeneratedData("", "Other", (TOLD,), handoffs=REPORTED)], Verdict.PASS, "the handoffs are as expected"),
        (
            [
                GeneratedData("", handoffs=("Triage",)),
                GeneratedData("", handoffs=REPORTED),
                GeneratedData("", handoffs=()),
            ],
            Verdict.PASS,
            "the handoffs are as expected",
        ),
        ([GeneratedData("", "Triage"), GeneratedData("", handoffs=("Orders",))], Verdict.PASS, "the handoffs are"),
        ([GeneratedData("", "Triage", handoffs=())], Verdict.FAILURE, "handoff 1: expected Triage, got no other one"),
        (
            [GeneratedData("", handoffs=REPORTED), GeneratedData("")],
            Verdict.UNDECIDED,
            "the agent reports no handoffs in",
        ),
    ],
)
def test_reported_handoffs_of_a_turn_count_instead_of_its_topic_and_transfers(
    turns: list[GeneratedData], verdict: Verdict, explanation: str
) -> None:
    *earlier, last = [replace(turn, outcome="Done.") for turn in turns]
    asked = exchange(last)._replace(earlier=tuple(EarlierTurn("Hi", generated) for generated in earlier))
    result = score(Expectation("handoffs", "['Triage', 'Orders']"), asked)
    assert isinstance(result, TestResult)
    assert (result.verdict, result.explanation[: len(explanation)]) == (verdict, explanation)
