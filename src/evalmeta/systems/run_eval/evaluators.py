"""The evaluators of run-eval as expectations, and what they read of earlier steps.

Sources: @salesforce/agents, `src/evalNormalizer.ts` and `src/yamlSpecTranslator.ts` (evaluators, keys, operators). The
service that answers run-eval has no public reference; it knows more evaluators than these files, and lists their names
in the error for an unknown one.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.model.checks import VALUE_OPERATORS
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.expectations import ACTIONS, EVALUATORS, OPERATORS, OUTCOME, STRING_OPERATORS, TOPIC, render_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.formats.diagnostics import Record
    from evalmeta.model.json_value import JsonValue


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
_LATENCY: Final = "latency"
_OUTCOME_PATH: Final = "$.generatedData.outcome"
_TOPIC_PATH: Final = "$.generatedData.topic"
_ACTIONS_PATH: Final = "$.generatedData.invokedActions"
_SESSION: Final = "$.generatedData.sessionId"
_LAST: Final = r"(?:response\.)?(?:planner_response\.lastExecution|planner_state)\."
_REFERENCE: Final = re.compile(
    r"""\$\.outputs\[(?:(?P<place>\d{1,4})|\?\(@\.id\s*==\s*['"](?P<id>[^'"]+)['"]\))\]\.(?P<path>.+)""", re.DOTALL
)
_SHORT: Final = re.compile(r"\{(?P<id>[^{}.]+)\.(?P<path>[^{}]+)\}")
_PATHS: Final = (
    (re.compile(rf"{_LAST}topic"), _TOPIC_PATH),
    (re.compile(rf"{_LAST}(?:invokedActions|actionsSequence)(?P<rest>[.\[].*)?", re.DOTALL), _ACTIONS_PATH),
    (re.compile(rf"{_LAST}latency"), _LATENCY),
    (re.compile(rf"{_LAST}message(?:\.message)?"), _OUTCOME_PATH),
)
_OWN: Final = "$.generatedData"


def expectation_of(record: Record, name: str, reading: Reading) -> Expectation:
    """Return the expectation of an evaluator; one that evalmeta cannot judge has the evaluator's name and a reason."""
    label = record.text("id") or name
    if reading.reason:
        return _unjudged(name, label, reading.reason)
    convert = _CONVERTERS.get(name)
    if convert is None:
        reason = _NO_MEASURE.get(name, "only Salesforce's service has this evaluator")
        return _unjudged(name, label, f"{reason}. {_HINT}")
    converted = convert(record, label, reading)
    return converted if isinstance(converted, Expectation) else _unjudged(name, label, converted)


def _unjudged(name: str, label: str, reason: str) -> Expectation:
    return Expectation(PREFIX + name, label=label, terms={"reason": reason})


def _operator(record: Record, known: tuple[str, ...] | Mapping[str, str]) -> str:
    record.require("operator")
    operator = (record.text("operator") or "").lower()
    if operator and operator not in known:
        hint = record.diagnostics.suggest(operator, known)
        record.error("run-eval-operator", f"{operator!r} is not an operator that evalmeta knows", "operator", hint=hint)
    return operator


def _expected(record: Record) -> str:
    record.require("expected")
    return plain(record.raw("expected"))


def plain(value: JsonValue) -> str:
    """Return a value as text."""
    return "" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode()


def _topic(record: Record, label: str, reading: Reading) -> Expectation | str:
    operator, expected = _operator(record, STRING_OPERATORS), _expected(record)
    if reading.text != _TOPIC_PATH or operator not in _TOPIC_MATCHES:
        return _comparison("string_comparison", operator, expected, label, reading)
    return Expectation(TOPIC, expected, label, terms={"match": _TOPIC_MATCHES[operator]})


def _actions(record: Record, label: str, reading: Reading) -> Expectation | str:
    operator = _operator(record, _ACTION_MATCHES)
    record.require("expected")
    value = record.raw("expected")
    names = [value] if isinstance(value, str) else [text for _, text in record.texts("expected")]
    if reading.text != _ACTIONS_PATH:
        return "it compares only the whole list invokedActions"
    terms = {"match": _ACTION_MATCHES.get(operator, "superset")}
    return Expectation(ACTIONS, render_actions(names), label, terms=terms)


