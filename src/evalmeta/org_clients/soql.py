"""SOQL queries: their parts, and a reader for the clauses that this org answers.

The form is that of the SOQL and SOSL Reference, "SOQL SELECT Syntax":
`SELECT fields | COUNT() FROM Object [WHERE ...] [ORDER BY field [ASC|DESC] [NULLS FIRST|LAST], ...] [LIMIT n]
[OFFSET n]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar

from evalmeta.errors import OrgFault

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
Kind: TypeAlias = Literal["text", "number", "boolean", "time", "null"]
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^'\\]|\\.)*')
        | (?P<number>[+-]?[0-9][\w.:+-]*)
        | (?P<word>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
        | (?P<sign><=|>=|<>|!=|[=<>(),])
        | (?P<end>\Z)
        | (?P<other>\S)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_PATTERN_PART: Final = re.compile(r"\\.|.", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d))?", re.ASCII)
_CONSTANTS: Final[dict[str, Kind]] = {"null": "null", "true": "boolean", "false": "boolean"}
_OPERATORS: Final = frozenset({"=", "!=", "<>", "<", "<=", ">", ">="})
ANY: Final = "%%"
ONE: Final = "__"
MAX_CHARS: Final = 100_000  # SOQL and SOSL Reference, "SOQL SELECT Syntax"
_MAX_CONDITIONS: Final = 200
_MAX_DEPTH: Final = 50
_MAX_SHOWN_CHARS: Final = 40
_FORM: Final = (
    "SELECT fields | COUNT() | (SELECT fields FROM Children) FROM Object [WHERE conditions] "
    "[ORDER BY field ASC|DESC NULLS FIRST|LAST] [LIMIT n] [OFFSET n]"
)


class Value(NamedTuple):
    """A value in a condition: its kind and its text, without quotes and escapes."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition on a field, whose name has dots that lead to parents.

    The operator is `=`, `!=`, `<`, `<=`, `>`, `>=`, `LIKE`, `IN` or `NOT IN`. `pattern` are the characters of `LIKE`,
    with `ANY` for `%` and `ONE` for `_`; `query` finds the values of `IN`.
    """

    field: str
    operator: str
    values: tuple[Value, ...] = ()
    pattern: tuple[str, ...] = ()
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions that all hold (`AND`), of which any holds (`OR`), or one that does not hold (`NOT`)."""

    operator: Literal["AND", "OR", "NOT"]
    conditions: tuple[Condition, ...]


Condition: TypeAlias = Comparison | Group


