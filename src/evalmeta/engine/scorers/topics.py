"""Topics: the agent settled on the expected one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import judged, undecided

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult

__all__ = ["plain_topic", "score_topic"]

# Orgs name promoted topics p_<planner id>_<Name>_<hash>; both ids begin with the key prefix 16j.
_PROMOTED: Final = re.compile(r"p_16j[0-9A-Za-z]+_(\w+)_16j[0-9A-Za-z]+", re.ASCII)


def plain_topic(name: str) -> str:
    """Gives a topic's own name: `p_16jPl000000GwEX_Name_16j8eeef13560aa` means `Name`."""
    name = name.strip()
    promoted = _PROMOTED.fullmatch(name) if name.startswith("p_") else None
    return promoted[1] if promoted else name


def score_topic(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Passes when both names mean the same topic; case counts. The score is 1 or 0."""
    actual = exchange.generated.topic or ""
    expected = (expectation.expected_value or "").strip()
    if not expected:
        return undecided(expectation, "no expectedValue: there is no topic to compare with", actual=actual)
    passed = plain_topic(expected) == plain_topic(actual)
    return judged(
        expectation,
        passed=passed,
        expected=expected,
        actual=actual,
        explanation=_explain(expected, actual, passed=passed),
    )


def _explain(expected: str, actual: str, *, passed: bool) -> str:
    if passed:
        return f"the topic is {plain_topic(expected)}"
    if not actual:
        return f"expected the topic {plain_topic(expected)}, but the agent named none"
    return f"expected the topic {plain_topic(expected)}, got {plain_topic(actual)}"