def _rating(record: Record, label: str, reading: Reading) -> Expectation | str:
    expected, threshold = _expected(record), record.number("threshold")
    if reading.text != _OUTCOME_PATH:
        return "it rates only the answer"
    return Expectation(OUTCOME, expected, label, terms={} if threshold is None else {"threshold": threshold})


def _compared(record: Record, label: str, reading: Reading, *, name: str) -> Expectation | str:
    return _comparison(name, _operator(record, OPERATORS[name]), _expected(record), label, reading)


def _comparison(name: str, operator: str, expected: str, label: str, reading: Reading) -> Expectation | str:
    if reading.text == _LATENCY:
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
    operator, path = _operator(record, VALUE_OPERATORS), record.text("json_path") or "$"
    if record.has("json_schema"):
        return "evalmeta does not check JSON schemas"
    if not reading.is_reference or reading.text == _LATENCY:
        return "it reads JSON only in the answer and in what the agent reports"
    record.require("expected")
    whole = path if reading.text == _OUTCOME_PATH else reading.text + path.removeprefix("$")
    terms = {"path": whole, "operator": operator, "expected": record.raw("expected")}
    return Expectation("json", plain(record.raw("expected")), label, terms=terms)


_CONVERTERS: Final[Mapping[str, Callable[[Record, str, Reading], Expectation | str]]] = {
    "planner_topic_assertion": _topic,
    "planner_actions_assertion": _actions,
    "list_assertion": _actions,
    "bot_response_rating": _rating,
    "string_assertion": partial(_compared, name="string_comparison"),
    "numeric_assertion": partial(_compared, name="numeric_comparison"),
    "json_assertion": _json,
}
KNOWN: Final = tuple(PREFIX + name for name in EVALUATORS)


class StepOutput(NamedTuple):
    """A step with an output: its id, its type, and the number of messages that were sent by then."""

    id: str
    type: str
    sent: int


class Reading(NamedTuple):
    """What an evaluator reads."""

    turn: int = 0  # the turn whose answer it reads, from 1; 0 for the last one
    text: str = ""  # a reference into what the agent returned, `_LATENCY`, or a literal
    is_reference: bool = True  # whether it is not a literal
    fault: str = ""  # why it can never be read; empty if it can
    reason: str = ""  # why evalmeta cannot read it, although an org may; empty if it can


def read_operand(text: str, outputs: Sequence[StepOutput], *, is_raw: bool) -> Reading:
    """Return what the `actual` of an evaluator reads; with `is_raw`, the short form `{step.path}` is a literal."""
    text = text.strip()
    if text.startswith((f"{_OWN}.", f"{_OWN}[")):
        return Reading(text=text)
    named_output = _REFERENCE.fullmatch(text) or (None if is_raw else _SHORT.fullmatch(text))
    if named_output is None:
        if "$.outputs" in text or (not is_raw and _SHORT.search(text)):
            return Reading(reason=f"it reads only a whole reference, not {text!r:.80}")
        return Reading(text=text, is_reference=False)
    named = named_output.groupdict()
    place = named.get("place")
    key = place or named["id"]
    step = next((step for at, step in enumerate(outputs) if key == (str(at) if place else step.id)), None)
    return Reading(fault=_missing(named, outputs)) if step is None else _read_output(step, named["path"], text)


def _missing(named: Mapping[str, str], outputs: Sequence[StepOutput]) -> str:
    if place := named.get("place"):
        return f"it reads output {place}; the outputs of the test have the numbers 0 to {len(outputs) - 1}"
    known = ", ".join(output.id for output in outputs)
    return f"it reads the step {named['id']!r:.80}, which does not exist; known: {known}"


def _read_output(step: StepOutput, path: str, text: str) -> Reading:
    if step.type == "agent.create_session" and path == "session_id":
        return Reading(1, _SESSION)
    if not step.sent:
        return Reading(reason=f"{text!r:.100} reads what was before the first message")
    if step.type == "agent.send_message" and (path == "response" or path.startswith("response.messages")):
        return Reading(step.sent, _OUTCOME_PATH)
    for pattern, reference in _PATHS:
        if matched := pattern.fullmatch(path):
            return Reading(step.sent, reference + (matched.groupdict().get("rest") or ""))
    return Reading(step.sent, reason=f"its agents do not report {path!r:.80}")
