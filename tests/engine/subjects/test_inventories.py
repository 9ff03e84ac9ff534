from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of, members_from, tools_of
from evalmeta.errors import SubjectError

if TYPE_CHECKING:
    from evalmeta.model.coverage import Inventory

LOOK_UP = Tool("look_up", " Looks\n it  up ")


class Clerk:
    def __init__(self, *others: Clerk) -> None:
        self.others = [*others]


def rows(inventory: Inventory) -> list[tuple[str, str, str]]:
    return [(part.kind, part.topic, part.name) for part in inventory.parts]


def test_an_agent_without_others_has_actions_and_no_topic() -> None:
    inventory = inventory_of([Member("desk", (LOOK_UP, LOOK_UP))])
    assert rows(inventory) == [("action", "", "look_up")]
    assert inventory.start == ""
    assert inventory.parts[0].description == "Looks it up"


def test_agents_that_are_reached_are_topics_and_conversations_begin_at_the_first() -> None:
    inventory = inventory_of([Member("desk", (LOOK_UP,), is_reached=False), Member("clerk", (LOOK_UP,), words=("c",))])
    assert rows(inventory) == [("topic", "", "clerk"), ("action", "desk", "look_up"), ("action", "clerk", "look_up")]
    assert (inventory.start, inventory.topic_named("C")) == ("desk", "clerk")


def test_agents_that_hand_over_to_each_other_are_found_once() -> None:
    first = Clerk(second := Clerk(third := Clerk()))
    third.others.append(first)
    assert members_from(first, lambda clerk: clerk.others) == [first, second, third]  # type: ignore[attr-defined]


def test_an_endless_row_of_agents_is_an_error() -> None:
    with pytest.raises(SubjectError, match="more than 10,000 agents"):
        members_from(Clerk(), lambda _: [Clerk()])


def test_too_many_tools_are_an_error() -> None:
    tools = tuple(Tool(f"tool_{number}") for number in range(limits.MAX_AGENT_PARTS + 1))
    with pytest.raises(SubjectError, match="more than 10,000 topics and tools"):
        inventory_of([Member("desk", tools)])


def test_functions_and_objects_with_a_name_are_tools() -> None:
    def refund() -> None:
        """Pay back."""

    assert tools_of("desk", [refund, LOOK_UP]) == (Tool("refund", "Pay back."), LOOK_UP)


def test_a_tool_without_a_name_is_an_error_and_not_left_out() -> None:
    with pytest.raises(SubjectError, match="the agent desk has a tool without a name: dict"):
        tools_of("desk", [{"type": "web_search"}])
