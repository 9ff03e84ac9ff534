"""Following references through what came back from the agent.

Two rules of Jayway JsonPath, which the documentation names as the dialect, differ
from other libraries: a filter on an object tests the object itself, and JSON that
arrives as text is opened on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

from evalmeta import limits
from evalmeta.model.json_value import is_too_deep
from evalmeta.model.jsonpath import (
    Comparison,
    Everything,
    Filter,
    Names,
    Path,
    Positions,
    Range,
    Reference,
    parse_reference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.jsonpath import Step, Test


class TooManyMatches(ValueError):
    """A reference touches more nodes than `MAX_REFERENCE_MATCHES`."""


@lru_cache(maxsize=1024)
def compile_reference(text: str) -> Reference:
    """Reads a reference, once for each text.

    Raises:
        ReferenceSyntax: it is no reference that evalmeta follows.
    """
    return parse_reference(text)


def resolve(reference: Reference, root: JsonValue) -> tuple[JsonValue, ...]:
    """Gives every value the reference matches, in document order; none is an empty tuple.

    Raises:
        TooManyMatches: the reference touches too much.
    """
    return tuple(_Walk(root).follow(reference.steps, root))


class _Walk:
    """One way through one document, with a budget of nodes to touch."""

    __slots__ = ("_budget", "_opened", "_root")

    def __init__(self, root: JsonValue) -> None:
        self._root = root
        self._budget = limits.MAX_REFERENCE_MATCHES
        self._opened: dict[str, JsonValue] = {}

    def follow(self, steps: Iterable[Step], start: JsonValue) -> list[JsonValue]:
        nodes = [start]
        for step in steps:
            nodes = [match for node in nodes for match in self._take(step, self._open(node))]
            self._spend(len(nodes))
        return nodes

    def _spend(self, nodes: int) -> None:
        self._budget -= nodes
        if self._budget < 0:
            raise TooManyMatches(f"the reference touches more than {limits.MAX_REFERENCE_MATCHES} values")

    def _open(self, node: JsonValue) -> JsonValue:
        if not isinstance(node, str) or not node.lstrip().startswith(("{", "[")):
            return node
        if node not in self._opened:
            self._opened[node] = _from_json(node)
        return self._opened[node]

    def _take(self, step: Step, node: JsonValue) -> Iterable[JsonValue]:
        if isinstance(step, Filter):
            return self._filtered(step.test, node)
        if isinstance(node, Mapping):
            return _members(step, node)
        if isinstance(node, list | tuple):
            return _items(step, node)
        return ()

    def _filtered(self, test: Test, node: JsonValue) -> Iterable[JsonValue]:
        if isinstance(node, Mapping):
            return (node,) if self._passes(test, node) else ()
        if isinstance(node, list | tuple):
            return (item for item in node if self._passes(test, item))
        return ()

    def _passes(self, test: Test, node: JsonValue) -> bool:
        if isinstance(test, Comparison):
            return self._compares(test, node)
        joined = all if test.every else any
        return joined(self._passes(part, node) for part in test.tests)

    def _compares(self, test: Comparison, node: JsonValue) -> bool:
        self._spend(1)
        left = self._side(test.left, node)
        if test.operator in {"exists", "missing"}:
            return bool(left) == (test.operator == "exists")
        right = self._side(test.right, node) if isinstance(test.right, Path) else [test.right]
        if test.operator == "!=":
            return not any(_same(one, other) for one in left for other in right)
        return any(_holds(test.operator, one, other) for one in left for other in right)

    def _side(self, path: Path, node: JsonValue) -> list[JsonValue]:
        return self.follow(path.steps, self._root if path.from_root else node)


def _members(step: Step, node: Mapping[str, JsonValue]) -> Iterable[JsonValue]:
    if isinstance(step, Names):
        return [node[name] for name in step.names if name in node]
    return node.values() if isinstance(step, Everything) else ()


def _items(step: Step, node: Sequence[JsonValue]) -> Iterable[JsonValue]:
    match step:
        case Everything():
            return node
        case Positions():
            return [node[position] for position in step.positions if -len(node) <= position < len(node)]
        case Range() if step.step != 0:
            return node[step.start : step.end : step.step]
        case _:
            return ()


def _from_json(text: str) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(text)
    except ValueError:
        return text
    return text if is_too_deep(value) else value


def _holds(order: str, left: JsonValue, right: JsonValue) -> bool:
    match order:
        case "<":
            return _less(left, right)
        case "<=":
            return _same(left, right) or _less(left, right)
        case ">":
            return _less(right, left)
        case ">=":
            return _same(left, right) or _less(right, left)
        case _:
            return _same(left, right)


def _same(left: JsonValue, right: JsonValue) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _less(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return isinstance(left, int | float) and isinstance(right, int | float) and left < right
