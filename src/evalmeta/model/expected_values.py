"""Expected values of JSON: literal values, and matchers such as `{at_least: 5}`, nested as JSON is.

A mapping whose keys are all names of `MATCHERS` is a matcher, and all its conditions must hold. Any other mapping must
be a part of the actual one, unless the value is `exact`; `{}` is an empty mapping. `{equals: VALUE}` is that value and
nothing else, also if its keys are those of matchers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta.errors import did_you_mean
from evalmeta.model.checks import Pattern, PatternSyntax

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue

    Steps: TypeAlias = tuple[str | int, ...]


MATCHERS: Final = ("equals", "matches", "contains", "at_least", "at_most", "one_of", "type", "any")
# Matchers whose names many tools have as names of arguments.
_USUAL_NAMES: Final = frozenset({"type", "any", "contains", "matches"})
_NEAR: Final = 0.8
_MAX_CHARS: Final = 100
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_UNIQUE: Final = "write {equals: {...}} for a mapping that has these keys"


class Fault(NamedTuple):
    """Why an expected value cannot be compared: the keys and indexes that lead to the place, and what is wrong."""

    steps: Steps
    message: str
    hint: str = ""


def text_of(value: JsonValue) -> str:
    """Return a value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"


def json_key(value: JsonValue) -> Hashable:
    """Return a key that is equal for equal JSON; in Python True equals 1, in JSON it does not."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, Mapping):
        return frozenset((name, json_key(inner)) for name, inner in value.items())
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return "list", *map(json_key, value)


def is_matcher(value: JsonValue) -> bool:
    """Return whether a value is a mapping of matchers."""
    return isinstance(value, Mapping) and bool(value) and all(name in MATCHERS for name in value)


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A text, number, boolean or null."""

    value: JsonValue
    key: Hashable

    def __str__(self) -> str:
        return text_of(self.value)

    def accepts(self, actual: JsonValue) -> bool:
        return json_key(actual) == self.key

    def differences(self, actual: JsonValue, place: str) -> Iterator[str]:
        if not self.accepts(actual):
            yield f"{place}: expected {self}, got {text_of(actual)}"


