"""ADK's rubrics: properties that a judge says yes or no to, of a criterion, of a case or of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.interop.adk.keys import both

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.interop.adk.keys import Keys
    from evalmeta.interop.jsonrecords import JsonRecord
    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["RUBRIC_TYPES", "Rubric", "read_rubrics", "rubric_terms"]

RUBRIC_TYPES: Final = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
}
"""The metrics that judge by rubrics, and the type of those that cases and turns have for them."""


class Rubric(NamedTuple):
    """One rubric; without a type it is for every metric."""

    id: str
    text: str
    type: str = ""


def read_rubrics(record: JsonRecord, keys: Keys) -> tuple[Rubric, ...]:
    """Reads the rubrics of an object; two with the same id are a problem."""
    found: dict[str, Rubric] = {}
    for each in record.records("rubrics", called="a rubric"):
        keys.check(each, "rubricId", "rubricContent", "description", "type")
        content = each.record(*both("rubricContent"), called="a rubric's content")
        if content is None and each.is_object:
            each.missing("rubricContent", hint='Write {"text_property": "..."}.')
        text = content.required_text(*both("textProperty")) if content else ""
        rubric = Rubric(each.required_text(*both("rubricId")), text, (each.text("type") or "").upper())
        if rubric.id in found:
            each.refuse("adk-id", f"two rubrics have the id {rubric.id!r}", *both("rubricId"))
        found[rubric.id] = rubric
    return tuple(found.values())


def rubric_terms(rubrics: Iterable[Rubric]) -> JsonValue:
    """Gives rubrics as scorers are told them."""
    return [{"id": each.id, "text": each.text} for each in rubrics]
