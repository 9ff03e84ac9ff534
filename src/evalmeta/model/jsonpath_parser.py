"""Parsing and checking references with jsonpath-ng, which is slow to import."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.filter import And, Expression, Or
from jsonpath_ng.ext.filter import Filter as ParsedFilter
from jsonpath_ng.ext.parser import parse
from jsonpath_ng.jsonpath import Child, Fields, Index, JSONPath, Root, Slice, This, Wildcard

from evalmeta import limits
from evalmeta.model.jsonpath import (
    REFERENCE_ROOT,
    Comparison,
    Everything,
    Filter,
    Junction,
    Names,
    Path,
    Positions,
    Range,
    Reference,
    ReferenceSyntax,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.jsonpath import Operator, Step, Test


_QUOTED: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOKENS: Final = re.compile(rf"({_QUOTED})|\s+", re.DOTALL)
_STRINGS: Final = re.compile(_QUOTED, re.DOTALL)
_MAX_PARENTHESES: Final = 20
_FORBIDDEN: Final = (
    (re.compile(r"\.\."), "uses `..`; name every step"),
    (re.compile(r"=~"), "uses a regular expression (`=~`); compare with `==`"),
    (re.compile(r"`"), "uses a function in backquotes"),
    (re.compile(r"\b(?:where|wherenot)\b(?=\s)"), "uses `where`; use a filter `[?(...)]`"),
    (re.compile(r"(?<!&)&(?!&)"), "uses a single `&`; write `&&`"),
    (re.compile(r"(?<!\|)\|(?!\|)"), "uses a single `|`; write `||`"),
    (re.compile(r"(?<![=!<>])=(?!=)"), "uses a single `=`; write `==`"),
    (
        re.compile(r"[=<>]\s*(?!(?:true|false|null)\b)[A-Za-z_]"),
        "compares with a word without quotes; write it in single quotes",
    ),
)


def parse_reference(text: str) -> Reference:
    """Parse a reference, without blanks and line breaks between its parts; raise ReferenceSyntax if it is unsupported.

    Unsupported are long texts, `..`, `=~`, functions, arithmetic, sorting, and filters inside filters.
    """
    error = _error_before_parsing(text)
    if error:
        raise ReferenceSyntax(error)
    return Reference(text, _parse_steps(_TOKENS.sub(lambda token: token[1] or " ", text.strip())))


def starts_at_generated_data(text: str) -> bool:
    """Return whether the first step of a reference is `generatedData`, the only member of `$`."""
    return parse_reference(text).steps[:1] == (Names((REFERENCE_ROOT,)),)


def check_reference(text: str) -> str | None:
    """Return what is wrong with a reference in one sentence, None if it is supported."""
    try:
        parse_reference(text)
    except ReferenceSyntax as error:
        return str(error)
    return None


def _error_before_parsing(text: str) -> str | None:
    if len(text) > limits.MAX_REFERENCE_CHARS:
        return f"the reference is {len(text)} characters long; at most {limits.MAX_REFERENCE_CHARS} are allowed"
    if not text.lstrip().startswith("$"):
        return "the reference does not start with `$`"
    bare = _STRINGS.sub("''", text)
    if bare.count("(") > _MAX_PARENTHESES:
        return f"the reference has more than {_MAX_PARENTHESES} parentheses"
    return next((f"the reference {what}" for pattern, what in _FORBIDDEN if pattern.search(bare)), None)


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


def _parse_steps(text: str) -> tuple[Step, ...]:
    """Parse a path into its steps after `$`; raise ReferenceSyntax if it is not a supported JSONPath."""
    root, *others = _flattened(_tree(text))
    if not isinstance(root, Root):
        raise _refusal(root)
    return tuple(_step(node, in_filter=False) for node in others)


def _tree(text: str) -> JSONPath:
    try:
        return parse(text)
    # On invalid input, the parser raises other errors besides its own.
    except (
        JSONPathError,
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise ReferenceSyntax(f"the reference is not a valid JSONPath: {error}") from error


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
            return Names(tuple(dict.fromkeys(node.fields)))
        case Index():
            return Positions(tuple(dict.fromkeys(node.indices)))
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
            value = _path_in_filter(node.value) if isinstance(node.value, JSONPath) else cast("JsonValue", node.value)
            return Comparison(_path_in_filter(node.target), _OPERATORS[node.op], value)
        case _:
            raise _refusal(node)


def _refusal(node: JSONPath) -> ReferenceSyntax:
    kind = type(node).__name__
    return ReferenceSyntax(f"the reference uses {_NAMES_OF_NODES.get(kind, kind.lower())}, which is not supported")
