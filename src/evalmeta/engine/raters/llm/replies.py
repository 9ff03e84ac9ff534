"""What a language model replies: how its JSON is found and checked, and the verdict that it leads to."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from evalmeta import limits
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.engine.raters.judge import Rubric
    from evalmeta.model.json_value import JsonObject, JsonValue


_MAX_RATING: Final = 5
_MAX_EVIDENCE: Final = 3
_MAX_OBJECTS: Final = 100
# Models that think aloud write this before their answer.
_END_OF_THOUGHTS: Final = "</think>"
_KEY: Final = re.compile(r'\{\s*"[^"]*"\s*:')
# OpenAI, "Structured model outputs": objects are closed, and every key is required.
_CLOSED: Final = ConfigDict(frozen=True, json_schema_extra={"additionalProperties": False})
_METRICS_WITH_FACTS: Final = frozenset({"bot_response_rating", "response_match", "factuality"})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Opinion:
    """The verdict of one sample; the score is 0 to 5."""

    verdict: Verdict
    score: float
    explanation: str


# The names and docstrings of Criterion and Judgement are in their JSON Schema, and so in the prompts.
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
    rating: Annotated[
        int, Field(ge=0, le=_MAX_RATING), WithJsonSchema({"type": "integer", "enum": list(range(_MAX_RATING + 1))})
    ]


def judgement_schema() -> JsonObject:
    """Return the JSON Schema of a judgement."""
    schema: JsonObject = Judgement.model_json_schema()
    return schema


def read_judgement(text: str) -> Judgement | None:
    """Return the judgement in a model's text; None unless there is exactly one (see `read_reply`)."""
    return read_reply(text, lambda value: _validated(Judgement, value))


def opinion_of(judgement: Judgement, rubric: Rubric) -> Opinion:
    """Return the verdict of a judgement: the rating against the threshold, unless there is a veto.

    A critical criterion that is not met, a broken rule and, where facts are judged, an
    unsupported fact make it FAILURE and keep the score below the threshold.
    """
    if vetoes := "; ".join(_vetoes(judgement, rubric)):
        score = min(judgement.rating, max(0, math.ceil(rubric.threshold) - 1))
        return Opinion(Verdict.FAILURE, score, f"veto: {vetoes}. {judgement.reason}")
    missed = [each.criterion for each in judgement.criteria if not each.met]
    not_met = f" (not met: {_quoted(missed)})" if missed else ""
    return Opinion(_verdict(judgement.rating, rubric), judgement.rating, f"{judgement.reason}{not_met}")


def _vetoes(judgement: Judgement, rubric: Rubric) -> Iterator[str]:
    missed = [each.criterion for each in judgement.criteria if each.critical and not each.met]
    if missed:
        yield f"a critical criterion is not met: {_quoted(missed)}"
    if judgement.broken_rules:
        yield f"a rule of the expectation is broken: {_quoted(judgement.broken_rules)}"
    if judgement.unsupported_facts and rubric.metric in _METRICS_WITH_FACTS:
        yield f"nothing supports: {_quoted(judgement.unsupported_facts)}"


def _quoted(items: list[str]) -> str:
    return ", ".join(f'"{item}"' for item in items[:_MAX_EVIDENCE]) + (", …" if len(items) > _MAX_EVIDENCE else "")


_Label = Annotated[str, BeforeValidator(lambda value: str(value).strip().lower())]


class Item(BaseModel):
    """One thing that the ruling depends on."""

    model_config = ConfigDict(frozen=True)

    item: str
    reason: str
    label: _Label


class Ruling(BaseModel):
    """A model's answer to a question with few answers; the items come first, because they are the reasons."""

    model_config = ConfigDict(frozen=True)

    items: tuple[Item, ...]
    rationale: str
    label: _Label


@dataclass(frozen=True, slots=True)
class Form:
    """The labels of a ruling and of its items, which do not count if `item_labels` is empty.

    The score is the share of items with a good label if `is_share`; otherwise a single other item decides.
    """

    labels: tuple[str, ...] = ("yes", "no")
    item_labels: tuple[str, ...] = ()
    good: tuple[str, ...] = ("yes",)
    is_share: bool = False


