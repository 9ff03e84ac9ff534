"""Topics: the agent settled on the expected one.

Handoffs: the agent passed the conversation on to the expected one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import judged, undecided

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import Action
    from evalmeta.model.run import TestResult, TopicMatch


# Orgs name promoted topics p_<planner id>_<Name>_<hash>; both ids begin with the key prefix 16j.
_PROMOTED: Final = re.compile(r"p_16j[0-9A-Za-z]+_(\w+)_16j[0-9A-Za-z]+", re.ASCII)


@lru_cache(maxsize=1024)
def plain_topic(name: str) -> str:
    """Gives a topic's own name: `p_16jPl000000GwEX_Name_16j8eeef13560aa` means `Name`."""
    name = name.strip()
    promoted = _PROMOTED.fullmatch(name) if name.startswith("p_") else None
    return promoted[1] if promoted else name


def topic_scorer(match: TopicMatch = "exact", *, aliases: bool = True) -> Scorer:
    """Makes the scorer of topics; case counts, and the score is 1 or 0.

    `exact` passes when both names are the same, `contains` when the expected name is a
    part of the actual one. With `aliases` promoted topics are known by their own names
    too (`plain_topic`). Without an expectedValue the result is UNDECIDED.
    """
    contains, named = match == "contains", plain_topic if aliases else str.strip

    def score_topic(expectation: Expectation, exchange: Exchange) -> TestResult:
        actual = exchange.generated.topic or ""
        expected = (expectation.expected_value or "").strip()
        if not expected:
            return undecided(expectation, "no expectedValue: there is no topic to compare with", actual=actual)
        wanted, found = named(expected), named(actual)
        passed = wanted in found if contains else wanted == found
        explanation = f"the topic is {found}" if passed else _difference(wanted, found, contains=contains)
        return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation)

    return score_topic


def _difference(wanted: str, found: str, *, contains: bool) -> str:
    expected = f"expected {'a topic with' if contains else 'the topic'} {wanted}"
    return f"{expected}, got {found}" if found else f"{expected}, but the agent named none"


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
