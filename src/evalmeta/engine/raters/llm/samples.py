"""Samples: how the requests for one rating differ from each other, and the keys of their cached replies."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from evalmeta.engine.raters.judge import Rubric
    from evalmeta.engine.raters.llm.providers import Question
    from evalmeta.model.settings import LlmRater


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
