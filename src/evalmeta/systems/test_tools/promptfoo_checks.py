"""Assertions of promptfoo as checks of test specs.

Source: promptfoo.dev/docs/configuration/expected-outputs, "Assertions & metrics" and "Deterministic metrics".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.model.json_value import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.systems.test_tools.checks import CaseChecks


_FILE: Final = "file://"
_EXPECTED: Final = re.compile(r"(not-)?((?:trajectory:)?[a-z][a-z0-9-]*)(?:\(([\d.]+)\))?(?::(.*))?", re.DOTALL)
# A part of a list in a text: between quotes, of which doubled ones and those after a backslash are text, or to a comma.
_PART: Final = re.compile(r'[\s,]*+(?:"((?:\\["\\]|""|[^"])*+)"\s*+(?=,|\Z)|([^\s",][^,]*))')
_ESCAPED_QUOTE: Final = re.compile(r'[\\"](["\\])')
_SHORT_TYPES: Final = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}


def add_assertions(assertions: Sequence[JsonValue], checks: CaseChecks) -> None:
    """Add assertions; those that evalmeta cannot make are noted as not judged."""
    for assertion in assertions:
        if not isinstance(assertion, dict) or not isinstance(kind := assertion.get("type"), str):
            checks.lose(f"the assertion {json_text(assertion):.80}")
        elif kind == "assert-set":
            _add_set(assertion, checks)
        elif assertion.get("weight") == 0:
            checks.left_out.append(f"the assertion {kind} of weight 0, which cannot fail")
        elif not _is_added(kind, assertion, checks):
            checks.lose(f"the assertion {kind}")


def parse_expected(cell: str) -> JsonObject:
    """Return the assertion of a cell `__expected`: `type:value`, `type(threshold):value`, or the whole answer."""
    match = _EXPECTED.fullmatch(cell.strip())
    negation, kind, threshold, value = match.groups() if match else (None, "", None, None)
    kind = _SHORT_TYPES.get(kind, kind)
    if kind not in _KNOWN or (value is None and kind not in _WITHOUT_VALUE):
        return {"type": "equals", "value": cell}
    return {
        "type": f"{negation or ''}{kind}",
        **({} if value is None else {"value": value.strip()}),
        **({} if threshold is None else {"threshold": float(threshold)}),
    }


def _add_set(assertion: JsonObject, checks: CaseChecks) -> None:
    members = assertion.get("assert")
    if isinstance(members, list) and assertion.get("threshold") in (None, 1):
        add_assertions(members, checks)
    else:
        checks.lose("the assert-set of which only a part must pass")


def _is_added(kind: str, assertion: JsonObject, checks: CaseChecks) -> bool:
    value = assertion.get("value")
    # What is computed by a script, or from another form of the answer, is not the same check.
    if "transform" in assertion or (isinstance(value, str) and value.startswith(_FILE)):
        return False
    add = _NEGATED.get(kind.removeprefix("not-")) if kind.startswith("not-") else _ADDED.get(kind)
    return add is not None and add(value, assertion, checks)


def _texts(value: JsonValue) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [json_text(item) for item in items if item is not None]


def _list(value: JsonValue) -> list[str]:
    """Return the texts of a list, which a text may be with commas; none if its quotes do not match."""
    if not isinstance(value, str):
        return _texts(value)
    texts, place = [], 0
    while part := _PART.match(value, place):
        quoted, plain = part.groups()
        texts.append(plain.strip() if quoted is None else _ESCAPED_QUOTE.sub(r"\1", quoted))
        place = part.end()
    return [] if value[place:].replace(",", " ").strip() else texts


def _equals(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    return checks.equal(json_text(value) if isinstance(value, int | float) else value)


def _latency(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    most = assertion.get("threshold", value)
    return isinstance(most, int | float) and most >= 1 and checks.limit("latency_ms", int(most))


def _is_json(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    return checks.add("json", {"schema": value} if isinstance(value, dict) else {"path": "$"})


def _rubric(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    criteria = [text for text in _texts(value) if text.strip()]
    if "threshold" in assertion:
        checks.left_out.append(f"the threshold {json_text(assertion['threshold'])} of {assertion['type']}")
    return bool(criteria) and all(checks.add("rubric", text) for text in criteria)


def _reference(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    if not isinstance(value, str) or not value.strip():
        return False
    checks.left_out.append(f"how {assertion['type']} compares; the project's rater compares with the expected answer")
    return checks.put("expectedOutcome", value)


def _tools_used(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    names = value if isinstance(value, list) else [value]
    return all(isinstance(name, str) and "*" not in name for name in names) and checks.call(names, "superset")


def _tools_not_used(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    names = value if isinstance(value, list) else [value]
    return all(isinstance(name, str) and checks.add("not_actions", name) for name in names)


def _tool_arguments(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    if not isinstance(value, dict) or not isinstance(arguments := value.get("args", value.get("arguments")), dict):
        return False
    exact: JsonObject = {"exact": True} if value.get("mode") == "exact" else {}
    return checks.call([{"name": value.get("name"), "input": arguments, **exact}], "superset")


def _tool_sequence(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    steps, mode = (
        (value.get("steps"), value.get("mode", "in_order")) if isinstance(value, dict) else (value, "in_order")
    )
    is_plain = isinstance(steps, list) and all(isinstance(step, str) for step in steps)
    return is_plain and mode in {"exact", "in_order"} and checks.call(steps, str(mode))


def _step_count(value: JsonValue, assertion: JsonObject, checks: CaseChecks) -> bool:
    if not isinstance(value, dict) or set(value) != {"type", "max"} or value["type"] != "tool":
        return False
    most = value["max"]
    return isinstance(most, int) and checks.limit("max_actions", most)


_ADDED: Final[Mapping[str, Callable[[JsonValue, JsonObject, CaseChecks], bool]]] = {
    "equals": _equals,
    "contains": lambda value, _, checks: checks.contain(_texts(value)),
    "icontains": lambda value, _, checks: checks.contain(_texts(value), ignores_case=True),
    "contains-all": lambda value, _, checks: checks.contain(_list(value)),
    "icontains-all": lambda value, _, checks: checks.contain(_list(value), ignores_case=True),
    "contains-any": lambda value, _, checks: checks.contain_any(_list(value)),
    "icontains-any": lambda value, _, checks: checks.contain_any(_list(value), ignores_case=True),
    "starts-with": lambda value, _, checks: isinstance(value, str) and checks.add("starts_with", value),
    "regex": lambda value, _, checks: isinstance(value, str) and checks.match(value),
    "is-json": _is_json,
    "latency": _latency,
    "llm-rubric": _rubric,
    "g-eval": _rubric,
    "model-graded-closedqa": _rubric,
    "factuality": _reference,
    "model-graded-factuality": _reference,
    "similar": _reference,
    "trajectory:tool-used": _tools_used,
    "trajectory:tool-args-match": _tool_arguments,
    "trajectory:tool-sequence": _tool_sequence,
    "trajectory:step-count": _step_count,
}
_NEGATED: Final[Mapping[str, Callable[[JsonValue, JsonObject, CaseChecks], bool]]] = {
    "contains": lambda value, _, checks: checks.not_contain(_texts(value)),
    "contains-any": lambda value, _, checks: checks.not_contain(_list(value)),
    "icontains": lambda value, _, checks: checks.not_contain(_texts(value), ignores_case=True),
    "icontains-any": lambda value, _, checks: checks.not_contain(_list(value), ignores_case=True),
    "trajectory:tool-used": _tools_not_used,
}
_WITHOUT_VALUE: Final = frozenset(
    {"is-json", "contains-json", "latency", "cost", "is-refusal", "is-xml", "is-html", "is-sql"}
)
# Assertions that evalmeta knows by name only, so that a cell with one of them is not taken for a whole text.
_KNOWN: Final = frozenset(
    {
        *_ADDED,
        *_WITHOUT_VALUE,
        *("javascript", "python", "ruby", "webhook", "levenshtein", "rouge-n", "bleu", "gleu", "meteor", "perplexity"),
        *(
            "classifier",
            "moderation",
            "answer-relevance",
            "context-faithfulness",
            "context-recall",
            "context-relevance",
        ),
        *("contains-html", "contains-xml", "contains-sql", "pi", "select-best", "max-score"),
    }
)
