"""What a rater is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.model.run import Verdict

__all__ = ["Rater", "Rating"]


@dataclass(frozen=True, slots=True)
class Rating:
    """How well an answer meets what was expected.

    Attributes:
        score: 0 to 5; 3 and above passes. None when nothing was decided.
        explanation: the rule that decided and its evidence.
        rater: the name of the rater that judged.
    """

    score: float | None
    verdict: Verdict
    explanation: str
    rater: str


class Rater(Protocol):
    """Rates answers; a rater that has to wait (for a model) gives an awaitable."""

    def __call__(self, expected: str, actual: str, *, utterance: str) -> Rating | Awaitable[Rating]:
        """Rates the actual text; the expected one may be a model answer or describe the answer."""
        ...
