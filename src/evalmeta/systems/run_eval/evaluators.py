"""The evaluators of run-eval as expectations.

Sources: @salesforce/agents, `src/evalNormalizer.ts` and `src/yamlSpecTranslator.ts` (evaluators, keys, operators). The
service that answers run-eval has no public reference; it knows more evaluators than these files, and lists their names
in the error for an unknown one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.model.checks import JSON_OPERATORS
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.expectations import (
    ACTIONS,
    EVALUATORS,
    NUMERIC_OPERATORS,
    OPERATORS,
    OUTCOME,
    STRING_OPERATORS,
    TOPIC,
    render_actions,
)
from evalmeta.systems.run_eval import references

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalmeta.formats.records import Record
    from evalmeta.model.json_value import JsonValue
    from evalmeta.systems.run_eval.references import Reading


PREFIX: Final = "evaluator."
_ACTION_MATCHES: Final = {"includes_items": "superset", "contains": "superset", "equals": "exact"}
_TOPIC_MATCHES: Final = {"equals": "exact", "contains": "contains"}
_NO_MEASURE: Final = {
    "text_alignment": "it compares embeddings, which only Salesforce's service computes",
    **dict.fromkeys(
        ("hallucination_detection", "citation_recall", "answer_faithfulness"),
        "sf names this metric, but Salesforce does not document it",
    ),
}
_HINT: Final = "bot_response_rating judges an answer against an expected one."


def expectation_of(record: Record, name: str, reading: Reading) -> Expectation:
    """Return the expectation of an evaluator; one that evalmeta cannot judge has the evaluator's name and a reason."""
    label = record.text("id") or name
    if reading.reason:
        return _unjudged(name, label, reading.reason)
    convert = _CONVERTERS.get(name)
    if convert is None:
        reason = _NO_MEASURE.get(name, "only Salesforce's service has this evaluator")
        return _unjudged(name, label, f"{reason}. {_HINT}")
    found = convert(record, label, reading)
    return found if isinstance(found, Expectation) else _unjudged(name, label, found)


def _unjudged(name: str, label: str, reason: str) -> Expectation:
    return Expectation(PREFIX + name, label=label, terms={"reason": reason})


def _operator(record: Record, known: tuple[str, ...] | Mapping[str, str]) -> str:
    """Return the operator in lower case; report a missing or unknown one."""
    record.require("operator")
    operator = (record.text("operator") or "").lower()
    if operator and operator not in known:
        hint = record.diagnostics.suggest(operator, known)
        record.error("run-eval-operator", f"{operator!r} is not an operator that evalmeta knows", "operator", hint=hint)
    return operator


def _expected(record: Record) -> str:
    """Return what is expected as text; report if it is missing."""
    record.require("expected")
    return plain(record.raw("expected"))


def plain(value: JsonValue) -> str:
    """Return a value as text."""
    return "" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode()


def _topic(record: Record, label: str, reading: Reading) -> Expectation | str:
    operator, expected = _operator(record, STRING_OPERATORS), _expected(record)
    if reading.text != references.TOPIC or operator not in _TOPIC_MATCHES:
        return _comparison("string_comparison", operator, expected, label, reading)
    return Expectation(TOPIC, expected, label, terms={"match": _TOPIC_MATCHES[operator]})


def _actions(record: Record, label: str, reading: Reading) -> Expectation | str:
    operator = _operator(record, _ACTION_MATCHES)
    record.require("expected")
    value = record.raw("expected")
    names = [value] if isinstance(value, str) else [text for _, text in record.texts("expected")]
    if reading.text != references.ACTIONS:
        return "it compares only the whole list invokedActions"
    return Expectation(
        ACTIONS, render_actions(names), label, terms={"match": _ACTION_MATCHES.get(operator, "superset")}
    )


def _rating(record: Record, label: str, reading: Reading) -> Expectation | str:
    expected, threshold = _expected(record), record.number("threshold")
    if reading.text != references.OUTCOME:
        return "it rates only the answer"
    return Expectation(OUTCOME, expected, label, terms={} if threshold is None else {"threshold": threshold})


def _string(record: Record, label: str, reading: Reading) -> Expectation | str:
    operator, expected = _operator(record, STRING_OPERATORS), _expected(record)
    return _comparison("string_comparison", operator, expected, label, reading)


def _numeric(record: Record, label: str, reading: Reading) -> Expectation | str:
    operator, expected = _operator(record, NUMERIC_OPERATORS), _expected(record)
    return _comparison("numeric_comparison", operator, expected, label, reading)


def _comparison(name: str, operator: str, expected: str, label: str, reading: Reading) -> Expectation | str:
    if reading.text == references.LATENCY:
        if name != "numeric_comparison" or operator != "less_than_or_equal":
            return "it compares a latency only with less_than_or_equal"
        return Expectation("output_latency_milliseconds", expected, label)
    if "$.outputs" in expected:
        return "it compares only with a value, not with another output"
    parameters = (
        Parameter("operator", operator if operator in OPERATORS[name] else "equals", is_reference=False),
        Parameter("actual", reading.text, is_reference=reading.is_reference),
        Parameter("expected", expected, is_reference=False),
    )
    return Expectation(name, label=label, parameters=parameters)


def _json(record: Record, label: str, reading: Reading) -> Expectation | str:
    operator, path = _operator(record, JSON_OPERATORS), record.text("json_path") or "$"
    if record.has("json_schema"):
        return "evalmeta does not check JSON schemas"
    if not reading.is_reference or reading.text == references.LATENCY:
        return "it reads JSON only in the answer and in what the agent reports"
    record.require("expected")
    whole = path if reading.text == references.OUTCOME else reading.text + path.removeprefix("$")
    terms = {"path": whole, "operator": operator, "expected": record.raw("expected")}
    return Expectation("json", plain(record.raw("expected")), label, terms=terms)


_CONVERTERS: Final[Mapping[str, Callable[[Record, str, Reading], Expectation | str]]] = {
    "planner_topic_assertion": _topic,
    "planner_actions_assertion": _actions,
    "list_assertion": _actions,
    "bot_response_rating": _rating,
    "string_assertion": _string,
    "numeric_assertion": _numeric,
    "json_assertion": _json,
}
KNOWN: Final = tuple(PREFIX + name for name in EVALUATORS)
