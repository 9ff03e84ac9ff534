"""The short forms of test specs: keys such as `contains: Paris`, each of which makes expectations, read by shape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from evalmeta.formats.yaml_source import YamlScalar, json_value
from evalmeta.model.checks import JSON_OPERATORS, Check, Shape, reference_of
from evalmeta.model.definition import Expectation
from evalmeta.model.expectations import render_actions
from evalmeta.model.pattern import Pattern, PatternSyntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evalmeta.formats.yaml_source import YamlRecord


_LABEL_CHARS: Final = 60
_JSON_EXAMPLE: Final = "Write json: {path: $.city, equals: Paris}."


def read_check(check: Check, case: YamlRecord) -> Iterator[Expectation]:
    """Yield the expectations that the value of a check makes."""
    return _READERS[check.shape](case, check)


def _text(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    if (text := case.text(check.name)) is not None:
        label = None if check.expectation else _label(check.name, text)
        yield Expectation(check.expectation or check.name, text, label)


def _actions(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    actions = list(case.one_or_more(check.name))
    for steps, name in actions:
        if not name.strip():
            case.error("spec-missing", "an action has no name", *steps)
    yield Expectation(check.expectation or check.name, render_actions(name.strip() for _, name in actions))


def _texts(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    for _, text in _not_empty(case, check.name):
        yield Expectation(check.name, text, _label(check.name, text))


def _any_text(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    texts = [text for _, text in _not_empty(case, check.name)]
    label = f"{check.name} {', '.join(map(_quoted, texts))}"
    yield Expectation(check.name, label=label, terms={"texts": texts})


def _patterns(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    for steps, text in _not_empty(case, check.name):
        try:
            if text.strip() and Pattern(text).accepts_everything:
                hint = "Write what an answer must contain, and remove a '|' at the beginning or end."
                case.error("spec-value", f"{text!r:.100} matches every answer, so it checks nothing", *steps, hint=hint)
        except PatternSyntax as error:
            case.error("spec-value", f"{text!r:.100} is not a valid regular expression: {error}", *steps)
        yield Expectation(check.name, text, f"{check.name} {_shortened(text)}")


def _json(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    key, value = check.name, case.raw(check.name)
    places: list[tuple[str | int, ...]] = (
        [(key, place) for place in range(len(value))] if isinstance(value, list) else [(key,)]
    )
    for steps, item in zip(places, value if isinstance(value, list) else [value], strict=True):
        record = case.at(item, *steps, called="a check of JSON")
        if record.is_object:
            yield _json_check(record, key)


def _json_check(record: YamlRecord, name: str) -> Expectation:
    record.check_keys("path", *JSON_OPERATORS)
    path = record.required_text("path").strip()
    if path and (why := _why_not_path(path)):
        record.error("spec-value", why, "path", hint=_JSON_EXAMPLE)
    operators = [key for key in JSON_OPERATORS if key in record.values]
    if len(operators) > 1:
        record.error(
            "spec-value",
            f"a check of JSON has {operators[0]!r} and {operators[1]!r}",
            operators[1],
            hint="Write one check for each.",
        )
    operator = operators[0] if operators else ""
    value: object = record.values.get(operator)
    expected = json_value(value)
    if isinstance(value, YamlScalar) and value.is_unsettled and isinstance(expected, str):
        record.to_text(value, operator)
    if operator not in {"", "equals", "contains"} and record.number(operator) is None:
        record.require(operator)
    label = " ".join(filter(None, (name, path, operator, _shown(expected) if operator else "exists")))
    terms = {"path": path, **({"operator": operator, "expected": expected} if operator else {})}
    return Expectation(name, label=label, terms=terms)


def _why_not_path(path: str) -> str:
    from evalmeta.model.jsonpath_parser import read_reference
    from evalmeta.model.reachability import why_unreachable

    if not path.startswith("$"):
        return f"the path {path!r} does not start with $"
    reference = read_reference(reference_of(path))
    return reference if isinstance(reference, str) else why_unreachable(reference) or ""


def _criteria(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    for _, text in _not_empty(case, check.name):
        yield Expectation(check.name, label=_label(check.name, text), terms={"guidelines": [text]})


def _functions(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    for steps, text in _not_empty(case, check.name):
        module, _, name = text.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), name)):
            message = f"{text!r} is not a valid module:function reference"
            case.error("spec-value", message, *steps, hint="Write the module and the function: checks:is_polite.")
        yield Expectation(check.name, label=f"{check.name} {text}", terms={"function": text})


def _maximum(case: YamlRecord, check: Check) -> Iterator[Expectation]:
    key = check.name
    if (most := case.integer(key)) is None:
        return
    if most <= 0:
        case.error("spec-value", f"{key!r} is {most}, which no answer can meet", key, hint="Write a maximum above 0.")
    yield Expectation(check.expectation or key, str(most), f"{key} at most {most}")


_READERS: Final[Mapping[Shape, Callable[[YamlRecord, Check], Iterator[Expectation]]]] = {
    "text": _text,
    "texts": _texts,
    "any text": _any_text,
    "patterns": _patterns,
    "criteria": _criteria,
    "functions": _functions,
    "json": _json,
    "maximum": _maximum,
    "actions": _actions,
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
