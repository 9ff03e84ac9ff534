from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_script.test_changes import DESK
from evalmeta.api.runs.affected_cases import AgentChange, is_affected, script_change
from evalmeta.formats.testspec import read_spec

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case
    from evalmeta.model.run_options import ActionMatch

BEFORE = DESK.encode()
ALL = {"Loans", "Fees", "Rooms"}
# Loans leads to Fees, other than by the start; Renew is an action of Loans, and Log one of all.


def case(line: str) -> Case:
    spec = read_spec(f"subject: Desk\ntestCases:\n- {line}\n".encode(), label="desk.yaml")
    [only] = spec.document("desk").evaluation.cases
    return only


def change(*subagents: str, doubles: tuple[str, ...] = ()) -> AgentChange:
    found = script_change(BEFORE, BEFORE)
    assert found is not None
    return replace(found, subagents=frozenset(subagents), doubles=frozenset(doubles))


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("{input: a, topic: Loans}", {"Loans"}),
        ("{input: a, expectedTopic: loans}", {"Loans"}),
        ("{input: a, topic: p_16jDesk_Loans_16j000000000}", {"Loans"}),
        ("{input: a, topic: Fees}", {"Loans", "Fees"}),
        ("{input: a, topic: Rooms}", {"Rooms"}),
        ("{input: a, topic: router}", {"Loans", "Rooms"}),
        ("{input: a, topic: Elsewhere}", ALL),
        ("{input: a, actions: [Renew]}", {"Loans", "Fees"}),
        ("{input: a, topic: Loans, actions: [Renew]}", {"Loans"}),
        ("{input: a, topic: Rooms, actions: []}", {"Rooms"}),
        ("{input: a, topic: Rooms, actions: [Renew]}", {"Rooms", "Loans"}),
        ("{input: a, topic: Rooms, actions: [Elsewhere]}", ALL),
        ("{input: a, actions: [Log]}", ALL),
        ("{input: a, actions: [Elsewhere]}", ALL),
        ("{input: a, actions: []}", ALL),
        ("{input: a, not_actions: [Renew]}", ALL),
        ("{input: a, contains: Done}", ALL),
        ("{input: a, handoffs: [Rooms]}", {"Rooms"}),
        ("{input: a, handoffs: [Fees]}", {"Fees"}),
        ("{input: a, handoffs: [Loans, Fees], topic: Fees}", {"Loans", "Fees"}),
        ("{input: a, handoffs: [Elsewhere]}", ALL),
        ("{input: a, handoffs: [human]}", ALL),
        ("{input: a, topic: Rooms, handoffs: [human]}", {"Rooms"}),
        ("{turns: [{input: a, topic: Rooms}, {input: b, contains: Done}]}", ALL),
        ("{turns: [{input: a, topic: Rooms}, {input: b, topic: Fees}]}", ALL),
        ("{turns: [{input: a, topic: Rooms}, {input: b, topic: Loans}]}", {"Rooms", "Loans"}),
        ("{input: a, topic: Rooms, conversationHistory: [{role: agent, message: b, topic: Fees}]}", ALL),
    ],
)
def test_a_change_of_subagents_affects_the_cases_that_expect_them_and_those_that_leave_it_open(
    line: str, names: set[str]
) -> None:
    affected = {name for name in ALL if is_affected(case(line), change(name), match="exact")}
    assert affected == names


@pytest.mark.parametrize(
    ("line", "doubles"),
    [
        ("{input: a, actions: [Renew]}", {"Renew"}),
        ("{input: a, topic: Loans, actions: [renew, Log]}", {"Renew", "Log"}),
        ("{input: a, topic: Loans}", {"Renew", "Log", "Other"}),
        ("{input: a, actions: []}", {"Renew", "Log", "Other"}),
        ("{input: a, contains: Done}", {"Renew", "Log", "Other"}),
        ("{input: a, actions: [Renew], action_match: superset}", {"Renew", "Log", "Other"}),
        ("{input: a, actions: [Renew], action_match: subset}", {"Renew", "Log", "Other"}),
        ("{turns: [{input: a, actions: [Renew]}, {input: b, topic: Loans}]}", {"Renew", "Log", "Other"}),
        ("{turns: [{input: a, actions: [Renew]}, {input: b, actions: [Log]}]}", {"Renew", "Log"}),
    ],
)
def test_a_change_of_a_double_affects_the_cases_that_expect_its_action_and_those_that_name_none(
    line: str, doubles: set[str]
) -> None:
    names = ("Renew", "Log", "Other")
    affected = {name for name in names if is_affected(case(line), change(doubles=(name,)), match="exact")}
    assert affected == doubles


@pytest.mark.parametrize(("match", "is_changed"), [("exact", False), ("superset", True)])
def test_how_actions_match_by_default_decides_whether_a_case_says_all_of_them(
    match: ActionMatch, *, is_changed: bool
) -> None:
    assert is_affected(case("{input: a, actions: [Renew]}"), change(doubles=("Log",)), match=match) is is_changed


def test_tests_may_use_the_names_of_both_versions_of_a_renamed_subagent() -> None:
    renamed = script_change(BEFORE, DESK.replace("subagent Rooms:", "subagent Halls:").encode())
    assert renamed is not None
    assert renamed.words == "the subagents Halls, Rooms"
    assert is_affected(case("{input: a, topic: Rooms}"), renamed, match="exact")
    assert is_affected(case("{input: a, topic: Halls}"), renamed, match="exact")
    assert not is_affected(case("{input: a, topic: Fees}"), renamed, match="exact")


def test_a_way_that_was_removed_still_counts() -> None:
    without = script_change(BEFORE, DESK.replace("            pay: @utils.transition to @subagent.Fees\n", "").encode())
    assert without is not None
    assert is_affected(case("{input: a, topic: Fees}"), without, match="exact")


@pytest.mark.parametrize(
    "after", [b"", b"start_agent", b"\xff", BEFORE + b"subagent\n", BEFORE.replace(b"number = 3", b"number = 4")]
)
def test_a_script_that_cannot_be_read_or_changed_in_what_is_shared_may_affect_all(after: bytes) -> None:
    assert script_change(BEFORE, after) is None
    assert script_change(after, BEFORE) is None


def test_what_changed_is_said_in_words() -> None:
    assert change("Loans", doubles=("Renew", "Log")).words == "the subagent Loans and the doubles of Log, Renew"
    assert change().words == ""
