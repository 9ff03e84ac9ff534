"""From JSONPath text to steps, by way of jsonpath-ng's parser; only `reference` imports this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.filter import And, Expression, Or
from jsonpath_ng.ext.filter import Filter as ParsedFilter
from jsonpath_ng.ext.parser import parse
from jsonpath_ng.jsonpath import Child, Fields, Index, JSONPath, Root, Slice, This, Wildcard

from evalmeta.model.reference import (
    Comparison,
    Everything,
    Filter,
    Junction,
    Names,
    Path,
    Positions,
    Range,
    ReferenceSyntax,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.reference import Operator, Step, Test

__all__ = ["parse_steps"]

T = TypeVar("T")

_OPERATORS: Final[dict[str | None, Operator]] = {
    None: "exists",
    "!": "missing",
    "==": "==",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_NAMES_OF_NODES: Final = {
    "Descendants": "`..`",
    "Operation": "arithmetic",
    "SortedThis": "sorting",
    "Root": "`$` inside the path",
    "This": "`@` outside a filter",
}


def parse_steps(text: str) -> tuple[Step, ...]:
    """Reads the steps after `$`.

    Raises:
        ReferenceSyntax: the text is no JSONPath, or uses what is not allowed.
    """
    root, *others = _flattened(_tree(text))
    if not isinstance(root, Root):
        raise _refusal(root)
    return tuple(_step(node, in_filter=False) for node in others)


def _tree(text: str) -> JSONPath:
    try:
        return parse(text)
    # The parser meets odd input with whatever its tables lead to, not only with its own errors.
    except (
        JSONPathError,
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise ReferenceSyntax(f"the reference is no JSONPath: {error}") from error


def _path_in_filter(tree: JSONPath) -> Path:
    first, *others = _flattened(tree)
    if not isinstance(first, Root | This):
        raise ReferenceSyntax("the reference has a path in its filter that does not start with `@` or `$`")
    return Path(tuple(_step(node, in_filter=True) for node in others), from_root=isinstance(first, Root))


def _flattened(tree: JSONPath) -> Iterator[JSONPath]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Child):
            pending += (node.right, node.left)
        else:
            yield node


def _step(node: JSONPath, *, in_filter: bool) -> Step:
    match node:
        case Fields():
            return Names(_distinct(node.fields))
        case Index():
            return Positions(_distinct(node.indices))
        case Slice():
            return Range(node.start, node.end, node.step)
        case Wildcard():
            return Everything()
        case ParsedFilter() if not in_filter:
            return Filter(_junction(node.expressions, every=True))
        case ParsedFilter():
            raise ReferenceSyntax("the reference has a filter inside a filter")
        case _:
            raise _refusal(node)


def _junction(nodes: Sequence[JSONPath], *, every: bool) -> Test:
    tests = tuple(_test(node) for node in nodes)
    return tests[0] if len(tests) == 1 else Junction(every, tests)


def _test(node: JSONPath) -> Test:
    match node:
        case And() | Or():
            return _junction(node.operands, every=isinstance(node, And))
        case Expression() if node.op in _OPERATORS:
            return Comparison(_path_in_filter(node.target), _OPERATORS[node.op], _operand(node.value))
        case _:
            raise _refusal(node)


def _operand(value: object) -> Path | str | int | float | bool | None:
    if isinstance(value, JSONPath):
        return _path_in_filter(value)
    return cast("str | int | float | bool | None", value)


def _distinct(members: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(members))


def _refusal(node: JSONPath) -> ReferenceSyntax:
    kind = type(node).__name__
    return ReferenceSyntax(f"the reference uses {_NAMES_OF_NODES.get(kind, kind.lower())}, which is not allowed")
