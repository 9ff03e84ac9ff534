"""Handoffs: the agent passed the conversation on to the expected one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import judged, undecided

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated import Action
    from evalmeta.model.run import TestResult

__all__ = ["score_handoff"]

# Where one action serves all agents it is transfer_to_agent with an argument; elsewhere there is one for each of them.
_TRANSFER: Final = "transfer_to_"
_TO_ARGUMENT: Final = "transfer_to_agent"
_ARGUMENTS: Final = ("agent_name", "agent")


def score_handoff(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Passes when the last transfer among the actions names the expected agent; case counts. The score is 1 or 0.

    Without a transfer it is undecided: not every subject reports them.
    """
    expected = (expectation.expected_value or "").strip()
    if not expected:
        return undecided(expectation, "no expectedValue: there is no agent to compare with")
    named = [name for action in exchange.generated.actions if (name := _agent_of(action))]
    if not named:
        explanation = (
            "the answer tells of no transfer: no action transfer_to_agent, with agent_name, or transfer_to_NAME"
        )
        return undecided(expectation, explanation, expected=expected)
    actual = named[-1]
    passed = actual == expected
    explanation = f"the agent passed on to {actual}" + ("" if passed else f", not to {expected}")
    return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation)


def _agent_of(action: Action) -> str:
    if action.name == _TO_ARGUMENT and isinstance(action.input, Mapping):
        given = (action.input.get(name) for name in _ARGUMENTS)
        return next((each for each in given if isinstance(each, str)), "")
    return action.name.removeprefix(_TRANSFER) if action.name.startswith(_TRANSFER) else ""
