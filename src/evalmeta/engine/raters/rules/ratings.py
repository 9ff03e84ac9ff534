"""What the rules of the offline rater are given, and what they give back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.raters.judge import Rating
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence


NAME: Final = "rules"
BEST: Final = 5.0
_EVIDENCE: Final = 5


class Texts(NamedTuple):
    """The texts that a rule looks at.

    Attributes:
        described: the expectation describes the answer instead of wording it.
        stated: the expectation is what a description wants to be said.
    """

    expected: str
    actual: str
    utterance: str
    described: bool
    stated: bool = False


def difference(what: str, missing: Sequence[str], extra: Sequence[str]) -> str:
    """Tells what was expected and what came instead."""
    return f"{what} differ: expected {listed(missing)}, got {listed(extra)}"


def listed(items: Sequence[str]) -> str:
    """Lists the first few of some items."""
    return ", ".join(items[:_EVIDENCE]) + (", …" if len(items) > _EVIDENCE else "")


def passed(rule: str, explanation: str) -> Rating:
    """Passes an answer by a rule, with 5."""
    return rated(rule, BEST, Verdict.PASS, explanation)


def failed(rule: str, explanation: str) -> Rating:
    """Fails an answer by a rule, with 0."""
    return rated(rule, 0.0, Verdict.FAILURE, explanation)


def undecided(explanation: str) -> Rating:
    """Leaves an answer to others, and says why."""
    return rated("", None, Verdict.UNDECIDED, explanation)


def rated(rule: str, score: float | None, verdict: Verdict, explanation: str) -> Rating:
    """Gives a rating of the offline rater."""
    return Rating(score, verdict, explanation, NAME, rule)
