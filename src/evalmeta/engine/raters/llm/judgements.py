"""Judgements: what a model says of an answer by criteria, and the verdict that it leads to."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evalmeta.engine.raters.llm.opinions import MAX_EVIDENCE, MAX_RATING, Opinion, verdict_of
from evalmeta.engine.raters.llm.replies import UnreadableReply, closed_schema, read_reply, reply_schema, validated
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.engine.raters.judge import Rubric
    from evalmeta.model.json_value import JsonObject, JsonValue


METRICS_WITH_FACTS: Final = frozenset({"bot_response_rating", "response_match", "factuality"})
_FROZEN: Final = ConfigDict(frozen=True)
_WORD: Final = re.compile(r"\w+")
_OMISSION: Final = re.compile(r"…|\.{3}|\[\.\.\.\]")


class Criterion(BaseModel):
    """One thing that is asked of an answer."""

    model_config = _FROZEN

    criterion: str
    met: bool
    critical: bool


class Contradiction(BaseModel):
    """Words of the answer, and the words that they contradict."""

    model_config = _FROZEN

    quote: str
    contradicts: str


class Judgement(BaseModel):
    """What a model says of an answer; `choice` is empty unless the rater has verdicts of its own."""

    model_config = _FROZEN

    criteria: tuple[Criterion, ...]
    contradictions: tuple[Contradiction, ...]
    reason: str
    rating: Annotated[int | None, Field(ge=0, le=MAX_RATING)] = None
    choice: Annotated[str, BeforeValidator(lambda value: str(value).strip())] = ""


def judgement_schema(choices: Mapping[str, float] | None = None) -> JsonObject:
    """Return the JSON Schema of a judgement, which ends with a rating or with one of the named verdicts."""
    text: JsonObject = {"type": "string"}
    truth: JsonObject = {"type": "boolean"}
    criterion = closed_schema({"criterion": text, "met": truth, "critical": truth})
    contradiction = closed_schema({"quote": text, "contradicts": text})
    rating: JsonObject = {"rating": {"type": "integer", "enum": list(range(MAX_RATING + 1))}}
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
        if rubric.metric in METRICS_WITH_FACTS:
            for contradiction in judgement.contradictions:
                _check_quote(contradiction, rubric.actual)
        return judgement

    return read_reply(text, check, nonce=nonce)


def _check_quote(contradiction: Contradiction, answer: str) -> None:
    if not _is_quoted(contradiction.quote, answer):
        raise UnreadableReply("a contradiction quotes words that the answer does not have")
    if not contradiction.contradicts.strip() or _words(contradiction.contradicts) == _words(contradiction.quote):
        raise UnreadableReply("a contradiction does not say what the quote contradicts")


def _is_quoted(quote: str, answer: str) -> bool:
    """Return whether a text has the words of a quote, whatever the case, the punctuation and the layout.

    Parts that are separated by an ellipsis must follow each other.
    """
    text, at = _words(answer), 0
    parts = [words for part in _OMISSION.split(quote) if (words := _words(part))]
    for part in parts:
        # Some languages, such as Chinese, have no blanks between words.
        pattern = rf"\b{re.escape(part)}\b" if part.isascii() else re.escape(part)
        found = re.compile(pattern).search(text, at)
        if found is None:
            return False
        at = found.end()
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
    missed = [criterion.criterion for criterion in judgement.criteria if not criterion.met]
    not_met = f" (not met: {_listed(missed)})" if missed else ""
    return Opinion(verdict_of(score, rubric), score, f"{reason}{not_met}")


def _vetoes(judgement: Judgement, rubric: Rubric) -> Iterator[str]:
    missed = [criterion.criterion for criterion in judgement.criteria if criterion.critical and not criterion.met]
    if missed:
        yield f"a critical criterion is not met: {_listed(missed)}"
    if judgement.contradictions and rubric.metric in METRICS_WITH_FACTS:
        pairs = [
            f'"{contradiction.quote}" contradicts "{contradiction.contradicts}"'
            for contradiction in judgement.contradictions
        ]
        yield f"{', '.join(pairs[:MAX_EVIDENCE])}{', …' if len(pairs) > MAX_EVIDENCE else ''}"


def _listed(items: list[str]) -> str:
    return ", ".join(f'"{item}"' for item in items[:MAX_EVIDENCE]) + (", …" if len(items) > MAX_EVIDENCE else "")
