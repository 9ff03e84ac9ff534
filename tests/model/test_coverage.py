"""A case covers the parts of an agent that it expects, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.agent_script.parser import parse_script
from evalmeta.agent_script.parts import script_parts
from evalmeta.model.coverage import (
    AgentCoverage,
    Conversation,
    CoveredTurn,
    Inventory,
    PartCoverage,
    TestedCase,
    cover,
    touch,
)

if TYPE_CHECKING:
    from evalmeta.model.agent_parts import AgentPart

SCRIPT = """\
start_agent router:
    description: "Routes"
    reasoning:
        actions:
            go_to_loans: @utils.transition to @subagent.Loans
            go_to_fees: @utils.transition to @subagent.Fees
                available when @variables.x
            person: @utils.escalate
            note: @utils.setVariables
                available when @variables.x
subagent Loans:
    label: "Loan desk"
    description: "Loans
        of books"
    before_reasoning:
        if @variables.x:
            transition to @subagent.Fees
    actions:
        Find:
            label: "Find loans"
        Renew:
            description: "Renews"
    reasoning:
        actions:
            find: @actions.Find
            renew: @actions.Renew
                available when @variables.x
            back: @subagent.router
subagent Fees:
    actions:
        Find:
            description: "Finds fees"
    reasoning:
        actions:
            stay: @utils.transition to @subagent.Fees
connected_subagent Partner:
    target: "agent://Partner"
