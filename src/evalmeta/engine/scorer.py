"""Scorers: each judges one kind of expectation against one exchange."""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.engine.raters.rules import Rules
from evalmeta.engine.reasons import reason
from evalmeta.engine.scorers import actions, comparisons, handoffs, latency, topics
from evalmeta.engine.scorers.rated import rated_by
from evalmeta.engine.scorers.results import broken, undecided
from evalmeta.model.expectations import canonical_name, known_names
from evalmeta.model.run import TestResult
from evalmeta.model.scoring import Scoring

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from evalmeta.engine.raters.rater import Rater
    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData

__all__ = ["SCORERS", "Exchange", "Scorer", "make_scorers", "score"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: what was asked, in which case, and what came back."""

    case: Case
    utterance: str
    generated: GeneratedData


class Scorer(Protocol):
    """Judges an expectation; a scorer that has to wait (for a model) gives an awaitable."""

    def __call__(self, expectation: Expectation, exchange: Exchange, /) -> TestResult | Awaitable[TestResult]:
        """Gives the result; whatever it raises becomes an ERROR result."""
        ...


def make_scorers(scoring: Scoring, rater: Rater) -> Mapping[str, Scorer]:
    """Gives the scorer of every canonical expectation name, as a project or a run has chosen to judge.

    Scorers that installed packages add under the entry points `evalmeta.scorers` come beside ours, or in their place.

    Raises:
        SettingsError: one of theirs does not load.
    """
    rated = rated_by(rater, threshold=scoring.threshold)
    return {
        "topic_sequence_match": topics.score_topic,
        "action_sequence_match": actions.score_actions,
        "bot_response_rating": rated,
        "coherence": rated,
        "completeness": rated,
        "conciseness": rated,
        "instruction_following": rated,
        "factuality": rated,
        "output_latency_milliseconds": latency.score_latency,
        "string_comparison": comparisons.score_comparison,
        "numeric_comparison": comparisons.score_comparison,
        "agent_handoff_match": handoffs.score_handoff,
        "response_match": rated,
        "task_resolution": rated,
    }


SCORERS: Final = make_scorers(Scoring(), Rules())


def score(
    expectation: Expectation, exchange: Exchange, *, scorers: Mapping[str, Scorer] = SCORERS
) -> TestResult | Awaitable[TestResult]:
    """Judges one expectation and never raises: a scorer that breaks gives an ERROR result with the reason.

    The result comes at once unless the scorer has to wait; every scorer in `SCORERS`
    answers at once. `scorers` holds one scorer for each canonical expectation name.
    """
    if expectation.is_custom:
        explanation = f"{expectation.name!r} is a scorer of the org's own; nothing here can judge by it"
        return undecided(expectation, explanation, actual=exchange.generated.outcome)
    scorer = scorers.get(canonical_name(expectation.name))
    if scorer is None:
        return broken(expectation, _unknown(expectation.name))
    try:
        result = scorer(expectation, exchange)
    except Exception as error:  # noqa: BLE001 - a broken scorer spoils one result, not the run
        return broken(expectation, f"the scorer broke: {reason(error)}")
    return _sound(expectation, result) if isinstance(result, TestResult) else _awaited(expectation, result)


async def _awaited(expectation: Expectation, result: Awaitable[TestResult]) -> TestResult:
    try:
        return _sound(expectation, await result)
    except Exception as error:  # noqa: BLE001 - as in `score`
        return broken(expectation, f"the scorer broke: {reason(error)}")


def _sound(expectation: Expectation, result: TestResult) -> TestResult:
    if result.score is not None and not math.isfinite(result.score):
        return broken(expectation, f"the scorer broke: its score is {result.score}")
    return result


def _unknown(name: str) -> str:
    nearest = get_close_matches(name, known_names(), n=1, cutoff=0)
    return f"{name!r} is no expectation; the nearest known name is {nearest[0]}"
