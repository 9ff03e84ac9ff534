"""A museum's desk and the template of its labels: what the definitions in this folder test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PRICES = {"adult": 14, "student": 7}


def answer(
    utterance: str, *, history: Sequence[Mapping[str, str | None]], context: Mapping[str, str]
) -> dict[str, object]:
    """Sells tickets, moves bookings and passes groups on to the agent for events."""
    question = utterance.lower()
    if "group" in question:
        action = {"name": "transfer_to_agent", "input": {"agent_name": "Museum_Events"}}
        outcome = "I will pass you on to our events team."
        return {"topic": "Groups", "actions": [action], "outcome": outcome}
    if "move" in question and history:
        actions = ["FindBooking", "MoveBooking"]
        return {"topic": "Bookings", "actions": actions, "outcome": "Your booking M-204 is now for Sunday at 11:00."}
    price = PRICES[context.get("VisitorType", "adult")]
    return {"topic": "Tickets", "actions": ["GetPrice"], "outcome": f"A ticket costs {price} euros."}


def write_label(_utterance: str, *, context: Mapping[str, str]) -> str:
    """Fills in the template of an exhibit's label."""
    return f"{context['Input:Title']}, {context['Input:Year']}. Oil on canvas."
