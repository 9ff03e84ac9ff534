"""What a language model says of an answer, read from its text, and what that comes to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from evalmeta.engine.raters.llm.replies import read_reply
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.engine.raters.judge import Rubric
    from evalmeta.model.json_value import JsonObject, JsonValue


_BEST: Final = 5
_EVIDENCE: Final = 3
_FACTS_COUNT: Final = frozenset({"bot_response_rating", "response_match", "factuality"})

# OpenAI, "Structured model outputs": objects are closed, and every key is required.
_CLOSED: Final = ConfigDict(frozen=True, json_schema_extra={"additionalProperties": False})


class Criterion(BaseModel):
    """One thing that is asked of an answer."""

    model_config = _CLOSED

    criterion: str
    met: bool
    critical: bool


class Judgement(BaseModel):
    """What is to be said of an answer."""

    model_config = _CLOSED

    criteria: list[Criterion]
    unsupported_facts: list[str]
    broken_rules: list[str]
    # Before the rating: a model writes one word after the other, and its reasons should come first.
    reason: str
    rating: Annotated[int, Field(ge=0, le=_BEST), WithJsonSchema({"type": "integer", "enum": list(range(_BEST + 1))})]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judgement comes to under a threshold; the score is 0 to 5."""

    verdict: Verdict
    score: float
    explanation: str


def judgement_schema() -> JsonObject:
    """Gives the JSON Schema of a judgement."""
    schema: JsonObject = Judgement.model_json_schema()
    return schema


def read_judgement(text: str) -> Judgement | None:
    """Finds the judgement in a model's text; None when there is not one and one only, see `read_reply`."""
    return read_reply(text, _checked)


def opinion_of(judgement: Judgement, rubric: Rubric) -> Opinion:
    """Gives the verdict: the rating against the threshold, unless something vetoes.

    A critical criterion that is not met, a broken rule and, where facts are judged, an
    unsupported one make it FAILURE and keep the score below the threshold.
    """
    vetoes = "; ".join(_vetoes(judgement, rubric))
    if vetoes:
        score = min(judgement.rating, max(0, math.ceil(rubric.threshold) - 1))
        return Opinion(Verdict.FAILURE, score, f"veto: {vetoes}. {judgement.reason}")
    verdict = Verdict.PASS if judgement.rating >= rubric.threshold else Verdict.FAILURE
    missed = [each.criterion for each in judgement.criteria if not each.met]
    not_met = f" (not met: {_listed(missed)})" if missed else ""
    return Opinion(verdict, judgement.rating, f"{judgement.reason}{not_met}")


def _vetoes(judgement: Judgement, rubric: Rubric) -> Iterator[str]:
    missed = [each.criterion for each in judgement.criteria if each.critical and not each.met]
    if missed:
        yield f"a critical criterion is not met: {_listed(missed)}"
    if judgement.broken_rules:
        yield f"a rule of the expectation is broken: {_listed(judgement.broken_rules)}"
    if judgement.unsupported_facts and rubric.metric in _FACTS_COUNT:
        yield f"nothing supports: {_listed(judgement.unsupported_facts)}"


def _listed(items: list[str]) -> str:
    return ", ".join(f'"{item}"' for item in items[:_EVIDENCE]) + (", …" if len(items) > _EVIDENCE else "")


def _checked(value: JsonValue) -> Judgement | None:
    try:
        return Judgement.model_validate(value)
    except ValidationError:
        return None