YES_NO: Final = Form()
YES_NO_EACH: Final = Form(item_labels=("yes", "no"))
GRADE: Final = Form(labels=("1", "2", "3", "4", "5"))
CLAIMS: Final = Form(
    item_labels=("supported", "unsupported", "contradictory", "disputed", "not_applicable"),
    good=("supported", "not_applicable"),
    is_share=True,
)
"""ADK's labels of sentences; its score counts those that are supported and those that need no support."""


def ruling_schema(form: Form) -> JsonObject:
    """Return the JSON Schema of a ruling."""
    text: JsonObject = {"type": "string"}
    label, item_label = (
        {**text, "enum": list(labels)} for labels in (form.labels, form.item_labels or YES_NO_EACH.item_labels)
    )
    item = _closed({"item": text, "reason": text, "label": item_label})
    return _closed({"items": {"type": "array", "items": item}, "rationale": text, "label": label})


def _closed(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def read_ruling(text: str, form: Form, *, count: int | None = None) -> Ruling | None:
    """Return the ruling in a model's text; None unless there is exactly one (see `read_reply`).

    `count` is the required number of items. None accepts any number, but at least one if their share is the score.
    """

    def check(value: JsonValue) -> Ruling | None:
        ruling = _validated(Ruling, value)
        if ruling is None or ruling.label not in form.labels:
            return None
        has_all = len(ruling.items) == count if count is not None else bool(ruling.items) or not form.is_share
        fits = has_all and all(each.label in form.item_labels for each in ruling.items)
        return ruling if fits or not form.item_labels else None

    return read_reply(text, check)


def weigh(ruling: Ruling, form: Form, rubric: Rubric) -> Opinion:
    """Return the verdict of a ruling: 5 or 0 for yes or no, the grade, or 5 times the share of good items.

    If items count, a single bad one turns a yes into a no.
    """
    bad = [each for each in ruling.items if form.item_labels and each.label not in form.good]
    explanation = ruling.rationale
    if bad:
        evidence = ", ".join(f'{each.label}: "{each.item}"' for each in bad[:_MAX_EVIDENCE])
        explanation += f" ({evidence}{', …' if len(bad) > _MAX_EVIDENCE else ''})"
    if form.is_share:
        score = _MAX_RATING * (len(ruling.items) - len(bad)) / len(ruling.items)
    elif form.labels == GRADE.labels:
        score = float(ruling.label)
    elif ruling.label == "yes" and not bad:
        return Opinion(Verdict.PASS, float(_MAX_RATING), explanation)
    else:
        return Opinion(Verdict.FAILURE, 0.0, explanation)
    return Opinion(_verdict(score, rubric), score, explanation)


def _verdict(score: float, rubric: Rubric) -> Verdict:
    return Verdict.PASS if score >= rubric.threshold else Verdict.FAILURE


_Model = TypeVar("_Model", bound=BaseModel)


def _validated(model: type[_Model], value: JsonValue) -> _Model | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def read_reply(text: str, check: Callable[[JsonValue], _T | None]) -> _T | None:
    """Return what `check` returns for the JSON object in a model's text, with or without other words around it.

    Return None if there is no such object, if several differ, if a malformed one precedes it (it may be quoted
    from the answer), or if the text is longer than `MAX_JUDGEMENT_CHARS`.
    """
    if len(text) > limits.MAX_JUDGEMENT_CHARS:
        return None
    # A text that starts with JSON may quote the mark from the answer.
    if not text.lstrip().startswith(("{", "```")):
        text = text.rpartition(_END_OF_THOUGHTS)[2]
    found = [each for value in _json_objects(text) if (each := check(value)) is not None]
    return found[0] if found and all(each == found[0] for each in found) else None


def _json_objects(text: str) -> Iterator[JsonValue]:
    """Yield the outermost JSON objects in a text; stop at the start of a malformed one."""
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_MAX_OBJECTS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if _KEY.match(text, at):
                return
            end = at + 1
        else:
            yield value
        at = text.find("{", end)
