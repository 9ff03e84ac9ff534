"""The interface of raters: what they receive, what they return, and the cache of a language model's replies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.model.agent_scorer import PromptScorer
    from evalmeta.model.definition import HistoryMessage
    from evalmeta.model.generated_data import Action, Passage
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import Verdict


@dataclass(frozen=True, slots=True)
class Rubric:
    """What to rate, and by what.

    Attributes:
        metric: The expectation's canonical name, such as `bot_response_rating`, `coherence` or
            `response/llm_judged/safety/rating`.
        utterance: The user's question.
        actual: The agent's answer.
        expected: A model answer, or a description of one; empty if the definition has none.
        history: The conversation before the utterance.
        actions: The agent's actions for the answer, whose outputs are facts; None if the agent does not report them.
        threshold: The minimum rating, 0 to 5, of an answer that passes.
        passages: The passages that were retrieved for the answer, or the one to judge.
        facts: What a correct answer must say; if there are facts, `expected` is empty.
        guidelines: The rules that must all hold, or the one to judge.
        samples: The number of samples that a sampling rater requests; None leaves it to the rater.
        is_pooled: Whether all samples are requested and count: a majority does not end them early, and
            unreadable ones are ignored.
        instructions: The expectation's own instructions for a language model.
        scorer: The custom scorer whose prompt is carried out; its name is the metric.
        session: The conversation up to the answer, as custom scorers read it.
    """

    metric: str
    utterance: str
    actual: str
    expected: str = ""
    history: tuple[HistoryMessage, ...] = ()
    actions: tuple[Action, ...] | None = ()
    threshold: float = 3.0
    passages: tuple[Passage, ...] = ()
    facts: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()
    samples: int | None = None
    is_pooled: bool = False
    instructions: str = ""
    scorer: PromptScorer | None = None
    session: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rating:
    """How well an answer meets the expectation.

    Attributes:
        score: 0 to 5, or a custom scorer's number; None if the rater did not decide.
        explanation: The reason and its evidence.
        rater: The name of the rater.
        rule: The rule that decided, if the rater has rules.
        share: The share of pooled samples that pass, 0 to 1.
        output: The label, number or text that a custom scorer gives.
    """

    score: float | None
    verdict: Verdict
    explanation: str
    rater: str
    rule: str = ""
    share: float | None = None
    output: str = ""


class Rater(Protocol):
    """Rates answers; a rater that waits, for example for a model, returns an awaitable.

    Raises:
        RaterError: The rater cannot rate now; the result becomes ERROR.
    """

    def __call__(self, rubric: Rubric, /) -> Rating | Awaitable[Rating] | None:
        """Rate an answer; return None if the rater cannot judge the metric at all."""
        ...

    async def close(self) -> None:
        """Release the rater's resources; called once, after the last rating."""
        ...


class RatingCache(Protocol):
    """Stores texts by a key that covers everything that a text depends on."""

    def find(self, key: str) -> str | None:
        """Return the text that is stored for a key; None if there is none."""
        ...

    def keep(self, key: str, body: str) -> None:
        """Store a text for a key, and replace an older one."""
        ...
