"""Samples: how the requests for one rating differ from each other, and the keys of their cached replies."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from evalmeta.engine.raters.llm.providers import Question
    from evalmeta.model.settings import LlmRater


# Wang et al., "Self-consistency improves chain of thought reasoning in language models" (2023), sample at 0.5 to 0.7.
_SPREAD: Final = 0.7
_FIRST_SPREAD_ROUND: Final = 2


class Sample(NamedTuple):
    """One request for a judgement.

    At temperature 0, a model answers the same request in the same way. So in the second round, criteria and data are in
    reverse order, and from the third round on, the temperature is raised.

    Attributes:
        number: The number of the sample, from 1.
        model: The index of the model.
        round: How many samples the model has had before.
    """

    number: int
    model: int
    round: int
    temperature: float | None

    @property
    def is_reversed(self) -> bool:
        """Return whether criteria and data are in reverse order."""
        return self.round % 2 == 1


def sample_of(number: int, settings: LlmRater) -> Sample:
    """Return the sample with a number; the models take turns."""
    earlier, model = divmod(number - 1, len(settings.model_names))
    temperature = settings.temperature
    if temperature is not None and earlier >= _FIRST_SPREAD_ROUND:
        temperature = max(temperature, _SPREAD)
    return Sample(number, model, earlier, temperature)


def cache_key(question: Question, sample: Sample, settings: LlmRater, *, version: int) -> str:
    """Return a hash of everything that a reply depends on; nonce and threshold do not matter.

    The question has the project's rubric and the order of the data; the round has the order of the criteria.
    """
    asked = settings.model_names[sample.model], settings.url, settings.max_tokens
    parts = version, *asked, sample.temperature, sample.round, question.system, question.message
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
