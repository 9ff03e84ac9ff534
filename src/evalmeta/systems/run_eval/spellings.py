"""The spellings of payloads that the sf CLI corrects before it sends them, unless it has the option --no-normalize.

Source: @salesforce/agents, `src/evalNormalizer.ts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue


SCORING: Final = ("text_alignment", "hallucination_detection", "citation_recall", "answer_faithfulness")
"""The evaluators whose texts are called `generated_output` and `reference_answer`."""

_AGENT: Final = {
    "agentId": "agent_id",
    "agentVersionId": "agent_version_id",
    "sessionId": "session_id",
    **dict.fromkeys(("text", "message", "input", "prompt", "user_message", "userMessage"), "utterance"),
    "useAgentApi": "use_agent_api",
}
_EVALUATOR: Final = {
    "subject": "actual",
    **dict.fromkeys(("expectedValue", "expected_value"), "expected"),
    **dict.fromkeys(("actualValue", "actual_value"), "actual"),
    **dict.fromkeys(("assertionType", "assertion_type", "comparator"), "operator"),
}
_ASSERTION: Final = {
    **dict.fromkeys(("generated_output", "actual_output", "response"), "actual"),
    **dict.fromkeys(("reference_answer", "expected_output", "ground_truth"), "expected"),
}
_SCORING: Final = {
    **dict.fromkeys(("actual", "actual_output", "response"), "generated_output"),
    **dict.fromkeys(("expected", "expected_output", "ground_truth"), "reference_answer"),
}
_ASSERTIONS: Final = ("string_assertion", "json_assertion")


def corrected(step: JsonObject, *, place: int) -> JsonObject:
    """Return a step with the keys that the sf CLI sends; `place` counts evaluators, for a missing id."""
    kind = step.get("type")
    if kind == "evaluator" and isinstance(step.get("evaluator_type"), str):
        step = _long_form(step, place)
        kind = step["type"]
    if not isinstance(kind, str):
        return step
    family, _, name = kind.partition(".")
    if family == "agent":
        return _renamed(step, _AGENT)
    if family != "evaluator":
        return step
    step = _renamed(step, _EVALUATOR)
    names = _SCORING if name in SCORING else _ASSERTION if name in _ASSERTIONS else {}
    return _renamed(step, names)


def _long_form(step: JsonObject, place: int) -> JsonObject:
    """Return `{"type": "evaluator", "evaluator_type": NAME, "field": "STEP.PATH"}` with the keys of other steps."""
    found = {key: value for key, value in step.items() if key not in {"evaluator_type", "field"}}
    found["type"] = f"evaluator.{step['evaluator_type']}"
    field: JsonValue = step.get("field")
    if isinstance(field, str):
        found.setdefault("actual", f"{{{field}}}" if "." in field else field)
    if not found.get("id"):
        found["id"] = f"eval_{place}"
    return found


def _renamed(step: JsonObject, names: Mapping[str, str]) -> JsonObject:
    found = dict(step)
    for other, name in names.items():
        if other in found and name not in found:
            found[name] = found.pop(other)
    return found
