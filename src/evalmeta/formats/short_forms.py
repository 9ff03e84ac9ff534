"""The short forms of test specs: keys such as `contains: Paris`, by the shape of their values, and their schema."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta import limits
from evalmeta.errors import FormatError, NotFound
from evalmeta.formats.document import is_file, read_bytes
from evalmeta.formats.sources import read_json
from evalmeta.formats.yaml_source import YamlRecord, YamlScalar, json_value
from evalmeta.model.checks import JSON_OPERATORS, Check, Pattern, PatternSyntax, Shape, reference_of
from evalmeta.model.definition import Expectation
from evalmeta.model.expectations import METRICS, render_actions
from evalmeta.model.expected_calls import CALL_KEYS, read_call
from evalmeta.model.expected_values import Fault, read_value
from evalmeta.model.session_state import expected_state, state_reference
from evalmeta.plugins import all_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue


Cell = Literal["text", "list", "names", "object", "plain"]
"""What a cell of a table is: a text, a text or a list in JSON, names, JSON, or a number or a flag."""
_LABEL_CHARS: Final = 60
_CALL_EXAMPLE: Final = 'Write {"name": "find_order", "input": {"id": 10045}}.'
_CALL_HINTS: Final = {
    **dict.fromkeys(("args", "arguments", "parameters", "params", "inputs"), "Use input."),
    **dict.fromkeys(("tool", "tool_name", "action", "function"), "Use name."),
    **dict.fromkeys(("result", "returns", "response"), "Use output."),
    **dict.fromkeys(("mode", "match", "order"), "Write action_match in the test case, beside actions."),
}
_SCHEMA: Final = "Write a path relative to the file of the test, such as schemas/order.json, or the schema itself."
_JSON_EXAMPLE: Final = "Write json: {path: $.city, equals: Paris}."
_STATE_EXAMPLE: Final = "Write state: {order.status: shipped}."
_PATH_EXAMPLE: Final = "Write a path such as order.items[0].id, or a full JSONPath such as $['last.action']."
_NO_STATE: Final = "Leave it out, or write state: {$: {equals: {}}} for a state without values."


def _text(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    if (text := case.text(check.name)) is not None:
        label = None if check.expectation else _label(check.name, text)
        yield Expectation(check.expectation or check.name, text, label)


def _value(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    value = case.raw(check.name)
    if not isinstance(value, list | dict):
        yield from _text(check, case)
        return
    expected = json_value(value)
    terms: JsonObject = {"path": "$", "operator": "equals", "expected": expected}
    yield Expectation("json", label=f"{check.name} {_shown(expected)}", terms=terms)


def _actions(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    value: object = case.raw(check.name)
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        calls = list(_calls(check, case, value))
        names = render_actions(str(call["name"]) for call in calls)
        terms: JsonObject = {"calls": calls} if any(len(call) > 1 for call in calls) else {}
        yield Expectation(check.expectation or check.name, names, terms=terms)
        return
    actions = list(case.one_or_more(check.name))
    for steps, name in actions:
        _check_action(case, name, steps)
    yield Expectation(check.expectation or check.name, render_actions(name.strip() for _, name in actions))


def _check_action(case: YamlRecord, name: str, steps: tuple[str | int, ...]) -> None:
    if not name.strip():
        case.error("spec-missing", "an action has no name", *steps)
    elif name.lstrip().startswith(("{", "[")):
        case.error("spec-value", f"{name!r:.100} is not valid JSON", *steps, hint=_CALL_EXAMPLE)


def _calls(check: Check, case: YamlRecord, value: object) -> Iterator[JsonObject]:
    """Yield the calls of actions; report each part that no call can have."""
    is_list = isinstance(value, list)
    for place, item in enumerate(value if isinstance(value, list) else [value]):
        steps = (check.name, place) if is_list else (check.name,)
        if not isinstance(item, dict):
            name = case.to_text(item, *steps) or ""
            if item is not None:
                _check_action(case, name, steps)
            yield {"name": name.strip()}
            continue
        record = case.at(item, *steps, called="an action")
        record.check_keys(*CALL_KEYS, hints=_CALL_HINTS)
        name = record.required_text("name").strip()
        if record.has("name"):
            _check_action(case, name, (*steps, "name"))
        _check_numbers(case, item, steps)
        call = {"name": name or "?", **{key: json_value(item[key]) for key in CALL_KEYS[1:] if key in item}}
        faults: list[Fault] = []
        read_call(call, steps, faults)
        for fault in faults:
            case.error("spec-value", fault.message, *fault.steps, hint=fault.hint)
        yield {key: part for key, part in call.items() if part is not None}


def _check_numbers(case: YamlRecord, value: object, steps: tuple[str | int, ...]) -> None:
    """Report each number in a value, such as 007, that other programs read differently."""
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            _check_numbers(case, inner, (*steps, step))
    elif isinstance(value, YamlScalar) and value.is_unsettled:
        is_text = isinstance(json_value(value), str)
        if is_text or value.integer is not None:
            message = f"the number {value.text} may be read differently by other programs"
            case.error("spec-number", message, *steps, hint=f'Put it in quotes: "{value.text}".')


def _action_patterns(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    for steps, text in _not_empty(case, check.name):
        if len(text) > limits.MAX_PATTERN_CHARS:
            most = f"at most {limits.MAX_PATTERN_CHARS:,} are allowed"
            case.error("spec-value", f"the pattern has {len(text):,} characters; {most}", *steps)
        yield Expectation(check.name, text.strip(), f"{check.name} {_shortened(text)}")


def _names(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    names = list(case.one_or_more(check.name))
    for steps, name in names:
        if not name.strip():
            case.error("spec-value", f"{check.name!r} has an empty name", *steps, hint="Write what is expected.")
    text = render_actions(name.strip() for _, name in names)
    yield Expectation(check.name, text, f"{check.name} {_shortened(', '.join(name for _, name in names) or 'none')}")


def _state(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    record = case.at(case.raw(check.name), check.name, called="a check of the state", hint=_STATE_EXAMPLE)
    if record.is_object and not record.values:
        case.error(
            "spec-value", f"{check.name!r} is an empty mapping, which expects nothing", check.name, hint=_NO_STATE
        )
    for path, item in record.values.items():
        if why := _why_not_state_path(path):
            case.error("spec-value", why, check.name, path, hint=_PATH_EXAMPLE)
        _check_numbers(case, item, (check.name, path))
        value, faults = json_value(item), list[Fault]()
        read_value(value, (check.name, path), faults)
        for fault in faults:
            case.error("spec-value", fault.message, *fault.steps, hint=fault.hint)
        yield expected_state(path, value)


def _texts(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    for _, text in _not_empty(case, check.name):
        yield Expectation(check.name, text, _label(check.name, text))


def _any_text(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    texts = [text for _, text in _not_empty(case, check.name)]
    label = f"{check.name} {', '.join(map(_quoted, texts))}"
    yield Expectation(check.name, label=label, terms={"texts": texts})


def _patterns(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    for steps, text in _not_empty(case, check.name):
        try:
            if text.strip() and Pattern(text).accepts_everything:
                hint = "Write what an answer must contain, and remove a '|' at the beginning or end."
                case.error("spec-value", f"{text!r:.100} matches every answer, so it checks nothing", *steps, hint=hint)
        except PatternSyntax as error:
            case.error("spec-value", f"{text!r:.100} is not a valid regular expression: {error}", *steps)
        yield Expectation(check.name, text, f"{check.name} {_shortened(text)}")


def _json(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    key, value = check.name, case.raw(check.name)
    is_list = isinstance(value, list)
    if value == []:
        case.error("spec-value", f"{key!r} is an empty list, which expects nothing", key, hint="Leave it out.")
    for place, item in enumerate(value if isinstance(value, list) else [value]):
        record = case.at(item, *((key, place) if is_list else (key,)), called="a check of JSON")
        if record.is_object:
            yield _json_check(record, key)


def _json_check(record: YamlRecord, name: str) -> Expectation:
    record.check_keys("path", "fenced", *JSON_OPERATORS)
    # A schema describes the whole answer unless there is a path.
    has_path = "path" in record.values or "schema" not in record.values
    path = record.required_text("path").strip() if has_path else "$"
    if path and (why := _why_not_path(path)):
        record.error("spec-value", why, "path", hint=_JSON_EXAMPLE)
    operators = [key for key in JSON_OPERATORS if key in record.values]
    if len(operators) > 1:
        message = f"a check of JSON has {operators[0]!r} and {operators[1]!r}"
        record.error("spec-value", message, operators[1], hint="Write one check for each.")
    operator = operators[0] if operators else ""
    value: object = record.values.get(operator)
    expected = _schema(record) if operator == "schema" else json_value(value)
    if isinstance(value, YamlScalar) and value.is_unsettled and isinstance(expected, str):
        record.to_text(value, operator)
    if operator not in {"", "equals", "contains", "schema"} and record.number(operator) is None:
        record.require(operator)
    shown = value.text if operator == "schema" and isinstance(value, YamlScalar) else _shown(expected)
    label = " ".join(filter(None, (name, path, operator, shown if operator else "exists")))
    fenced: JsonObject = {"fenced": True} if record.boolean("fenced") else {}
    terms = {"path": path, **({"operator": operator, "expected": expected} if operator else {}), **fenced}
    return Expectation(name, label=label, terms=terms)


def _schema(record: YamlRecord) -> JsonValue:
    """Return the JSON Schema of a check, which is written in the test or in a file; report one that cannot be used."""
    value: object = record.values["schema"]
    if not isinstance(value, YamlScalar) or value.is_null:
        return _checked_schema(record, json_value(value), "")
    name = value.text
    path = record.source.folder / name
    if not name.endswith(".json"):
        record.error("spec-value", f"the schema {name!r:.100} is not a file that ends in .json", "schema", hint=_SCHEMA)
    elif not is_file(path):
        record.error("spec-value", f"the file {str(path)!r} cannot be found", "schema", hint=_SCHEMA)
    else:
        try:
            return _checked_schema(record, read_json(read_bytes(path, limits.MAX_SPEC_BYTES), label=name).value, name)
        except (FormatError, NotFound) as error:
            record.error("spec-value", f"the schema {name!r} cannot be read: {error}", "schema")
    return None


def _checked_schema(record: YamlRecord, schema: JsonValue, file: str) -> JsonValue:
    from evalmeta.model.json_schema import SchemaFault, check_schema

    try:
        check_schema(schema)
    except SchemaFault as fault:
        where = f" of {file}" if file else ""
        record.error("spec-value", f"the schema{where} cannot be used: {fault}", "schema")
    return schema


def _why_not_path(path: str) -> str:
    from evalmeta.model.jsonpath import why_unreachable
    from evalmeta.model.jsonpath_parser import read_reference

    if not path.startswith("$"):
        return f"the path {path!r} does not start with $"
    reference = read_reference(reference_of(path))
    return reference if isinstance(reference, str) else why_unreachable(reference) or ""


def _why_not_state_path(path: str) -> str:
    from evalmeta.model.jsonpath_parser import read_reference

    if not path.strip():
        return "a path is empty"
    reference = read_reference(state_reference(path))
    return f"the path {path!r:.100} cannot be used: {reference}" if isinstance(reference, str) else ""


def _criteria(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    for _, text in _not_empty(case, check.name):
        yield Expectation(check.name, label=_label(check.name, text), terms={"guidelines": [text]})


def _functions(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    for steps, text in _not_empty(case, check.name):
        module, _, name = text.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), name)):
            message = f"{text!r} is not a valid module:function reference"
            case.error("spec-value", message, *steps, hint="Write the module and the function: checks:is_polite.")
        yield Expectation(check.name, label=f"{check.name} {text}", terms={"function": text})


def _maximum(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    key = check.name
    if (most := case.integer(key)) is None:
        return
    if most < (0 if check.shape == "count" else 1):
        hint = "Write a maximum of 0 or more." if check.shape == "count" else "Write a maximum above 0."
        case.error("spec-value", f"{key!r} is {most}, which no answer can meet", key, hint=hint)
    yield Expectation(check.expectation or key, str(most), f"{key} at most {most}")


class _ShapeOfValue(NamedTuple):
    """How values of a shape are read from a spec and from the cell of a table, and their definition in the schema."""

    read: Callable[[Check, YamlRecord], Iterator[Expectation]]
    cell: Cell
    definition: str


SHAPES: Final[Mapping[Shape, _ShapeOfValue]] = {
    "text": _ShapeOfValue(_text, "text", "optional"),
    "value": _ShapeOfValue(_value, "text", "value"),
    "texts": _ShapeOfValue(_texts, "list", "oneOrMore"),
    "any text": _ShapeOfValue(_any_text, "list", "oneOrMore"),
    "patterns": _ShapeOfValue(_patterns, "list", "oneOrMore"),
    "criteria": _ShapeOfValue(_criteria, "list", "oneOrMore"),
    "functions": _ShapeOfValue(_functions, "list", "functions"),
    "json": _ShapeOfValue(_json, "object", ""),
    "maximum": _ShapeOfValue(_maximum, "plain", "maximum"),
    "count": _ShapeOfValue(_maximum, "plain", "count"),
    "actions": _ShapeOfValue(_actions, "names", "actions"),
    "action patterns": _ShapeOfValue(_action_patterns, "names", "oneOrMore"),
    "names": _ShapeOfValue(_names, "names", "texts"),
    "state": _ShapeOfValue(_state, "object", "state"),
}


def _not_empty(case: YamlRecord, key: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts of a key with their places; report a list without texts, and an empty text."""
    texts = list(case.one_or_more(key))
    if case.raw(key) == []:
        case.error("spec-value", f"{key!r} is an empty list, which expects nothing", key, hint="Leave it out.")
    for steps, text in texts:
        if not text.strip():
            case.error("spec-value", f"{key!r} has an empty text", *steps, hint="Write what is expected.")
        yield steps, text


