"""What a language model rules on a question with few answers: its JSON, how it is read, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from evalmeta.engine.raters.llm.judgement import Opinion
from evalmeta.engine.raters.llm.replies import read_reply
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from evalmeta.engine.raters.judge import Rubric
    from evalmeta.model.json_value import JsonObject, JsonValue


_BEST: Final = 5.0
_EVIDENCE: Final = 3


def _word(value: JsonValue) -> str:
    return str(value).strip().lower()


_Label = Annotated[str, BeforeValidator(_word)]


class Item(BaseModel):
    """One thing that the ruling depends on."""

    model_config = ConfigDict(frozen=True)

    item: str
    reason: str
    label: _Label


class Ruling(BaseModel):
    """What a model rules; its items come first, because its reasons should come before the label."""

    model_config = ConfigDict(frozen=True)

    items: tuple[Item, ...]
    rationale: str
    label: _Label


@dataclass(frozen=True, slots=True)
class Form:
    """What a ruling may say.

    Attributes:
        labels: of the whole, one of which it has.
        item_labels: of each of its items; none where it has no items that count.
        good: the labels of items that count as good.
        is_share: whether the score is the share of good items; else one that is not good decides against all.
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
    """Gives the JSON Schema of a ruling (OpenAI, "Structured model outputs": closed, every key required)."""
    text: JsonObject = {"type": "string"}
    item = _closed({"item": text, "reason": text, "label": _one_of(form.item_labels or YES_NO_EACH.item_labels)})
    return _closed({"items": {"type": "array", "items": item}, "rationale": text, "label": _one_of(form.labels)})


def read_ruling(text: str, form: Form, *, count: int | None = None) -> Ruling | None:
    """Finds the ruling in a model's text; None when there is not one and one only, see `read_reply`.

    `count` is how many items it must have; None takes any number, but one at least where their share counts.
    """

    def check(value: JsonValue) -> Ruling | None:
        try:
            ruling = Ruling.model_validate(value)
        except ValidationError:
            return None
        return ruling if _fits(ruling, form, count) else None

    return read_reply(text, check)


def weigh(ruling: Ruling, form: Form, rubric: Rubric) -> Opinion:
    """Gives the opinion: 5 or 0 for yes or no, the grade, or 5 times the share of good items.

    Where items count, one that is not good makes a yes a no.
    """
    bad = [each for each in ruling.items if form.item_labels and each.label not in form.good]
    if form.is_share:
        score = _BEST * (len(ruling.items) - len(bad)) / len(ruling.items)
    elif form.labels == GRADE.labels:
        score = float(ruling.label)
    else:
        is_yes = ruling.label == "yes" and not bad
        return Opinion(Verdict.PASS if is_yes else Verdict.FAILURE, _BEST if is_yes else 0.0, _told(ruling, bad))
    passed = score >= rubric.threshold
    return Opinion(Verdict.PASS if passed else Verdict.FAILURE, score, _told(ruling, bad))


def _told(ruling: Ruling, bad: list[Item]) -> str:
    if not bad:
        return ruling.rationale
    told = ", ".join(f'{each.label}: "{each.item}"' for each in bad[:_EVIDENCE])
    return f"{ruling.rationale} ({told}{', …' if len(bad) > _EVIDENCE else ''})"


def _fits(ruling: Ruling, form: Form, count: int | None) -> bool:
    if ruling.label not in form.labels:
        return False
    if not form.item_labels:
        return True
    has_all = len(ruling.items) == count if count is not None else bool(ruling.items) or not form.is_share
    return has_all and all(each.label in form.item_labels for each in ruling.items)


def _closed(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _one_of(labels: tuple[str, ...]) -> JsonObject:
    return {"type": "string", "enum": list(labels)}
