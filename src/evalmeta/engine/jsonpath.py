"""Follow references through what the agent returned, and read the numbers that they match.

Three rules of Jayway JsonPath, the documented dialect, differ from other libraries: a filter on an object tests the
object itself, JSON inside text is parsed, and in filters a number equals text that contains the same number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.json_value import is_too_deep, read_json
from evalmeta.model.jsonpath import (
    Comparison,
    Descendants,
    Everything,
    Filter,
    Length,
    Names,
    Path,
    Positions,
    Range,
    Reference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.jsonpath import Step, Test

_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


class TooManyMatches(ValueError):
    """A reference matches more than `MAX_REFERENCE_MATCHES` values, including those of its intermediate steps."""


def compile_reference(text: str) -> Reference:
    """Parse a reference; raise ReferenceSyntax if evalmeta does not support it."""
    from evalmeta.model.jsonpath_parser import parse_reference

    return parse_reference(text)


def resolve(reference: Reference, root: JsonValue) -> tuple[JsonValue, ...]:
    """Return every value that the reference matches, in document order; raise TooManyMatches if they are too many."""
    return tuple(_Resolver(root).follow(reference.steps, root))


class _Resolver:
    """Follow paths through one document, with a budget of values."""

    __slots__ = ("_budget", "_parsed", "_root")

    def __init__(self, root: JsonValue) -> None:
        self._root = root
        self._budget = limits.MAX_REFERENCE_MATCHES
        self._parsed: dict[str, JsonValue] = {}

    def follow(self, steps: Iterable[Step], start: JsonValue) -> list[JsonValue]:
        nodes, is_scan = [start], False
        for step in steps:
            nodes = [match for node in nodes for match in self._apply(step, self._parse(node))]
            if is_scan and isinstance(step, Filter):
                nodes = _without_repeated_objects(nodes)
            self._spend(len(nodes))
            is_scan = isinstance(step, Descendants)
        return nodes

    def _spend(self, nodes: int) -> None:
        self._budget -= nodes
        if self._budget < 0:
            raise TooManyMatches(f"the reference matches more than {limits.MAX_REFERENCE_MATCHES} values")

    def _parse(self, node: JsonValue) -> JsonValue:
        """Return a value, and the lists and objects that are written inside text."""
        if not isinstance(node, str) or not node.lstrip().startswith(("{", "[")):
            return node
        if node not in self._parsed:
            try:
                value = read_json(node)
            except ValueError:
                value = node
            self._parsed[node] = node if is_too_deep(value) else value
        return self._parsed[node]

    def _apply(self, step: Step, node: JsonValue) -> Iterable[JsonValue]:
        if isinstance(step, Filter):
            tested = (node,) if isinstance(node, Mapping) else node if isinstance(node, list | tuple) else ()
            return (item for item in tested if self._passes(step.test, item))
        if isinstance(step, Descendants):
            return self._descendants(node)
        if isinstance(step, Length):
            return (len(node),) if isinstance(node, Mapping | list | tuple | str) else ()
        if isinstance(node, Mapping):
            if isinstance(step, Names):
                return [node[name] for name in step.names if name in node]
            return node.values() if isinstance(step, Everything) else ()
        return _items(step, node) if isinstance(node, list | tuple) else ()

    def _descendants(self, node: JsonValue) -> Iterable[JsonValue]:
        pending = [node]
        while pending:
            self._spend(1)
            value = pending.pop()
            yield value
            inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
            pending += reversed(tuple(inner))

    def _passes(self, test: Test, node: JsonValue) -> bool:
        if isinstance(test, Comparison):
            return self._compares(test, node)
        joined = all if test.every else any
        return joined(self._passes(part, node) for part in test.tests)

    def _compares(self, test: Comparison, node: JsonValue) -> bool:
        self._spend(1)
        left = self._values(test.left, node)
        if test.operator in {"exists", "missing"}:
            return bool(left) == (test.operator == "exists")
        right = self._right(test, node)
        if test.operator in {"!=", "nin"}:
            return not any(_equal(one, other) for one in left for other in right)
        return any(_holds(test.operator, one, other) for one in left for other in right)

    def _right(self, test: Comparison, node: JsonValue) -> Sequence[JsonValue]:
        if isinstance(test.right, Path):
            return self._values(test.right, node)
        return test.right if isinstance(test.right, tuple) else [test.right]

    def _values(self, path: Path, node: JsonValue) -> list[JsonValue]:
        return self.follow(path.steps, self._root if path.from_root else node)


def _without_repeated_objects(nodes: Iterable[JsonValue]) -> list[JsonValue]:
    """Return the nodes of `..[?()]`, which tests an object as itself and as an item of its list, each once."""
    distinct: dict[int, JsonValue] = {}
    for index, node in enumerate(nodes):
        distinct.setdefault(id(node) if isinstance(node, Mapping) else -index, node)
    return list(distinct.values())


def _items(step: Step, node: Sequence[JsonValue]) -> Iterable[JsonValue]:
    if isinstance(step, Everything):
        return node
    if isinstance(step, Positions):
        return [node[position] for position in step.positions if -len(node) <= position < len(node)]
    return node[step.start : step.end : step.step] if isinstance(step, Range) and step.step != 0 else ()


def _holds(operator: str, left: JsonValue, right: JsonValue) -> bool:
    if operator.startswith(">"):
        left, right = right, left
    if operator in {"<", ">"}:
        return _less(left, right)
    return _equal(left, right) or (operator in {"<=", ">="} and _less(left, right))


def _equal(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        text, other = (left, right) if isinstance(left, str) else (right, left)
        number = parse_number(other)
        return number is not None and parse_number(text) == number
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _less(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return isinstance(left, int | float) and isinstance(right, int | float) and left < right


def parse_number(value: JsonValue) -> Decimal | None:
    """Return a JSON number, or the number in text, exactly; None for other values, booleans, NaN and infinities."""
    if isinstance(value, str):
        text = value.strip()
        try:
            return Decimal(text) if _NUMBER.fullmatch(text) else None
        except InvalidOperation:
            return None
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None