@dataclass(frozen=True, slots=True)
class Count:
    """`COUNT()` with an empty field, or `COUNT(field) alias`."""

    field: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """A field to sort by; null comes first unless the query says otherwise."""

    field: str
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A query; names ignore case."""

    fields: tuple[str | Count | Query, ...]
    object: str
    where: Condition | None = None
    orders: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0


def read_query(text: str) -> Query:
    """Read a query; raise OrgFault (MALFORMED_QUERY) if it is not of the form above."""
    if len(text) > MAX_CHARS:
        raise OrgFault(f"the query has more than {MAX_CHARS:,} characters", code="QUERY_TOO_COMPLICATED")
    reader = _Reader(text)
    query = reader.query()
    reader.expect_end()
    return query


class _Token(NamedTuple):
    kind: str
    text: str
    end: int


class _Reader:
    """A reader with one token of lookahead."""

    def __init__(self, text: str) -> None:
        # The last token is the end of the query.
        self._tokens = [
            _Token(match.lastgroup or "", match[match.lastgroup or 0], match.end()) for match in _TOKEN.finditer(text)
        ]
        self._index = 0
        self._conditions = 0
        self._depth = 0

    def query(self, *, can_nest: bool = True) -> Query:
        self._keyword("SELECT")
        fields = self._list_of(lambda: self._field(can_nest=can_nest))
        self._keyword("FROM")
        name = self._name()
        where = self._any(can_nest=can_nest) if self._skip("WHERE") else None
        orders: tuple[Order, ...] = ()
        if self._skip("ORDER"):
            self._keyword("BY")
            orders = self._list_of(self._order)
        limit = self._count() if self._skip("LIMIT") else None
        offset = self._count() if self._skip("OFFSET") else 0
        if len(fields) > 1 and Count() in fields:
            raise _malformed("COUNT() cannot be combined with fields")
        return Query(fields, name, where, orders, limit, offset)

    def expect_end(self) -> None:
        if self._next.kind != "end":
            raise self._unexpected()

    @property
    def _next(self) -> _Token:
        return self._tokens[self._index]

    def _is(self, text: str) -> bool:
        return self._next.kind in {"word", "sign"} and self._next.text.upper() == text

    def _take(self) -> _Token:
        token = self._next
        self._index += 1
        return token

    def _skip(self, text: str) -> bool:
        if not self._is(text):
            return False
        self._index += 1
        return True

    def _keyword(self, text: str) -> None:
        if not self._skip(text):
            raise self._unexpected(instead_of=text)

    def _name(self) -> str:
        if self._next.kind != "word":
            raise self._unexpected()
        return self._take().text

    def _field(self, *, can_nest: bool) -> str | Count | Query:
        if self._is("(") and can_nest:
            self._take()
            query = self.query(can_nest=False)
            self._keyword(")")
            return query
        name = self._name()
        if name.upper() == "COUNT" and self._skip("("):
            return self._counted()
        if name.upper() == "FIELDS" and self._skip("("):
            name = f"FIELDS({self._name().upper()})"
            self._keyword(")")
        return name

    def _counted(self) -> Count:
        if self._skip(")"):
            return Count()
        field = self._name()
        self._keyword(")")
        has_alias = self._next.kind == "word" and not self._is("FROM")
        return Count(field, self._take().text if has_alias else "")

    def _any(self, *, can_nest: bool) -> Condition:
        """Read conditions; `AND` and `OR` at one level need parentheses, as in Salesforce."""
        conditions = [self._condition(can_nest=can_nest)]
        operator: Literal["AND", "OR"] = "OR" if self._is("OR") else "AND"
        while self._skip(operator):
            conditions.append(self._condition(can_nest=can_nest))
        if self._is("AND") or self._is("OR"):
            raise self._unexpected(hint="Use parentheses where AND and OR are mixed.")
        return conditions[0] if len(conditions) == 1 else Group(operator, tuple(conditions))

    def _condition(self, *, can_nest: bool) -> Condition:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise OrgFault("the query's conditions are nested too deeply", code="QUERY_TOO_COMPLICATED")
        try:
            if self._skip("NOT"):
                return Group("NOT", (self._condition(can_nest=can_nest),))
            if not self._skip("("):
                return self._comparison(can_nest=can_nest)
            condition = self._any(can_nest=can_nest)
            self._keyword(")")
            return condition
        finally:
            self._depth -= 1

    def _comparison(self, *, can_nest: bool) -> Comparison:
        self._conditions += 1
        if self._conditions > _MAX_CONDITIONS:
            raise OrgFault(f"the query has more than {_MAX_CONDITIONS} conditions", code="QUERY_TOO_COMPLICATED")
        field = self._name()
        if self._next.text in _OPERATORS:
            operator = self._take().text.replace("<>", "!=")
            return Comparison(field, operator, (self._value(),))
        if self._skip("LIKE"):
            if self._next.kind != "text":
                raise self._unexpected()
            return Comparison(field, "LIKE", pattern=_pattern(self._take().text))
        operator = "NOT IN" if self._skip("NOT") else "IN"
        self._keyword("IN")
        self._keyword("(")
        if self._is("SELECT") and can_nest:
            comparison = Comparison(field, operator, query=self.query(can_nest=False))
        else:
            comparison = Comparison(field, operator, self._list_of(self._value))
        self._keyword(")")
        return comparison

    def _list_of(self, read: Callable[[], _T]) -> tuple[_T, ...]:
        parts = [read()]
        while self._skip(","):
            parts.append(read())
        return tuple(parts)

    def _value(self) -> Value:
        kind = _kind_of(self._next)
        if kind is None:
            raise self._unexpected()
        text = self._take().text
        return Value(kind, _unescaped(text[1:-1]) if kind == "text" else text)

    def _order(self) -> Order:
        field = self._name()
        descending = self._skip("DESC")
        if not descending:
            self._skip("ASC")
        nulls_last = False
        if self._skip("NULLS"):
            nulls_last = self._skip("LAST")
            if not nulls_last:
                self._keyword("FIRST")
        return Order(field, descending, nulls_last)

    def _count(self) -> int:
        if not re.fullmatch(r"\d{1,9}", self._next.text, re.ASCII):
            raise self._unexpected()
        return int(self._take().text)

    def _unexpected(self, *, instead_of: str = "", hint: str = "") -> OrgFault:
        kind, text, end = self._next
        shown = text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."
        what = "unexpected end of the query" if kind == "end" else f"unexpected token: {shown!r}"
        expected = f", expecting {instead_of}" if instead_of else ""
        return _malformed(f"{what} at column {end - len(text) + 1}{expected}", hint)


def _kind_of(token: _Token) -> Kind | None:
    """Return the kind of a value; None if the token is not a value."""
    if token.kind == "text":
        return "text"
    if token.kind == "number":
        return "number" if _NUMBER.fullmatch(token.text) else "time" if _TIME.fullmatch(token.text) else None
    return _CONSTANTS.get(token.text.lower())


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def _pattern(text: str) -> tuple[str, ...]:
    """Return the parts of a pattern in quotes; `\\%` and `\\_` stand for the characters."""
    parts = _PATTERN_PART.findall(text[1:-1])
    wildcards = {"%": ANY, "_": ONE}
    return tuple(_unescaped(part) if len(part) > 1 else wildcards.get(part, part) for part in parts)


def _malformed(message: str, hint: str = "") -> OrgFault:
    return OrgFault(message, code="MALFORMED_QUERY", actions=[*([hint] if hint else []), f"This org reads: {_FORM}"])
