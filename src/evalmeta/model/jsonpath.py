"""References: the JSONPath of a custom criterion, as steps, and whether it can match what evalmeta records.

The dialect is the documented one (Testing API Developer Guide, "Custom Evaluation Criteria", which refers to Jayway
JsonPath), without features that can hang a run, such as regular expressions, or that only one library has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


REFERENCE_ROOT: Final = "generatedData"
"""The only member of `$` with which a reference may start."""

Operator = Literal["exists", "missing", "==", "!=", "<", "<=", ">", ">=", "in", "nin"]


class ReferenceSyntax(ValueError):
    """The text is not a supported reference; the message says why."""


@dataclass(frozen=True, slots=True)
class Names:
    """Members of an object: `.a`, `['a']`, `['a','b']`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Positions:
    """Items of a list, from 0, or from -1 at the end: `[0]`, `[-1]`, `[0,2]`."""

    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A slice of a list: `[start:end:step]`."""

    start: int | None
    end: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class Everything:
    """All items of a list or all values of an object: `[*]`, `.*`."""


@dataclass(frozen=True, slots=True)
class Descendants:
    """The value itself and every value inside it, parents first: `..`."""


@dataclass(frozen=True, slots=True)
class Length:
    """The number of items, members or characters: `.length()`, `.size()`."""


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the root (`$`) or from the node under test (`@`)."""

    steps: tuple[Step, ...]
    from_root: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """One test of a filter; `exists` and `missing` have no right operand, that of `in` and `nin` is a tuple."""

    left: Path
    operator: Operator
    right: Path | JsonValue | tuple[JsonValue, ...] = None


@dataclass(frozen=True, slots=True)
class Junction:
    """Tests joined by `&&` (every) or `||` (any)."""

    every: bool
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The nodes that pass a test: `[?(@.function.name == 'X')]`."""

    test: Test


Step: TypeAlias = Names | Positions | Range | Everything | Descendants | Length | Filter
Test: TypeAlias = Comparison | Junction


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference and its text."""

    text: str
    steps: tuple[Step, ...]

    @property
    def starts_at_generated_data(self) -> bool:
        """Return whether the first step is `generatedData`, the only member of `$`."""
        return self.steps[:1] == (Names((REFERENCE_ROOT,)),)


class _List(NamedTuple):
    """A list of items of one shape; `is_single` if it has at most one item."""

    item: _Shape
    is_single: bool = False


_Shape: TypeAlias = "Mapping[str, _Shape] | _List | str"

# A text may contain JSON, which references read like any other value.
_ANYTHING: Final = "anything"
_SCALAR: Final = "a single value"
_CALL: Final[_Shape] = {
    "function": {"name": _SCALAR, "input": _ANYTHING, "output": _ANYTHING},
    "executionLatency": _SCALAR,
    "error": _SCALAR,
}
# Mirrors reference_root; subjects report the actions of a turn as one step.
_ROOT: Final[_Shape] = {
    REFERENCE_ROOT: {
        "type": _SCALAR,
        "topic": _SCALAR,
        "actionsSequence": _List(_SCALAR),
        "invokedActions": _List(_List(_CALL), is_single=True),
        "outcome": _ANYTHING,
        "generatedResponse": _ANYTHING,
        "sessionId": _SCALAR,
    }
}


class _Place(NamedTuple):
    """A shape, and the path that leads to it."""

    path: str
    shape: _Shape


class _Unreachable(Exception):
    """No value can match; the message says which step is wrong."""


@lru_cache(maxsize=1_000)
def why_unreachable(reference: Reference) -> str | None:
    """Return why a reference can never match a value, in one sentence; None if it can."""
    try:
        _follow(reference.steps, _Place("$", _ROOT))
    except _Unreachable as error:
        return str(error)
    return None


def _follow(steps: Iterable[Step], start: _Place) -> None:
    places = [start]
    for step in steps:
        reached_places = [reached for place in places for reached in _reached(step, place)]
        if not reached_places:
            raise _Unreachable(_complaint(step, places[0]))
        places = reached_places


def _reached(step: Step, place: _Place) -> Iterator[_Place]:
    path, shape = place
    if shape == _ANYTHING:
        yield place
    elif isinstance(step, Length):
        yield _Place(f"{path}.length()", _SCALAR)
    elif isinstance(step, Descendants):
        yield from _nested(place)
    elif isinstance(step, Filter):
        yield from (item for item in _items(place) if _complaint_of_test(step.test, item) is None)
    elif isinstance(shape, Mapping):
        names = step.names if isinstance(step, Names) else tuple(shape) if isinstance(step, Everything) else ()
        yield from (_Place(f"{path}.{name}", shape[name]) for name in names if name in shape)
    elif isinstance(shape, _List) and _can_have(shape, step):
        index = ",".join(map(str, step.positions)) if isinstance(step, Positions) else "*"
        yield _Place(f"{path}[{index}]", shape.item)


def _can_have(shape: _List, step: Step) -> bool:
    if isinstance(step, Positions):
        return not shape.is_single or bool({0, -1}.intersection(step.positions))
    return isinstance(step, Range | Everything)


def _items(place: _Place) -> tuple[_Place, ...]:
    """Return what a filter tests: the items of a list, or an object itself."""
    if isinstance(place.shape, _List):
        return (_Place(f"{place.path}[*]", place.shape.item),)
    return (place,) if isinstance(place.shape, Mapping) else ()


def _nested(place: _Place) -> Iterator[_Place]:
    yield place
    inner = _items(place) if isinstance(place.shape, _List) else ()
    if isinstance(place.shape, Mapping):
        inner = tuple(_Place(f"{place.path}.{name}", shape) for name, shape in place.shape.items())
    for item in inner:
        yield from _nested(item)


def _complaint_of_test(test: Test, place: _Place) -> str | None:
    """Return why no value at a place can pass a test, None if one can."""
    if isinstance(test, Junction):
        complaints = [_complaint_of_test(inner, place) for inner in test.tests]
        counted = [complaint for complaint in complaints if complaint]
        return counted[0] if counted and (test.every or len(counted) == len(complaints)) else None
    if test.operator in {"missing", "!=", "nin"}:
        return None
    return _complaint_of_operands(test, place)


def _complaint_of_operands(test: Comparison, place: _Place) -> str | None:
    for path in (test.left, test.right):
        if isinstance(path, Path):
            try:
                _follow(path.steps, _Place("$", _ROOT) if path.from_root else place)
            except _Unreachable as error:
                return str(error)
    return None


def _complaint(step: Step, place: _Place) -> str:
    path, shape = place
    if isinstance(step, Filter) and not isinstance(shape, str):
        return _complaint_of_test(step.test, _items(place)[0]) or ""
    if isinstance(shape, _List):
        if isinstance(step, Positions):
            return f"{path} has at most one item; write [0] or [*]"
        return f"{path} is a list; add [*] or [0] after it"
    if isinstance(shape, Mapping) and isinstance(step, Names):
        close = get_close_matches(step.names[0], shape, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(shape)}"
        return f"{path} has no member {step.names[0]}; {hint}"
    return f"{path} is an object, not a list" if isinstance(shape, Mapping) else f"{path} is {shape} without members"