"""
AGENT = Inventory(tuple(script_parts(parse_script(SCRIPT)[0], "Desk.agent")), "router")


def name(part: AgentPart) -> str:
    return f"{part.kind} {part.topic}.{part.name}".replace(" .", " ")


def used(*turns: CoveredTurn, topic: str = "") -> set[str]:
    return {name(part) for part in touch(AGENT, Conversation(turns, topic)).used}


def unused(*turns: CoveredTurn) -> set[str]:
    return {name(part) for part in touch(AGENT, Conversation(turns)).unused}


def test_the_parts_of_a_script() -> None:
    assert [name(part) for part in AGENT.parts] == [
        "topic Loans",
        "topic Fees",
        "action Partner",
        "action Loans.Find",
        "action Loans.Renew",
        "action Fees.Find",
        "transition router.Loans",
        "transition router.Fees",
        "transition router.human",
        "guard router.go_to_fees",
        "transition Loans.Fees",
        "transition Loans.router",
        "guard Loans.renew",
    ]
    assert AGENT.parts[0].place == "Desk.agent:11"


@pytest.mark.parametrize(
    "script",
    ["start_agent only:\n    actions:\n        Act:\n            label: 'A'\n", "start_agent only:\n    label: 'A'\n"],
    ids=["with an action", "without entries"],
)
def test_a_start_that_does_more_than_lead_elsewhere_is_a_topic(script: str) -> None:
    assert [part.name for part in script_parts(parse_script(script)[0], "") if part.kind == "topic"] == ["only"]


TO_LOANS = {"topic Loans", "transition router.Loans"}
TO_FEES = {"topic Fees", "transition router.Fees", "guard router.go_to_fees"}
LOANS_TO_FEES = {*TO_LOANS, "topic Fees", "transition Loans.Fees"}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([CoveredTurn("Loans")], TO_LOANS),
        ([CoveredTurn("loan desk")], TO_LOANS),
        ([CoveredTurn("p_16jPl000000GwEX_Loans_16j8eeef13560aa")], TO_LOANS),
        ([CoveredTurn("Off_Topic")], set()),
        ([CoveredTurn(actions=("Renew",))], {"action Loans.Renew", "guard Loans.renew"}),
        ([CoveredTurn(actions=("Find",))], {"action Loans.Find", "action Fees.Find"}),
        ([CoveredTurn("Fees", ("Find",))], {*TO_FEES, "action Fees.Find"}),
        ([CoveredTurn("Loans", ())], TO_LOANS),
        ([CoveredTurn("Loans", (), optional=("Renew",))], TO_LOANS),
        ([CoveredTurn(not_actions=("Renew",))], set()),
        ([CoveredTurn(handoffs=("human",), is_whole=True)], {"transition router.human"}),
        ([CoveredTurn("Fees", handoffs=("Loans", "Fees"), is_whole=True)], LOANS_TO_FEES),
        ([CoveredTurn("Loans"), CoveredTurn("Fees")], LOANS_TO_FEES),
        ([CoveredTurn("Loans"), CoveredTurn(), CoveredTurn("Loans")], TO_LOANS),
    ],
)
def test_what_a_conversation_uses(turns: list[CoveredTurn], expected: set[str]) -> None:
    assert used(*turns) == expected


def test_a_conversation_begins_at_the_last_topic_of_its_history() -> None:
    assert used(CoveredTurn("Fees"), topic="Loans") == {"topic Fees", "transition Loans.Fees"}


def test_handoffs_of_a_turn_go_on_from_the_turn_before() -> None:
    seen = used(CoveredTurn("Loans", handoffs=("Loans",)), CoveredTurn("Fees", handoffs=("Fees",)))
    assert "transition Loans.Fees" in seen
    assert "transition router.Fees" not in seen


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (CoveredTurn("Loans", ()), {"guard Loans.renew"}),
        (CoveredTurn("Loans", ("Find",)), {"guard Loans.renew"}),
        (CoveredTurn("Loans", (), optional=("Find",)), {"guard Loans.renew"}),
        (CoveredTurn("Loans", (), optional=("Renew",)), set()),
        (CoveredTurn("Loans", ("Find",), allows_others=True), set()),
        (CoveredTurn("Loans", ("Find",), ("Loans",), ("Renew",), allows_others=True), {"guard Loans.renew"}),
        (CoveredTurn("Loans", not_actions=("Re*",)), {"guard Loans.renew"}),
        (CoveredTurn("Loans", not_actions=("Find",)), set()),
        (CoveredTurn("Loans"), set()),
        (CoveredTurn("Loans", ("Renew",)), set()),
        (CoveredTurn("Fees", ()), set()),
        (CoveredTurn("router"), {"guard router.go_to_fees"}),
    ],
)
def test_the_other_side_of_a_guard_is_its_topic_without_the_entry(turn: CoveredTurn, expected: set[str]) -> None:
    assert unused(turn) == expected


def test_a_guard_is_covered_by_both_sides() -> None:
    one = TestedCase("a:1", Conversation([CoveredTurn("Loans", ("Renew",))]))
    other = TestedCase("a:2", Conversation([CoveredTurn("Loans", ())]))

    def guard(*cases: TestedCase) -> tuple[bool, tuple[str, ...]]:
        [row] = [row for row in cover(AGENT, cases, []) if name(row.part) == "guard Loans.renew"]
        return row.is_covered, row.lacks

    assert guard(one, other) == (True, ())
    assert guard(one) == (False, ("not used",))
    assert guard(other) == (False, ("used",))
    assert guard() == (False, ("used", "not used"))


def test_cases_that_do_not_count_and_runs_cover_nothing() -> None:
    case = TestedCase("a:1", Conversation([CoveredTurn("Loans", ("Find",))]), "in quarantine")
    rows = cover(AGENT, [case], [case.conversation, case.conversation])
    assert not any(row.is_covered for row in rows)
    loans = rows[0]
    assert (loans.others, loans.cases, loans.seen) == (("a:1",), (), 2)


def test_nothing_to_cover_is_not_everything() -> None:
    assert AgentCoverage("Desk", ()).share == 0


def test_a_share_that_is_a_percentage_is_not_below_it() -> None:
    row = PartCoverage(AGENT.parts[0])
    coverage = AgentCoverage("Desk", (*[replace(row, cases=("a:1",))] * 29, *[row] * 21))
    assert (coverage.is_below(58), coverage.is_below(58.01)) == (False, True)
    assert AgentCoverage("Desk", ()).is_below(0)
