"""What a language model replies, and the verdict that it leads to.

A judgement rates an answer by criteria. A ruling answers a question with few answers. Both are JSON objects, which are
found in the model's text and checked.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from evalmeta import limits
from evalmeta.engine.metrics import GRADE, METRICS, YES_NO_EACH, Form
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evalmeta.engine.interfaces import Rubric
    from evalmeta.model.json_value import JsonObject, JsonValue


_MAX_RATING: Final = 5
_MAX_EVIDENCE: Final = 3
_MAX_OBJECTS: Final = 100
# Models that think aloud write this before their answer.
_END_OF_THOUGHTS: Final = "</think>"
_KEY: Final = re.compile(r'\{\s*"[^"]*"\s*:')
_NONCE: Final = "nonce"

_T = TypeVar("_T")
_Model = TypeVar("_Model", bound=BaseModel)


class UnreadableReply(ValueError):
    """Why a model's reply cannot be used; the text contains nothing of the reply."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """The verdict of one sample; the score is 0 to 5, or a number of a custom scorer, which gives an output."""

    verdict: Verdict
    score: float
    explanation: str
    model: str = ""
    output: str = ""


def _verdict_of(score: float, rubric: Rubric) -> Verdict:
    return Verdict.PASS if score >= rubric.threshold else Verdict.FAILURE


def _closed_schema(properties: JsonObject) -> JsonObject:
    """Return the JSON Schema of an object with exactly these properties (OpenAI, "Structured model outputs")."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def reply_schema(properties: JsonObject) -> JsonObject:
    """Return the JSON Schema of a reply; a nonce that it must repeat comes first."""
    return _closed_schema({_NONCE: {"type": "string"}, **properties})


def validated(model: type[_Model], value: JsonValue) -> _Model:
    """Return a value as a model, or raise UnreadableReply with the first key that is not valid."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the JSON"
        raise UnreadableReply(f"{place} is not valid: {fault['msg']}") from None


def read_reply(text: str, check: Callable[[JsonValue], _T], *, nonce: str = "") -> _T:
    """Return what `check` returns for the JSON object in a model's text, with or without other words around it.

    Objects without the nonce are ignored: the model may quote them from the answer. It raises UnreadableReply if there
    is no such object, several differ, a malformed one precedes it, or the text is too long.
    """
    if len(text) > limits.MAX_JUDGEMENT_CHARS:
        raise UnreadableReply(f"the reply has more than {limits.MAX_JUDGEMENT_CHARS:,} characters")
    # A text that starts with JSON may quote the mark from the answer.
    if not text.lstrip().startswith(("{", "```")):
        text = text.rpartition(_END_OF_THOUGHTS)[2]
    readings: list[_T] = []
    reason = "the reply has no complete JSON object" if text.strip() else "the reply is empty"
    for value in _json_objects(text):
        if nonce and not (isinstance(value, dict) and str(value.get(_NONCE)).strip().lower() == nonce):
            reason = "the judgement does not repeat the nonce of the request"
            continue
        try:
            readings.append(check(value))
        except UnreadableReply as error:
            reason = str(error)
    if not readings:
        raise UnreadableReply(reason)
    if any(reading != readings[0] for reading in readings):
        raise UnreadableReply("the reply has several judgements that differ")
    return readings[0]


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


_FROZEN: Final = ConfigDict(frozen=True)
_WORD: Final = re.compile(r"\w+")
_OMISSION: Final = re.compile(r"…|\.{3}|\[\.\.\.\]")


class Criterion(BaseModel):
    """One thing that is asked of an answer."""

    model_config = _FROZEN

    criterion: str
    met: bool
    critical: bool


class _Contradiction(BaseModel):
    """Words of the answer, and the words that they contradict."""

    model_config = _FROZEN

    quote: str
    contradicts: str


class Judgement(BaseModel):
    """What a model says of an answer; `choice` is empty unless the rater has verdicts of its own."""

    model_config = _FROZEN

    criteria: tuple[Criterion, ...]
    contradictions: tuple[_Contradiction, ...]
    reason: str
    rating: Annotated[int | None, Field(ge=0, le=_MAX_RATING)] = None
    choice: Annotated[str, BeforeValidator(lambda value: str(value).strip())] = ""


def judgement_schema(choices: Mapping[str, float] | None = None) -> JsonObject:
    """Return the JSON Schema of a judgement, which ends with a rating or with one of the named verdicts."""
    text: JsonObject = {"type": "string"}
    truth: JsonObject = {"type": "boolean"}
    criterion = _closed_schema({"criterion": text, "met": truth, "critical": truth})
    contradiction = _closed_schema({"quote": text, "contradicts": text})
    rating: JsonObject = {"rating": {"type": "integer", "enum": list(range(_MAX_RATING + 1))}}
    # A model writes one word after the other: its reasons must come before its rating.
    return reply_schema(
        {
            "criteria": {"type": "array", "items": criterion},
            "contradictions": {"type": "array", "items": contradiction},
            "reason": text,
            **({"choice": {**text, "enum": list(choices)}} if choices else rating),
        }
    )


def read_judgement(
    text: str, rubric: Rubric, *, nonce: str = "", choices: Mapping[str, float] | None = None
) -> Judgement:
    """Return the judgement in a model's text, or raise UnreadableReply (see `read_reply`).

    A judgement that invents a quote is not readable: what else it says cannot be trusted either.
    """

    def check(value: JsonValue) -> Judgement:
        judgement = validated(Judgement, value)
        if choices and judgement.choice not in choices:
            raise UnreadableReply(f"choice is not one of {', '.join(choices)}")
        if not choices and judgement.rating is None:
            raise UnreadableReply("rating is missing")
        if METRICS[rubric.metric].judges_facts:
            for pair in judgement.contradictions:
                if not _is_quoted(pair.quote, rubric.actual):
                    raise UnreadableReply("a contradiction quotes words that the answer does not have")
                if not pair.contradicts.strip() or _words(pair.contradicts) == _words(pair.quote):
                    raise UnreadableReply("a contradiction does not say what the quote contradicts")
        return judgement

    return read_reply(text, check, nonce=nonce)


