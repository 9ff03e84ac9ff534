"""Parsing and checking references with jsonpath-ng, which is slow to import.

jsonpath-ng knows no escapes such as `\\u00e9`, no exponents, no `in` and no `.length()`. They are replaced by quoted
placeholders before it parses the text, and put back into its tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.filter import And, Expression, Or
from jsonpath_ng.ext.filter import Filter as ParsedFilter
from jsonpath_ng.ext.parser import ExtendedJsonPathParser
from jsonpath_ng.jsonpath import Child, Fields, Index, JSONPath, Root, Slice, This, Wildcard
from jsonpath_ng.jsonpath import Descendants as ParsedDescendants

from evalmeta import limits
from evalmeta.model.expectations import unquote
from evalmeta.model.json_value import JsonValue, read_json
from evalmeta.model.jsonpath import (
    Comparison,
    Descendants,
    Everything,
    Filter,
    Junction,
    Length,
    Names,
    Path,
    Positions,
    Range,
    Reference,
    ReferenceSyntax,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.jsonpath import Operator, Step, Test


@dataclass(frozen=True, slots=True)
class _OneOf:
    """The list of `in` or `nin`."""

    operator: Operator
    values: tuple[JsonValue, ...]


_Replaced: TypeAlias = "str | float | _OneOf | Length"

_QUOTED: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_SCALAR: Final = rf"(?:{_QUOTED}|true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_SCALARS: Final = re.compile(_SCALAR, re.DOTALL)
_TOKENS: Final = re.compile(
    rf"""(?P<one_of>(?<=\s)n?in\s*\[\s*(?:{_SCALAR}(?:\s*,\s*{_SCALAR})*\s*)?\])
    |(?P<quoted>{_QUOTED})
    |\.\s*(?P<name>\w*[^\W\x00-\x7f]\w*)
    |(?P<number>(?<![\w.])-?\d+(?:\.\d+)?[eE][+-]?\d+(?!\w))
    |(?P<length>\.\s*(?:length|size)\s*\(\s*\))
    |(?P<blank>\s+)""",
    re.DOTALL | re.VERBOSE,
)
_STRINGS: Final = re.compile(_QUOTED, re.DOTALL)
_PLACEHOLDER: Final = re.compile(r"~(\d+)~")
_MAX_PARENTHESES: Final = 20
_FORBIDDEN: Final = (
    (
        re.compile(r"=~"),
        "uses a regular expression (`=~`), which can take very long; use `==`, `in`, or an operator such as contains",
    ),
    (re.compile(r"`"), "uses a function in backquotes"),
    (re.compile(r"\.\s*(?!(?:length|size)\b)(\w+)\s*\("), r"uses the function `.\1()`; only `.length()` is supported"),
    (
        re.compile(r"(?<![\w.])(length|count|match|search|value)\s*\("),
        r"uses the function `\1()`; only `.length()` after a path is supported",
    ),
    (re.compile(r"!\s*\(\s*(?![\s@$.\w\[\]]*\))"), "negates a group; negate each comparison, for example with `!=`"),
    (
        re.compile(r"\s(contains|size|empty|subsetof|anyof|noneof|type)\s+[^\s\]&|]"),
        r"uses `\1` in a filter, which is not supported; use `==`, `in` or `.length()`",
    ),
    (re.compile(r"(?<=\s)n?in\b"), "uses `in` without a list of values; write a list such as `in ['a', 'b']`"),
    (re.compile(r"\b(?:where|wherenot)\b(?=\s)"), "uses `where`; use a filter `[?(...)]`"),
    (re.compile(r"(?<!&)&(?!&)"), "uses a single `&`; write `&&`"),
    (re.compile(r"(?<!\|)\|(?!\|)"), "uses a single `|`; write `||`"),
    (re.compile(r"(?<![=!<>])=(?!=)"), "uses a single `=`; write `==`"),
    (
        re.compile(r"[=<>]\s*(?!(?:true|false|null)\b)[A-Za-z_]"),
        "compares with a word without quotes; write it in single quotes",
    ),
)


# Each expectation's references are read by several rules, and by each run.
@lru_cache(maxsize=1024)
def parse_reference(text: str) -> Reference:
    """Parse a reference, without blanks and line breaks between its parts; raise ReferenceSyntax if it is unsupported.

    Unsupported are long texts, `=~`, functions but `.length()`, arithmetic, sorting, and filters inside filters.
    """
    error = _error_before_parsing(text)
    if error:
        raise ReferenceSyntax(error)
    return Reference(text, _Parser(text.strip()).steps())


def read_reference(text: str) -> Reference | str:
    """Parse a reference, or return what is wrong with it in one sentence."""
    try:
        return parse_reference(text)
    except ReferenceSyntax as error:
        return str(error)


def _error_before_parsing(text: str) -> str | None:
    if len(text) > limits.MAX_REFERENCE_CHARS:
        return f"the reference is {len(text)} characters long; at most {limits.MAX_REFERENCE_CHARS} are allowed"
    if not text.lstrip().startswith("$"):
        return "the reference does not start with `$`"
    bare = _TOKENS.sub(lambda token: "" if token["one_of"] else token[0], text)
    bare = _STRINGS.sub("''", bare)
    if bare.count("(") > _MAX_PARENTHESES:
        return f"the reference has more than {_MAX_PARENTHESES} parentheses"
    matches = ((pattern.search(bare), reason) for pattern, reason in _FORBIDDEN)
    return next((f"the reference {match.expand(reason)}" for match, reason in matches if match), None)


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
    "Operation": "arithmetic",
    "SortedThis": "sorting",
    "Root": "`$` inside the path",
    "This": "`@` outside a filter",
}


class _Parser:
    """Parse one reference; `replaced` holds what the placeholders stand for."""

    __slots__ = ("_replaced", "_sources", "_text")

    def __init__(self, text: str) -> None:
        self._replaced: list[_Replaced] = []
        self._sources: list[str] = []
        self._text = _TOKENS.sub(self._replace, text)

    def steps(self) -> tuple[Step, ...]:
        """Return the steps after `$`; raise ReferenceSyntax if the text is not a supported JSONPath."""
        root, *others = _flattened(self._tree())
        if not isinstance(root, Root):
            raise _refusal(root)
        return self._steps(others, in_filter=False)

    def _replace(self, token: re.Match[str]) -> str:
        source = token[0]
        match token.lastgroup:
            case "one_of":
                operator: Operator = "nin" if source.startswith("n") else "in"
                values = tuple(_scalar(value) for value in _SCALARS.findall(source[source.index("[") :]))
                return "==" + self._placeholder(_OneOf(operator, values), source)
            case "quoted":
                return self._placeholder(_unquoted(source), source)
            case "name":
                return f"[{self._placeholder(token['name'], source)}]"
            case "number":
                return self._placeholder(float(source), source)
            case "length":
                return f"[{self._placeholder(Length(), source)}]"
            case _:
                return " "

    def _placeholder(self, value: _Replaced, source: str) -> str:
        self._replaced.append(value)
        self._sources.append(source)
        return f"'~{len(self._replaced) - 1}~'"

    def _value(self, placeholder: object) -> _Replaced | JsonValue:
        """Return what a name or a literal of the tree stands for."""
        match = _PLACEHOLDER.fullmatch(placeholder) if isinstance(placeholder, str) else None
        return self._replaced[int(match[1])] if match else cast("JsonValue", placeholder)

    def _tree(self) -> JSONPath:
        try:
            return _parser().parse(self._text)
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
            raise ReferenceSyntax(f"the reference is not a supported JSONPath{self._place(str(error))}") from error

    def _place(self, message: str) -> str:
        """Return where the parser stopped, in the text of the reference."""
        token = re.search(r"near token (.+) \(|Unexpected character: (\S)", message)
        if token is None:
            return "; it ends too early" if "near the end" in message else f": {message.strip()}"
        if token[2]:
            return f": unexpected character {token[2]}"
        match = _PLACEHOLDER.fullmatch(token[1])
        return f" near {self._sources[int(match[1])] if match else token[1]}"

    def _steps(self, nodes: Sequence[JSONPath], *, in_filter: bool) -> tuple[Step, ...]:
        steps = tuple(self._step(node, in_filter=in_filter) for node in nodes)
        if Length() in steps[:-1]:
            raise ReferenceSyntax("`.length()` must be the last step of the reference")
        return steps

    def _step(self, node: JSONPath, *, in_filter: bool) -> Step:
        match node:
            case Fields():
                names = tuple(dict.fromkeys(self._value(field) for field in node.fields))
                return Length() if Length() in names else Names(cast("tuple[str, ...]", names))
            case Index():
                return Positions(tuple(dict.fromkeys(node.indices)))
            case Slice():
                return Range(node.start, node.end, node.step)
            case Wildcard():
                return Everything()
            case ParsedDescendants():
                return Descendants()
            case ParsedFilter() if not in_filter:
                return Filter(self._junction(node.expressions, every=True))
            case ParsedFilter():
                raise ReferenceSyntax("the reference has a filter inside a filter")
            case _:
                raise _refusal(node)

    def _junction(self, nodes: Sequence[JSONPath], *, every: bool) -> Test:
        tests = tuple(self._test(node) for node in nodes)
        return tests[0] if len(tests) == 1 else Junction(every, tests)

    def _test(self, node: JSONPath) -> Test:
        match node:
            case And() | Or():
                return self._junction(node.operands, every=isinstance(node, And))
            case Expression() if node.op in _OPERATORS:
                left, operator = self._path_in_filter(node.target), _OPERATORS[node.op]
                if isinstance(node.value, JSONPath):
                    return Comparison(left, operator, self._path_in_filter(node.value))
                value = self._value(node.value)
                if isinstance(value, _OneOf):
                    return Comparison(left, value.operator, value.values)
                return Comparison(left, operator, cast("JsonValue", value))
            case _:
                raise _refusal(node)

    def _path_in_filter(self, tree: JSONPath) -> Path:
        first, *others = _flattened(tree)
        if not isinstance(first, Root | This):
            raise ReferenceSyntax("the reference has a path in its filter that does not start with `@` or `$`")
        return Path(self._steps(others, in_filter=True), from_root=isinstance(first, Root))


# The step of `..`, between the steps on its left and on its right.
_DESCENDANTS: Final = ParsedDescendants(This(), This())


@cache
def _parser() -> ExtendedJsonPathParser:
    return ExtendedJsonPathParser()


def _flattened(tree: JSONPath) -> Iterator[JSONPath]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Child):
            pending += (node.right, node.left)
        elif isinstance(node, ParsedDescendants) and node is not _DESCENDANTS:
            pending += (node.right, _DESCENDANTS, node.left)
        else:
            yield node


def _scalar(source: str) -> JsonValue:
    return _unquoted(source) if source[0] in "'\"" else read_json(source)


def _unquoted(source: str) -> str:
    text = unquote(source)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ReferenceSyntax(f"the reference has half a surrogate pair in {source}")
    return text


def _refusal(node: JSONPath) -> ReferenceSyntax:
    kind = type(node).__name__
    return ReferenceSyntax(f"the reference uses {_NAMES_OF_NODES.get(kind, kind.lower())}, which is not supported")