def _label(key: str, text: str) -> str:
    return f"{key} {_quoted(text)}"


def _quoted(text: str) -> str:
    return f'"{_shortened(text)}"'


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL_CHARS else f"{line[: _LABEL_CHARS - 1]}…"


def _shown(value: object) -> str:
    return _quoted(value) if isinstance(value, str) else _shortened(json.dumps(value, ensure_ascii=False))


_ONE_OR_MORE_JSON: Final[JsonValue] = [
    {"$ref": "#/$defs/jsonCheck"},
    {"type": "array", "items": {"$ref": "#/$defs/jsonCheck"}},
    {"type": "null"},
]
# The properties of checks stand between those of sf and the flags.
_METRICS: Final = re.compile(r'(?<="metric": {\n      "enum": \[).*?(?=\n      \])', re.DOTALL)
_PROPERTIES: Final = re.compile(r'(?<="#/\$defs/customEvaluation"}},\n).*?(?= *"exact": )', re.DOTALL)


def spec_schema() -> bytes:
    """Return the published schema, with the checks of installed packages."""
    return with_checks(published_schema(), all_checks().values()).encode()


def published_schema() -> str:
    """Return the content of the published file."""
    return (resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_text(encoding="utf-8")


def with_checks(schema: str, checks: Iterable[Check], *, metrics: Iterable[str] = METRICS) -> str:
    """Return the text of the schema with properties for these checks, and with the names of metrics."""
    properties, names = "".join(map(_property, checks)), ",".join(f"\n        {json.dumps(name)}" for name in metrics)
    with_properties, replaced = _PROPERTIES.subn(lambda _: properties, schema, count=1)
    with_names, named = _METRICS.subn(lambda _: names, with_properties, count=1)
    if not (replaced and named):
        raise AssertionError("the published schema has no place for checks or metrics")
    return with_names


def _property(check: Check) -> str:
    name, says = json.dumps(check.name), json.dumps(check.says, ensure_ascii=False)
    if check.shape == "json":
        any_of = json.dumps(_ONE_OR_MORE_JSON)
        return f'        {name}: {{\n          "description": {says},\n          "anyOf": {any_of}\n        }},\n'
    return f'        {name}: {{"$ref": "#/$defs/{SHAPES[check.shape].definition}", "description": {says}}},\n'