def _is_quoted(quote: str, answer: str) -> bool:
    """Return whether a text has the words of a quote, whatever the case, the punctuation and the layout.

    Parts that are separated by an ellipsis must follow each other.
    """
    text, at = _words(answer), 0
    parts = [words for part in _OMISSION.split(quote) if (words := _words(part))]
    for part in parts:
        # Some languages, such as Chinese, have no blanks between words.
        pattern = rf"\b{re.escape(part)}\b" if part.isascii() else re.escape(part)
        match = re.compile(pattern).search(text, at)
        if match is None:
            return False
        at = match.end()
    return bool(parts)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def opinion_of(judgement: Judgement, rubric: Rubric, *, choices: Mapping[str, float] | None = None) -> Opinion:
    """Return the verdict of a judgement: the rating against the threshold, unless there is a veto.

    A critical criterion that is not met and, where facts are judged, a contradiction make it
    FAILURE and keep the score below the threshold.
    """
    score = float(choices[judgement.choice] if choices else judgement.rating or 0)
    reason = f"{judgement.choice}: {judgement.reason}" if choices else judgement.reason
    if vetoes := "; ".join(_vetoes(judgement, rubric)):
        score = min(score, max(0, math.ceil(rubric.threshold) - 1))
        return Opinion(Verdict.FAILURE, score, f"veto: {vetoes}. {reason}")
    missed = [f'"{criterion.criterion}"' for criterion in judgement.criteria if not criterion.met]
    not_met = f" (not met: {_listed(missed)})" if missed else ""
    return Opinion(_verdict_of(score, rubric), score, f"{reason}{not_met}")


def _vetoes(judgement: Judgement, rubric: Rubric) -> Iterator[str]:
    missed = [f'"{asked.criterion}"' for asked in judgement.criteria if asked.critical and not asked.met]
    if missed:
        yield f"a critical criterion is not met: {_listed(missed)}"
    if judgement.contradictions and METRICS[rubric.metric].judges_facts:
        yield _listed([f'"{pair.quote}" contradicts "{pair.contradicts}"' for pair in judgement.contradictions])


def _listed(items: list[str]) -> str:
    return ", ".join(items[:_MAX_EVIDENCE]) + (", …" if len(items) > _MAX_EVIDENCE else "")


_Label = Annotated[str, BeforeValidator(lambda value: str(value).strip().lower())]


class Item(BaseModel):
    """One thing that the ruling depends on."""

    model_config = _FROZEN

    item: str
    reason: str
    label: _Label


class _Ruling(BaseModel):
    """A model's answer to a question with few answers; the items come first, because they are the reasons."""

    model_config = _FROZEN

    items: tuple[Item, ...]
    rationale: str
    label: _Label


def ruling_schema(form: Form) -> JsonObject:
    """Return the JSON Schema of a ruling."""
    text: JsonObject = {"type": "string"}
    label, item_label = (
        {**text, "enum": list(labels)} for labels in (form.labels, form.item_labels or YES_NO_EACH.item_labels)
    )
    item = _closed_schema({"item": text, "reason": text, "label": item_label})
    return reply_schema({"items": {"type": "array", "items": item}, "rationale": text, "label": label})


def read_ruling(text: str, form: Form, *, count: int | None = None, nonce: str = "") -> _Ruling:
    """Return the ruling in a model's text, or raise UnreadableReply (see `read_reply`).

    `count` is the required number of items. None accepts any number, but at least one if their share is the score.
    """
    return read_reply(text, lambda value: _checked(validated(_Ruling, value), form, count), nonce=nonce)


def _checked(ruling: _Ruling, form: Form, count: int | None) -> _Ruling:
    if ruling.label not in form.labels:
        raise UnreadableReply(f"label is not one of {', '.join(form.labels)}")
    if not form.item_labels:
        return ruling
    if count is not None and len(ruling.items) != count:
        raise UnreadableReply(f"there are {len(ruling.items)} items instead of {count}")
    if form.is_share and not ruling.items:
        raise UnreadableReply("there are no items")
    if any(item.label not in form.item_labels for item in ruling.items):
        raise UnreadableReply(f"the label of an item is not one of {', '.join(form.item_labels)}")
    return ruling


def weigh(ruling: _Ruling, form: Form, rubric: Rubric) -> Opinion:
    """Return the verdict of a ruling: 5 or 0 for yes or no, the grade, or 5 times the share of good items.

    If items count, a single bad one turns a yes into a no.
    """
    bad = [item for item in ruling.items if form.item_labels and item.label not in form.good]
    explanation = ruling.rationale
    if bad:
        evidence = [f'{item.label}: "{item.item}"' for item in bad]
        explanation += f" ({_listed(evidence)})"
    if form.is_share:
        score = _MAX_RATING * (len(ruling.items) - len(bad)) / len(ruling.items)
    elif form.labels == GRADE.labels:
        score = float(ruling.label)
    elif ruling.label == "yes" and not bad:
        return Opinion(Verdict.PASS, float(_MAX_RATING), explanation)
    else:
        return Opinion(Verdict.FAILURE, 0.0, explanation)
    return Opinion(_verdict_of(score, rubric), score, explanation)
