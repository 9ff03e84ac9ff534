"""Opinions: the verdicts of single samples, and the rating that their majority gives."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.raters.judge import Rating
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.raters.judge import Rubric


MAX_RATING: Final = 5
MAX_EVIDENCE: Final = 3


@dataclass(frozen=True, slots=True)
class Opinion:
    """The verdict of one sample; the score is 0 to 5, or a number of a custom scorer, which gives an output."""

    verdict: Verdict
    score: float
    explanation: str
    model: str = ""
    output: str = ""


def verdict_of(score: float, rubric: Rubric) -> Verdict:
    """Return PASS if the score reaches the threshold."""
    return Verdict.PASS if score >= rubric.threshold else Verdict.FAILURE


def missing_votes(opinions: Sequence[Opinion], samples: int) -> int:
    """Return the least number of samples that can still decide; 0 if the others cannot change the verdict.

    Half of an even number is enough for FAILURE, because a tie is FAILURE. A scorer that does not apply needs a
    majority, as PASS does.
    """
    passed, unjudged = (_count(opinions, each) for each in (Verdict.PASS, Verdict.UNDECIDED))
    majority, failed = samples // 2 + 1, len(opinions) - passed - unjudged
    return min(majority - passed, majority - unjudged, (samples + 1) // 2 - failed)


def rating_of(opinions: Sequence[Opinion], *, unread: int, name: str, is_pooled: bool) -> Rating:
    """Return the rating of the majority: its median score and a typical explanation; a tie is FAILURE."""
    passed = _count(opinions, Verdict.PASS)
    verdict = _majority(opinions)
    agreeing = [opinion for opinion in opinions if opinion.verdict is verdict]
    score = median(each.score for each in agreeing)
    typical = min(agreeing, key=lambda each: abs(each.score - score))
    explanation = f"{_votes(opinions, agreeing, unread)}{typical.explanation}{_dissent(opinions, agreeing)}"
    if len(explanation) > limits.MAX_ERROR_CHARS:
        explanation = f"{explanation[: limits.MAX_ERROR_CHARS - 1]}…"
    share = passed / len(opinions) if is_pooled else None
    return Rating(float(score), verdict, explanation, name, share=share, output=typical.output)


def _majority(opinions: Sequence[Opinion]) -> Verdict:
    decided = (each for each in (Verdict.PASS, Verdict.UNDECIDED) if 2 * _count(opinions, each) > len(opinions))
    # Without any FAILURE, passes tie with samples for which the scorer does not apply.
    return next(decided, Verdict.FAILURE if _count(opinions, Verdict.FAILURE) else Verdict.UNDECIDED)


def _votes(opinions: Sequence[Opinion], agreeing: Sequence[Opinion], unread: int) -> str:
    """Return how many samples agree; nothing for a single sample."""
    total = len(opinions) + unread
    remark = f" ({unread} could not be read)" if unread else ""
    return f"{len(agreeing)} of {total} samples{remark}: " if total > 1 else ""


def _dissent(opinions: Sequence[Opinion], agreeing: Sequence[Opinion]) -> str:
    """Name the models that disagree, if there are several models."""
    others = dict.fromkeys(opinion.model for opinion in opinions if opinion not in agreeing)
    is_vote = len({opinion.model for opinion in opinions}) > 1
    return f" (another verdict: {', '.join(others)})" if is_vote and others else ""


def _count(opinions: Sequence[Opinion], verdict: Verdict) -> int:
    return sum(opinion.verdict is verdict for opinion in opinions)
