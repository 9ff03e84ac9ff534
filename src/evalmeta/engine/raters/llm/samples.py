"""Samples: how the requests for one rating differ, the keys of their cached replies, and their majority."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.interfaces import Rating
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.interfaces import Rubric
    from evalmeta.engine.raters.llm.providers import Question
    from evalmeta.engine.raters.llm.settings import LlmRater


# Wang et al., "Self-consistency improves chain of thought reasoning in language models" (2023), sample at 0.5 to 0.7.
_SPREAD: Final = 0.7
_FIRST_SPREAD_ROUND: Final = 2


class Sample(NamedTuple):
    """One request for a judgement.

    At temperature 0, a model answers the same request in the same way. So samples differ in the order of criteria and
    data, and from the third round on, the temperature is raised.

    Attributes:
        number: The number of the sample, from 1.
        model: The index of the model.
        round: How many samples the model has had before.
        is_reversed: Whether criteria and data are in reverse order.
    """

    number: int
    model: int
    round: int
    temperature: float | None
    is_reversed: bool


def sample_of(number: int, settings: LlmRater, rubric: Rubric) -> Sample:
    """Return the sample with a number for an answer; the models take turns."""
    earlier, model = divmod(number - 1, len(settings.model_names))
    temperature = settings.temperature
    if temperature is not None and earlier >= _FIRST_SPREAD_ROUND:
        temperature = max(temperature, _SPREAD)
    is_reversed = _is_reversed(model, rubric) != _is_reversed(earlier, rubric)
    return Sample(number, model, earlier, temperature, is_reversed)


def _is_reversed(place: int, rubric: Rubric) -> bool:
    """Return the order of a model or a round: both orders in each pair, so that the bias of an order cancels out.

    The first pair begins in order. Which order begins another pair differs from answer to answer: an odd number of
    samples ends within a pair, and if its last sample always had the same order, this order would decide each tie.
    """
    pair, second = divmod(place, 2)
    begins_reversed = pair > 0 and _coin(pair, rubric)
    return begins_reversed != bool(second)


def _coin(pair: int, rubric: Rubric) -> bool:
    text = json.dumps([pair, rubric.utterance, rubric.expected, rubric.actual])
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 1


def cache_key(question: Question, sample: Sample, settings: LlmRater, *, version: int) -> str:
    """Return a hash of everything that a reply depends on; nonce and threshold do not matter.

    The question has the project's rubric and the order of the data, which is also that of the criteria.
    """
    asked = settings.model_names[sample.model], settings.url, settings.max_tokens
    parts = version, *asked, sample.temperature, sample.round, question.system, question.message
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


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
    passed, unjudged = (_count(opinions, verdict) for verdict in (Verdict.PASS, Verdict.UNDECIDED))
    majority, failed = samples // 2 + 1, len(opinions) - passed - unjudged
    return min(majority - passed, majority - unjudged, (samples + 1) // 2 - failed)


def rating_of(opinions: Sequence[Opinion], *, unread: int, name: str, is_pooled: bool) -> Rating:
    """Return the rating of the majority: its median score and a typical explanation; a tie is FAILURE."""
    passed = _count(opinions, Verdict.PASS)
    verdict = _majority(opinions)
    agreeing = [opinion for opinion in opinions if opinion.verdict is verdict]
    score = median(opinion.score for opinion in agreeing)
    typical = min(agreeing, key=lambda opinion: abs(opinion.score - score))
    explanation = f"{_votes(opinions, agreeing, unread)}{typical.explanation}{_dissent(opinions, agreeing)}"
    if len(explanation) > limits.MAX_ERROR_CHARS:
        explanation = f"{explanation[: limits.MAX_ERROR_CHARS - 1]}…"
    share = passed / len(opinions) if is_pooled else None
    return Rating(float(score), verdict, explanation, name, share=share, output=typical.output)


def _majority(opinions: Sequence[Opinion]) -> Verdict:
    decided = (kind for kind in (Verdict.PASS, Verdict.UNDECIDED) if 2 * _count(opinions, kind) > len(opinions))
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
