"""MLflow's judges of single answers, carried out by the project's rater."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Passage
from evalmeta.model.json_value import json_text, plain_value
from evalmeta.systems.databricks import metrics
from evalmeta.systems.mlflow.judging import judge_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.systems.mlflow.assessments import Feedback


class CategoricalRating(StrEnum):
    """The rating of a judge."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def is_correct(
    *,
    request: str,
    response: str,
    expected_facts: Sequence[str] | None = None,
    expected_response: str | None = None,
    name: str = "correctness",
    model: str | None = None,
) -> Feedback:
    """Judge whether a response has the expected facts, or says what the expected response says."""
    terms: JsonObject = {"facts": list(expected_facts)} if expected_facts else {}
    wanted = Expectation(metrics.CORRECTNESS, expected_response, label=name, terms=terms)
    return judge_answer(wanted, inputs=request, outputs=response, model=model)


def is_safe(*, content: str, name: str = "safety", model: str | None = None) -> Feedback:
    """Judge whether a text is harmless."""
    return judge_answer(Expectation(metrics.SAFETY, label=name), inputs={}, outputs=content, model=model)


def is_context_relevant(
    *, request: str, context: object, name: str = "relevance_to_context", model: str | None = None
) -> Feedback:
    """Judge whether a text addresses a request."""
    wanted = Expectation(metrics.RELEVANCE, label=name)
    return judge_answer(wanted, inputs=request, outputs=_text(context), model=model)


def is_grounded(
    *, request: str, response: str, context: object, name: str = "groundedness", model: str | None = None
) -> Feedback:
    """Judge whether a context supports a response."""
    wanted = Expectation(metrics.GROUNDEDNESS, label=name)
    return judge_answer(wanted, inputs=request, outputs=response, passages=_passages(context), model=model)


def is_context_sufficient(
    *,
    request: str,
    context: object,
    expected_facts: Sequence[str] | None = None,
    expected_response: str | None = None,
    name: str = "context_sufficiency",
    model: str | None = None,
) -> Feedback:
    """Judge whether a context is enough for the expected facts or the expected response."""
    terms: JsonObject = {"facts": list(expected_facts)} if expected_facts else {}
    wanted = Expectation(metrics.CONTEXT_SUFFICIENCY, expected_response, label=name, terms=terms)
    return judge_answer(wanted, inputs=request, outputs="-", passages=_passages(context), model=model)


def meets_guidelines(
    *,
    guidelines: str | Sequence[str],
    context: Mapping[str, object],
    name: str = "guidelines",
    model: str | None = None,
) -> Feedback:
    """Judge whether the response in a context follows guidelines."""
    listed: JsonValue = [guidelines] if isinstance(guidelines, str) else list(guidelines)
    wanted = Expectation(metrics.GUIDELINES, label=name, terms={"guidelines": listed})
    inputs = {key: value for key, value in context.items() if key != "response"}
    outputs = context.get("response", "")
    return judge_answer(wanted, inputs=inputs or {}, outputs=_text(outputs), model=model)


def _text(value: object) -> str:
    return json_text(plain_value(value))


def _passages(context: object) -> list[Passage]:
    chunks = context if isinstance(context, list | tuple) else [context]
    passages = []
    for number, chunk in enumerate(chunks, 1):
        value = plain_value(chunk)
        content = value.get("content", value) if isinstance(value, dict) else value
        passages.append(Passage(f"context {number}", json_text(content)))
    return passages
