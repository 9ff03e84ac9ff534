"""Topics and handoffs: the agent selected the expected topic, and handed off to the expected agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import judged, undecided

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import Action
    from evalmeta.model.run import TestResult, TopicMatch


# Orgs name promoted topics p_<planner id>_<Name>_<hash>; both ids begin with the key prefix 16j.
_PROMOTED: Final = re.compile(r"p_16j[0-9A-Za-z]+_(\w+)_16j[0-9A-Za-z]+", re.ASCII)
# Some agents have one action transfer_to_agent with an argument, others have one action for each agent.
_TRANSFER: Final = "transfer_to_"
_TRANSFER_BY_ARGUMENT: Final = "transfer_to_agent"
_AGENT_ARGUMENTS: Final = ("agent_name", "agent")


def topic_scorer(match: TopicMatch = "exact", *, aliases: bool = True) -> Scorer:
    """Return the scorer of topics; names are case-sensitive, and the score is 1 or 0.

    `exact` passes if both names are the same, `contains` if the expected name is a part of
    the actual one. With `aliases`, promoted topics are compared by their short names
    (`plain_topic`). Without an expectedValue the result is UNDECIDED.
    """
    contains, normalise = match == "contains", plain_topic if aliases else str.strip

    def score_topic(expectation: Expectation, exchange: Exchange) -> TestResult:
        actual = exchange.generated.topic or ""
        expected = (expectation.expected_value or "").strip()
        if not expected:
            return undecided(expectation, "no expectedValue: there is no topic to compare with", actual=actual)
        expected_name, actual_name = normalise(expected), normalise(actual)
        passed = expected_name in actual_name if contains else expected_name == actual_name
        if passed:
            explanation = f"the topic is {actual_name}"
        else:
            got = f"got {actual_name}" if actual_name else "but the agent returned no topic"
            explanation = f"expected {'a topic that contains' if contains else 'the topic'} {expected_name}, {got}"
        return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation)

    return score_topic


@lru_cache(maxsize=1024)
def plain_topic(name: str) -> str:
    """Return a topic's short name: `Name` for `p_16jPl000000GwEX_Name_16j8eeef13560aa`."""
    name = name.strip()
    promoted = _PROMOTED.fullmatch(name) if name.startswith("p_") else None
    return promoted[1] if promoted else name


def score_handoff(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the last transfer among the actions names the expected agent; names are case-sensitive.

    The score is 1 or 0. Without a transfer the result is UNDECIDED, because not every subject reports them.
    """
    expected = (expectation.expected_value or "").strip()
    if not expected:
        return undecided(expectation, "no expectedValue: there is no agent to compare with")
    agents = [agent for action in exchange.generated.actions if (agent := _agent_of(action))]
    if not agents:
        explanation = "the agent reported no handoff: no action transfer_to_agent with agent_name, or transfer_to_NAME"
        return undecided(expectation, explanation, expected=expected)
    actual = agents[-1]
    passed = actual == expected
    explanation = f"the agent handed off to {actual}" + ("" if passed else f", not to {expected}")
    return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation)


def _agent_of(action: Action) -> str:
    if action.name == _TRANSFER_BY_ARGUMENT and isinstance(action.input, Mapping):
        values = (action.input.get(name) for name in _AGENT_ARGUMENTS)
        return next((value for value in values if isinstance(value, str)), "")
    return action.name.removeprefix(_TRANSFER) if action.name.startswith(_TRANSFER) else ""
