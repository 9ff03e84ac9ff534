"""What the rules of the offline rater receive and return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalmeta.engine.interfaces import BEST_RATING, Rating
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

Cosine: TypeAlias = Callable[[str, str], float]

_MAX_EVIDENCE, _MAX_QUOTED = 5, 60


class Texts(NamedTuple):
    """The texts that a rule compares, and whether the expectation describes the answer instead of quoting it."""

    expected: str
    actual: str
    utterance: str
    described: bool


def difference(what: str, missing: Sequence[str], extra: Sequence[str]) -> str:
    """Return what was expected and what the answer has instead."""
    return f"{what} differ: expected {listed(missing)}, got {listed(extra)}"


def listed(items: Sequence[str]) -> str:
    """Return the first few items, separated by commas."""
    return ", ".join(items[:_MAX_EVIDENCE]) + (", …" if len(items) > _MAX_EVIDENCE else "")


def quoted(text: str) -> str:
    """Return the start of a text on one line, in quotes."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED].rstrip()} …")


def passed(rule: str, explanation: str) -> Rating:
    """Return PASS by a rule, with the rating 5."""
    return rated(rule, BEST_RATING, Verdict.PASS, explanation)


def failed(rule: str, explanation: str) -> Rating:
    """Return FAILURE by a rule, with the rating 0."""
    return rated(rule, 0.0, Verdict.FAILURE, explanation)


def undecided(explanation: str) -> Rating:
    """Return UNDECIDED, with the reason."""
    return rated("", None, Verdict.UNDECIDED, explanation)


def rated(rule: str, score: float | None, verdict: Verdict, explanation: str) -> Rating:
    """Return a rating of the offline rater."""
    return Rating(score, verdict, explanation, "rules", rule)
