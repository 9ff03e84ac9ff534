"""Topics: the agent settled on the expected one."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import judged, undecided

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult
    from evalmeta.model.scoring import TopicMatch

__all__ = ["plain_topic", "topic_scorer"]

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
