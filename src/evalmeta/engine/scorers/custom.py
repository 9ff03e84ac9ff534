"""Custom scorers (AiAgentScorerDefinition): a rater judges a conversation by their prompts.

Sources: @salesforce/agents, `agentScorers/types` (labels, outcomes, the session view). A label passes by its
outcomeType, a number by the threshold of the specification; all other scores are reported and not judged.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Final

from evalmeta.engine.interfaces import Rating, Rubric
from evalmeta.engine.scorers.results import undecided
from evalmeta.errors import RaterError
from evalmeta.model.agent_scorer import PromptScorer, session_view
from evalmeta.model.run import NEEDS_MODEL, TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.interfaces import Exchange, Rater, Scorer
    from evalmeta.model.agent_scorer import FindScorer
    from evalmeta.model.definition import Expectation


_NEEDS_LLM: Final = f"{NEEDS_MODEL}carry out the prompt of this custom scorer, and this run has none"


def no_scorer(name: str) -> str:
    """Find no custom scorer: there is no project that could have it."""
    return f"the custom scorer {name!r} cannot be found: the run has no project and no org"


def custom_scorer(rater: Rater, find: FindScorer) -> Scorer:
    """Return the scorer of all custom scorers; UNDECIDED, with the reason, if nothing can judge by one."""

    def score_custom(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        scorer = find(expectation.name)
        if not isinstance(scorer, PromptScorer):
            return undecided(expectation, scorer, actual=exchange.generated.outcome)
        rating = rater(_rubric(scorer, exchange))
        if isinstance(rating, Rating) or not isawaitable(rating):
            return _result(expectation, exchange, scorer, rating)
        return _awaited(expectation, exchange, scorer, rating)

    return score_custom


def _rubric(scorer: PromptScorer, exchange: Exchange) -> Rubric:
    generated = exchange.generated
    return Rubric(
        scorer.name,
        exchange.utterance,
        generated.outcome,
        history=exchange.history,
        actions=generated.actions,
        samples=None if scorer.labels or scorer.is_numeric else 1,
        scorer=scorer,
        session=session_view(exchange.case.history, exchange.earlier, exchange.utterance, generated),
    )


async def _awaited(
    expectation: Expectation, exchange: Exchange, scorer: PromptScorer, rating: Awaitable[Rating]
) -> TestResult:
    return _result(expectation, exchange, scorer, await rating)


def _result(expectation: Expectation, exchange: Exchange, scorer: PromptScorer, rating: object) -> TestResult:
    actual = exchange.generated.outcome
    if rating is None:
        return undecided(expectation, _NEEDS_LLM, actual=actual)
    if not isinstance(rating, Rating):
        raise RaterError(f"the rater returned {type(rating).__name__}, which is not a Rating")
    is_measured = rating.verdict is Verdict.UNDECIDED and bool(rating.output)
    return TestResult(
        expectation.name,
        rating.verdict,
        _expected(scorer),
        rating.output or actual,
        rating.score,
        rating.explanation,
        expectation.label,
        rater=rating.rater,
        is_measured=is_measured,
    )


def _expected(scorer: PromptScorer) -> str:
    """Return which scores pass; empty if none is judged."""
    if scorer.labels:
        return " or ".join(label.value for label in scorer.labels if label.outcome == "Pass")
    threshold = scorer.values.threshold
    return f"at least {threshold:g}" if scorer.is_numeric and threshold is not None else ""
