"""The short forms of test specs: keys such as `contains: Paris`, each of which makes expectations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from evalmeta.formats.yaml_source import YamlScalar, json_value
from evalmeta.model.checks import JSON_OPERATORS, reference_of
from evalmeta.model.definition import Expectation
from evalmeta.model.expectations import ACTIONS, TOPIC, render_actions
from evalmeta.model.pattern import Pattern, PatternSyntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evalmeta.formats.yaml_source import YamlRecord


LATENCY: Final = "output_latency_milliseconds"
_LABEL_CHARS: Final = 60
_JSON_EXAMPLE: Final = "Write json: {path: $.city, equals: Paris}."


def _topic(case: YamlRecord, key: str) -> Iterator[Expectation]:
    if (topic := case.text(key)) is not None:
        yield Expectation(TOPIC, topic)


def _actions(case: YamlRecord, key: str) -> Iterator[Expectation]:
    actions = list(case.one_or_more(key))
    for steps, name in actions:
        if not name.strip():
            case.error("spec-missing", "an action has no name", *steps)
    yield Expectation(ACTIONS, render_actions(name.strip() for _, name in actions))


def _texts(case: YamlRecord, key: str) -> Iterator[Expectation]:
    for _, text in _not_empty(case, key):
        yield Expectation(key, text, _label(key, text))


def _equals(case: YamlRecord, key: str) -> Iterator[Expectation]:
    if (text := case.text(key)) is not None:
        yield Expectation(key, text, _label(key, text))


def _contains_any(case: YamlRecord, key: str) -> Iterator[Expectation]:
    texts = [text for _, text in _not_empty(case, key)]
    label = f"{key} {', '.join(map(_quoted, texts))}"
    yield Expectation(key, label=label, terms={"texts": texts})


def _matches(case: YamlRecord, key: str) -> Iterator[Expectation]:
    for steps, text in _not_empty(case, key):
        try:
            if text.strip() and Pattern(text).accepts_everything:
                hint = "Write what an answer must contain, and remove a '|' at the beginning or end."
                case.error("spec-value", f"{text!r:.100} matches every answer, so it checks nothing", *steps, hint=hint)
        except PatternSyntax as error:
            case.error("spec-value", f"{text!r:.100} is not a valid regular expression: {error}", *steps)
        yield Expectation(key, text, f"{key} {_shortened(text)}")


def _json(case: YamlRecord, key: str) -> Iterator[Expectation]:
    value = case.raw(key)
    places: list[tuple[str | int, ...]] = (
        [(key, place) for place in range(len(value))] if isinstance(value, list) else [(key,)]
    )
    for steps, each in zip(places, value if isinstance(value, list) else [value], strict=True):
        record = case.at(each, *steps, called="a check of JSON")
        if record.is_object:
            yield from _json_check(record)


def _json_check(record: YamlRecord) -> Iterator[Expectation]:
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
    label = " ".join(filter(None, ("json", path, operator, _shown(expected) if operator else "exists")))
    terms = {"path": path, **({"operator": operator, "expected": expected} if operator else {})}
    yield Expectation("json", label=label, terms=terms)


def _why_not_path(path: str) -> str:
    from evalmeta.model.jsonpath_parser import read_reference
    from evalmeta.model.reachability import why_unreachable

    if not path.startswith("$"):
        return f"the path {path!r} does not start with $"
    found = read_reference(reference_of(path))
    return found if isinstance(found, str) else why_unreachable(found) or ""


def _rubric(case: YamlRecord, key: str) -> Iterator[Expectation]:
    for _, text in _not_empty(case, key):
        yield Expectation(key, label=_label(key, text), terms={"guidelines": [text]})


def _function(case: YamlRecord, key: str) -> Iterator[Expectation]:
    for steps, text in _not_empty(case, key):
        module, _, name = text.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), name)):
            message = f"{text!r} is not a valid module:function reference"
            case.error("spec-value", message, *steps, hint="Write the module and the function: checks:is_polite.")
        yield Expectation(key, label=f"{key} {text}", terms={"function": text})


def _latency(case: YamlRecord, key: str) -> Iterator[Expectation]:
    if (most := _most(case, key)) is not None:
        yield Expectation(LATENCY, str(most), f"{key} at most {most}")


def _tokens(case: YamlRecord, key: str) -> Iterator[Expectation]:
    if (most := _most(case, key)) is not None:
        yield Expectation(key, str(most), f"{key} at most {most}")


def _most(case: YamlRecord, key: str) -> int | None:
    most = case.integer(key)
    if most is not None and most <= 0:
        case.error("spec-value", f"{key!r} is {most}, which no answer can meet", key, hint="Write a maximum above 0.")
    return most


SHORT_FORMS: Final[Mapping[str, Callable[[YamlRecord, str], Iterator[Expectation]]]] = {
    "topic": _topic,
    "actions": _actions,
    "contains": _texts,
    "contains_any": _contains_any,
    "not_contains": _texts,
    "equals": _equals,
    "starts_with": _texts,
    "ends_with": _texts,
    "matches": _matches,
    "json": _json,
    "rubric": _rubric,
    "function": _function,
    "latency_ms": _latency,
    "tokens": _tokens,
}
"""The keys of checks, and what makes their expectations."""


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
