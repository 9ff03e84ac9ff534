"""Rulings: a model's answer to a question with few answers, and the verdict that it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from evalmeta.engine.raters.llm.opinions import MAX_EVIDENCE, MAX_RATING, Opinion, verdict_of
from evalmeta.engine.raters.llm.replies import UnreadableReply, closed_schema, read_reply, reply_schema, validated
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from evalmeta.engine.raters.judge import Rubric
    from evalmeta.model.json_value import JsonObject


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
    item = closed_schema({"item": text, "reason": text, "label": item_label})
    return reply_schema({"items": {"type": "array", "items": item}, "rationale": text, "label": label})


def read_ruling(text: str, form: Form, *, count: int | None = None, nonce: str = "") -> Ruling:
    """Return the ruling in a model's text, or raise UnreadableReply (see `read_reply`).

    `count` is the required number of items. None accepts any number, but at least one if their share is the score.
    """
    return read_reply(text, lambda value: _checked(validated(Ruling, value), form, count), nonce=nonce)


def _checked(ruling: Ruling, form: Form, count: int | None) -> Ruling:
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


def weigh(ruling: Ruling, form: Form, rubric: Rubric) -> Opinion:
    """Return the verdict of a ruling: 5 or 0 for yes or no, the grade, or 5 times the share of good items.

    If items count, a single bad one turns a yes into a no.
    """
    bad = [item for item in ruling.items if form.item_labels and item.label not in form.good]
    explanation = ruling.rationale
    if bad:
        evidence = ", ".join(f'{each.label}: "{each.item}"' for each in bad[:MAX_EVIDENCE])
        explanation += f" ({evidence}{', …' if len(bad) > MAX_EVIDENCE else ''})"
    if form.is_share:
        score = MAX_RATING * (len(ruling.items) - len(bad)) / len(ruling.items)
    elif form.labels == GRADE.labels:
        score = float(ruling.label)
    elif ruling.label == "yes" and not bad:
        return Opinion(Verdict.PASS, float(MAX_RATING), explanation)
    else:
        return Opinion(Verdict.FAILURE, 0.0, explanation)
    return Opinion(verdict_of(score, rubric), score, explanation)