@dataclass(frozen=True, slots=True)
class _Listed:
    """A list, of which each item is expected at its place."""

    items: tuple[ExpectedValue, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"

    def accepts(self, actual: JsonValue) -> bool:
        return (
            isinstance(actual, list | tuple)
            and len(actual) == len(self.items)
            and all(item.accepts(other) for item, other in zip(self.items, actual, strict=True))
        )

    def differences(self, actual: JsonValue, place: str) -> Iterator[str]:
        if not isinstance(actual, list | tuple):
            yield f"{place}: expected {self}, got {text_of(actual)}"
        elif len(actual) != len(self.items):
            yield f"{place}: expected {_count(len(self.items))}, got {len(actual)}: {text_of(actual)}"
        else:
            for index, (item, other) in enumerate(zip(self.items, actual, strict=True)):
                yield from item.differences(other, f"{place}[{index}]")


@dataclass(frozen=True, slots=True)
class NamedValues:
    """A mapping; if it is not exact, the actual one can have other names too."""

    values: Mapping[str, ExpectedValue]
    is_exact: bool

    def __str__(self) -> str:
        return f"{{{', '.join(f'{json.dumps(name)}: {value}' for name, value in self.values.items())}}}"

    def accepts(self, actual: JsonValue) -> bool:
        """Return whether there is no difference; no texts are built."""
        return (
            isinstance(actual, Mapping)
            and self.values.keys() <= actual.keys()
            and (not self.is_exact or len(actual) == len(self.values))
            and all(value.accepts(actual[name]) for name, value in self.values.items())
        )

    def differences(self, actual: JsonValue, place: str) -> Iterator[str]:
        """Yield a text for each argument or other part that is not as expected."""
        if not isinstance(actual, Mapping):
            yield f"{place}: expected {self}, got {text_of(actual)}"
            return
        for name in chain(self.values, (name for name in actual if self.is_exact and name not in self.values)):
            inner = f"{place}.{name}" if _PLAIN_NAME.fullmatch(name) else f"{place}[{text_of(name)}]"
            if name not in self.values:
                yield f"{inner}: not expected, got {text_of(actual[name])}"
            elif name not in actual:
                yield f"{inner}: expected {self.values[name]}, but it is missing"
            else:
                yield from self.values[name].differences(actual[name], inner)


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition of a matcher: how it reads, and whether a value meets it."""

    says: str
    holds: Callable[[JsonValue], bool]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Conditions that must all hold."""

    conditions: tuple[_Condition, ...]

    def __str__(self) -> str:
        return " and ".join(condition.says for condition in self.conditions)

    def accepts(self, actual: JsonValue) -> bool:
        """Return whether all conditions hold."""
        return all(condition.holds(actual) for condition in self.conditions)

    def differences(self, actual: JsonValue, place: str) -> Iterator[str]:
        """Yield a text if a condition does not hold."""
        if not self.accepts(actual):
            yield f"{place}: expected {self}, got {text_of(actual)}"


ExpectedValue: TypeAlias = _Scalar | _Listed | NamedValues | Matcher
"""What a value must be; `differences` yields a text for each place at which a value is something else.

`accepts` is whether there is none, and builds no texts.
"""


def _count(number: int) -> str:
    return "1 item" if number == 1 else f"{number} items"


def read_value(
    value: JsonValue, steps: Steps, faults: list[Fault], *, exact: bool = False, literal: bool = False
) -> ExpectedValue:
    """Return what a value expects, and add what is wrong with it to `faults`; in a literal, no mapping is a matcher."""
    if isinstance(value, Mapping):
        if not literal and is_matcher(value):
            return _matcher(value, steps, faults, exact=exact)
        if not literal:
            faults.extend(_near_misses(value, steps))
        inner = {
            name: read_value(item, (*steps, name), faults, exact=exact, literal=literal) for name, item in value.items()
        }
        return NamedValues(inner, exact or not inner)
    if isinstance(value, list | tuple):
        return _Listed(
            tuple(read_value(item, (*steps, at), faults, exact=exact, literal=literal) for at, item in enumerate(value))
        )
    return _Scalar(value, json_key(value))


def literal_value(value: JsonValue) -> JsonValue:
    """Return an expected value that has a value literally, although it may look like matchers."""
    faults: list[Fault] = []
    read_value(value, (), faults)
    return {"equals": value} if faults or _has_matcher(value) else value


def _has_matcher(value: JsonValue) -> bool:
    if isinstance(value, list):
        return any(map(_has_matcher, value))
    return isinstance(value, dict) and (is_matcher(value) or any(map(_has_matcher, value.values())))


def _near_misses(value: JsonObject, steps: Steps) -> Iterator[Fault]:
    """Yield the keys that look like mistyped matchers: those that differ in signs only, and others beside a matcher."""
    has_matcher = any(name in MATCHERS and name not in _USUAL_NAMES for name in value)
    for name in value:
        if name in MATCHERS:
            continue
        known = _BY_LETTERS.get(_letters(name)) or next(
            iter(get_close_matches(name, MATCHERS, n=1, cutoff=_NEAR) if has_matcher else ()), ""
        )
        if known:
            hint = f"Did you mean {known!r}? If it is the name of a value, {_UNIQUE}."
            yield Fault((*steps, name), f"{name!r} is not a matcher", hint)


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _matcher(value: JsonObject, steps: Steps, faults: list[Fault], *, exact: bool) -> Matcher:
    conditions = []
    for name, operand in value.items():
        if name in {"equals", "one_of"}:
            condition = _of_values(name, operand, (*steps, name), faults, exact=exact)
        else:
            condition = _CONDITIONS[name](operand)
        if isinstance(condition, _Condition):
            conditions.append(condition)
        else:
            faults.append(Fault((*steps, name), *condition))
    if why := _why_impossible(value):
        faults.append(Fault(steps, why, f"No value meets this; correct it, or {_UNIQUE}."))
    return Matcher(tuple(conditions))


def _of_values(
    name: str, operand: JsonValue, steps: Steps, faults: list[Fault], *, exact: bool
) -> _Condition | tuple[str, str]:
    if name == "equals":
        wanted = json_key(operand)
        return _Condition(text_of(operand), lambda actual: json_key(actual) == wanted)
    if not isinstance(operand, list | tuple) or not operand:
        what = "an empty list, which no value meets" if operand in ([], ()) else f"{text_of(operand)}, not a list"
        return f"'one_of' is {what}", "Write the values of which one must be equal: one_of: [a, b]."
    choices = [read_value(choice, (*steps, at), faults, exact=exact) for at, choice in enumerate(operand)]
    says = f"one of {', '.join(map(str, choices))}"
    return _Condition(says, lambda actual: any(choice.accepts(actual) for choice in choices))


def _matching(operand: JsonValue) -> _Condition | tuple[str, str]:
    if not isinstance(operand, str):
        return f"'matches' is {text_of(operand)}, not a text", "Write a regular expression in quotes."
    try:
        pattern = Pattern(operand)
    except PatternSyntax as error:
        return f"{operand!r:.100} is not a valid regular expression: {error}", ""
    if pattern.accepts_everything:
        return f"{operand!r:.100} matches every text, so it checks nothing", "Write type: string for any text."
    return _Condition(
        f"a text that matches {operand}", lambda actual: isinstance(actual, str) and pattern.is_in(actual)
    )


def _containing(operand: JsonValue) -> _Condition | tuple[str, str]:
    if operand in ("", None):
        return "'contains' is empty, so it checks nothing", "Write the text or the item that the value must contain."
    wanted = json_key(operand)

    def holds(actual: JsonValue) -> bool:
        if isinstance(actual, str):
            return isinstance(operand, str) and operand in actual
        return isinstance(actual, list | tuple) and any(json_key(item) == wanted for item in actual)

    return _Condition(f"a value that contains {text_of(operand)}", holds)


def _at_least(operand: JsonValue) -> _Condition | tuple[str, str]:
    if not _is_number(operand):
        return f"'at_least' is {text_of(operand)}, not a number", "Write a number without quotes."
    return _Condition(f"at least {text_of(operand)}", lambda actual: _is_number(actual) and actual >= operand)  # type: ignore[operator]


def _at_most(operand: JsonValue) -> _Condition | tuple[str, str]:
    if not _is_number(operand):
        return f"'at_most' is {text_of(operand)}, not a number", "Write a number without quotes."
    return _Condition(f"at most {text_of(operand)}", lambda actual: _is_number(actual) and actual <= operand)  # type: ignore[operator]


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# The types of JSON Schema.
_TYPES: Final[Mapping[str, Callable[[JsonValue], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and float(value).is_integer(),  # type: ignore[arg-type]
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}


def _typed(operand: JsonValue) -> _Condition | tuple[str, str]:
    if not isinstance(operand, str) or operand not in _TYPES:
        near = did_you_mean(operand, _TYPES) if isinstance(operand, str) else ""
        known = f"Known: {', '.join(_TYPES)}; {_UNIQUE}."
        return f"{text_of(operand)} is not a type of JSON", f"{near} {known}".lstrip()
    return _Condition(f"a value of type {operand}", _TYPES[operand])


def _anything(operand: JsonValue) -> _Condition | tuple[str, str]:
    if operand is not True:
        return f"'any' is {text_of(operand)}", f"Write any: true for any value; {_UNIQUE}."
    return _Condition("any value", lambda _: True)


_BY_LETTERS: Final = {_letters(name): name for name in MATCHERS if "_" in name}
_CONDITIONS: Final[Mapping[str, Callable[[JsonValue], _Condition | tuple[str, str]]]] = {
    "matches": _matching,
    "contains": _containing,
    "at_least": _at_least,
    "at_most": _at_most,
    "type": _typed,
    "any": _anything,
}
_NEEDED: Final = {
    "matches": {"string"},
    "contains": {"string", "array"},
    "at_least": {"number", "integer"},
    "at_most": {"number", "integer"},
}


def _why_impossible(matcher: JsonObject) -> str:
    """Return why no value meets all conditions; empty if one may."""
    least, most = matcher.get("at_least"), matcher.get("at_most")
    if _is_number(least) and _is_number(most) and least > most:  # type: ignore[operator]
        return f"'at_least' is {text_of(least)}, more than 'at_most', {text_of(most)}"
    named = matcher.get("type")
    types = {name: _NEEDED[name] for name in matcher if name in _NEEDED}
    if isinstance(named, str) and named in _TYPES:
        types["type"] = {named}
    if types and not set.intersection(*types.values()):
        return f"no value meets {' and '.join(map(repr, types))}"
    return ""
