"""The offline rater. Its rules are loaded only if they are needed, because their patterns take 80 ms to compile."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.embedding import bind_embed
from evalmeta.engine.raters.rules.ratings import undecided
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evalmeta.engine.interfaces import Rater, Rating, Rubric
    from evalmeta.engine.raters.embedding import Cosine
    from evalmeta.model.settings import RulesRater

JUDGED: Final = frozenset(
    {"bot_response_rating", "response_match", "final_response_match_v2", "response/llm_judged/correctness/rating"}
)
"""The canonical names of the metrics of which rules can judge some results."""


class Rules:
    """The offline rater: it compares responses with expected ones, and judges no other quality."""

    def __init__(self, cosine: Cosine | None = None) -> None:
        self.cosine = cosine

    def __call__(self, rubric: Rubric) -> Rating | None:
        """Return the rating of `rate`; None for a metric that rules cannot judge."""
        if rubric.metric not in JUDGED or rubric.facts:
            return None
        from evalmeta.engine.raters.rules.decisions import rate

        rating = rate(rubric.expected, rubric.actual, utterance=rubric.utterance, cosine=self.cosine)
        if rating.verdict is Verdict.PASS and (rating.score or 0) < rubric.threshold:
            return undecided(f"below the threshold of {rubric.threshold:g}; {rating.explanation}")
        return rating

    def load_for(self, metrics: Iterable[str]) -> None:
        """Load the rules now if one of the metrics needs them, so that no answer waits while others are measured."""
        if not JUDGED.isdisjoint(metrics):
            import_module("evalmeta.engine.raters.rules.decisions")

    async def close(self) -> None:
        """Do nothing: the rater has no resources."""


def bind_rules(settings: RulesRater, *, root: Path) -> Rater:
    """Return the offline rater, with the embeddings that the settings name."""
    rules = Rules(bind_embed(settings.embed, root=root)) if settings.embed else Rules()
    rules.load_for(JUDGED)
    return rules
