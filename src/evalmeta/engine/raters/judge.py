"""What a rater is, and what it is asked.

Where a rater keeps what a model said, so that the same question costs only once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.model.definition import HistoryMessage
    from evalmeta.model.generated_data import Action, Passage
    from evalmeta.model.run import Verdict


@dataclass(frozen=True, slots=True)
class Rubric:
    """What is to be rated, and by what.

    Attributes:
        metric: the expectation's canonical name, such as `bot_response_rating`, `coherence` or
            `response/llm_judged/safety/rating`.
        utterance: what the agent was asked.
        actual: what it answered.
        expected: a model answer, or a description of one; empty when the definition gives none.
        history: what was said before.
        actions: what the agent did for the answer; their outputs are its facts.
        threshold: the rating, 0 to 5, from which on the answer passes.
        passages: what was retrieved for the answer, or the one passage that is to be judged.
        facts: what a correct answer must say; where there are some, `expected` is empty.
        guidelines: rules that must all hold, or the one that is to be judged.
        samples: how often a rater that rates by samples takes one; None leaves it to the rater.
        is_pooled: whether every one of these samples is taken and counts: no majority ends them early, and
            one that cannot be read is left out.
    """

    metric: str
    utterance: str
    actual: str
    expected: str = ""
    history: tuple[HistoryMessage, ...] = ()
    actions: tuple[Action, ...] = ()
    threshold: float = 3.0
    passages: tuple[Passage, ...] = ()
    facts: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()
    samples: int | None = None
    is_pooled: bool = False


@dataclass(frozen=True, slots=True)
class Rating:
    """How well an answer meets what was expected.

    Attributes:
        score: 0 to 5; the threshold and above passes. None when nothing was decided.
        explanation: the rule that decided and its evidence.
        rater: the name of the rater that judged.
        rule: the rule that decided, where the rater goes by rules.
        share: of samples that were pooled, the share that passes, 0 to 1.
    """

    score: float | None
    verdict: Verdict
    explanation: str
    rater: str
    rule: str = ""
    share: float | None = None


class Rater(Protocol):
    """Rates answers; a rater that has to wait (for a model) gives an awaitable.

    Raises:
        RaterError: it cannot rate now; the result becomes ERROR.
    """

    def __call__(self, rubric: Rubric, /) -> Rating | Awaitable[Rating] | None:
        """Rates an answer; None when it cannot judge the metric at all."""
        ...

    async def close(self) -> None:
        """Lets go of what the rater holds; called once, after the last rating."""
        ...


class RatingCache(Protocol):
    """Keeps texts by key; the key stands for everything that a text depends on."""

    def find(self, key: str) -> str | None:
        """Gives the text that is kept under a key; None when there is none."""
        ...

    def keep(self, key: str, body: str) -> None:
        """Keeps a text under a key, in place of what was there."""
        ...
