"""SOQL conditions and orders, answered by SQLite: each object is a table in memory.

A column has what its field is compared by, not the field's value: text in lower case, ids of 15 characters, and numbers
for the rest. The result is the rows themselves. Values of a query are bound parameters; of its text, only names that
`sobjects.py` knows, and operators that stand here, become SQL.

SOQL has no unknown truth: null is a value, which equals null and is neither like, below nor above another one.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta.errors import OrgFault
from evalmeta.org_clients.sobjects import Field, FieldType, SObject, sobject
from evalmeta.org_clients.soql import ANY, ONE, Comparison, Condition, Group, Kind, Order, Query, Value
from evalmeta.protocol.json_fields import from_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue

    Rows: TypeAlias = Callable[[str], Sequence[JsonObject]]
    Key: TypeAlias = str | float | None


_KINDS: Final[Mapping[FieldType, Kind]] = {"boolean": "boolean", "int": "number", "datetime": "time"}
_COMPARED: Final = frozenset({"<", "<=", ">", ">="})
# Stands for null among the values of IN; no column has a blob.
_NULL: Final = b""
_ID_LENGTHS: Final = (15, 18)
_WILDCARDS: Final = {ANY: "%", ONE: "_"}
_SPECIAL: Final = re.compile(r"[%_\\]")
_MAX_PATTERN_BYTES: Final = 50_000  # SQLITE_MAX_LIKE_PATTERN_LENGTH


def find_rows(query: Query, kind: SObject, rows: Rows) -> list[JsonObject]:
    """Return the rows that a query finds, in its order; raise OrgFault if a name or a value does not fit."""
    sql = _Sql()
    statement = f"SELECT own.place {sql.found(query, kind)}"
    places, every = _fetched(sql, [statement], rows)[statement], rows(kind.name)
    return [every[place] for (place,) in places]


def count_values(query: Query, kind: SObject, rows: Rows, paths: Sequence[str]) -> list[int]:
    """Return how many of the rows that a query finds have a value at each path; raise OrgFault like `find_rows`."""
    sql = _Sql()
    found = sql.found(query, kind)
    statements = [f"SELECT COUNT(value) FROM (SELECT {sql.column(path, kind)[1]} AS value {found})" for path in paths]
    counts = _fetched(sql, statements, rows)
    return [counts[statement][0][0] for statement in statements]


def _fetched(sql: _Sql, statements: Iterable[str], rows: Rows) -> dict[str, list[tuple[int, ...]]]:
    """Carry out each of the statements once."""
    groups = f"WITH {', '.join(sql.groups)} " if sql.groups else ""
    with closing(sqlite3.connect(":memory:")) as database:
        for kind in sql.objects.values():
            _add_table(database, kind, rows(kind.name))
        return {text: database.execute(groups + text, sql.parameters).fetchall() for text in {*statements}}


def _add_table(database: sqlite3.Connection, kind: SObject, rows: Sequence[JsonObject]) -> None:
    columns = "".join(f", {field.name}" for field in kind.fields)
    database.execute(f"CREATE TABLE {kind.name} (place INTEGER PRIMARY KEY{columns})")
    database.execute(f"CREATE INDEX {kind.name}Ids ON {kind.name} (Id)")
    keys = ((place, *(_key(row[field.name], field) for field in kind.fields)) for place, row in enumerate(rows))
    marks = ", ?" * len(kind.fields)
    database.executemany(f"INSERT INTO {kind.name} VALUES (?{marks})", keys)


class _Sql:
    """SQL from parts of a query, with the objects that it reads, its groups of conditions, and its parameters."""

    def __init__(self) -> None:
        self.objects: dict[str, SObject] = {}
        self.groups: list[str] = []
        self.parameters: list[str | float | bytes] = []

    def found(self, query: Query, kind: SObject) -> str:
        """Return the SQL behind SELECT and columns; the rows are called `own`."""
        self.objects[kind.name] = kind
        where = self._condition(query.where, kind) if query.where else "TRUE"
        # An order by a column that has already been named changes nothing.
        orders: dict[str, Order] = {}
        for order in query.orders:
            orders.setdefault(self.column(order.field, kind)[1], order)
        limit, offset = self._parameter(-1 if query.limit is None else query.limit), self._parameter(query.offset)
        terms = "".join(
            f"{column} {'DESC' if order.descending else 'ASC'} NULLS {'LAST' if order.nulls_last else 'FIRST'}, "
            for column, order in orders.items()
        )
        return f"FROM {kind.name} AS own WHERE {where} ORDER BY {terms}own.place LIMIT {limit} OFFSET {offset}"

    def column(self, path: str, kind: SObject, alias: str = "own") -> tuple[Field, str]:
        """Return the field of a path, and the SQL of its value in the row `alias`."""
        head, _, rest = path.partition(".")
        if not rest:
            field = kind.field(head)
            return field, f"{alias}.{field.name}"
        reference, above = kind.parent(head), f"{alias}_above"
        target = sobject(reference.target)
        self.objects[target.name] = target
        field, column = self.column(rest, target, above)
        return field, f"(SELECT {column} FROM {target.name} AS {above} WHERE {above}.Id = {alias}.{reference.name})"

    def _condition(self, condition: Condition, kind: SObject) -> str:
        if not isinstance(condition, Group):
            return self._comparison(condition, kind)
        parts = [self._condition(part, kind) for part in condition.conditions]
        text = f"NOT {parts[0]}" if condition.operator == "NOT" else f" {condition.operator} ".join(parts)
        # The parser of SQLite refuses as many parentheses in each other as a query may have.
        name = f"group{len(self.groups)}"
        self.groups.append(f"{name} AS (SELECT own.place FROM {kind.name} AS own WHERE {text})")
        return f"own.place IN {name}"

    def _comparison(self, comparison: Comparison, kind: SObject) -> str:
        """Return a condition that is never null."""
        field, column = self.column(comparison.field, kind)
        if comparison.operator == "LIKE":
            if field.type != "string":
                raise OrgFault(f"LIKE cannot be used with the {field.type} field '{field.name}'", code="INVALID_FIELD")
            return rf"IFNULL({column} LIKE {self._parameter(_pattern(comparison.pattern))} ESCAPE '\', FALSE)"
        if comparison.operator in _COMPARED:
            if (limit := _key_of(comparison.values[0], field)) is None:
                return "FALSE"
            return f"IFNULL({column} {comparison.operator} {self._parameter(limit)}, FALSE)"
        values = self._values(comparison, field)
        return f"{'NOT ' if comparison.operator in {'!=', 'NOT IN'} else ''}IFNULL({column}, x'') IN ({values})"

    def _values(self, comparison: Comparison, field: Field) -> str:
        """Return the values that a field is compared with."""
        query = comparison.query
        if query is None:
            keys = dict.fromkeys(_key_of(value, field) for value in comparison.values)
            return ", ".join(self._parameter(_NULL if key is None else key) for key in keys)
        if len(query.fields) != 1 or not isinstance(query.fields[0], str):
            raise OrgFault("a query in IN must have one field", code="MALFORMED_QUERY")
        target = sobject(query.object)
        column = self.column(query.fields[0], target)[1]
        return f"SELECT IFNULL({column}, x'') {self.found(query, target)}"

    def _parameter(self, value: str | float | bytes) -> str:
        self.parameters.append(value)
        return f"?{len(self.parameters)}"


def _key(value: JsonValue, field: Field) -> Key:
    """Return what a value is compared by: text ignores case, and ids of 15 and 18 characters are the same."""
    if value is None:
        return None
    if field.type in {"boolean", "int"}:
        return float(value) if isinstance(value, int) else 0.0
    text = str(value)
    if field.type == "datetime":
        return from_timestamp(text) or 0.0
    if field.type == "string":
        return text.casefold()
    return text[: _ID_LENGTHS[0]] if len(text) in _ID_LENGTHS else text


def _key_of(value: Value, field: Field) -> Key:
    """Return what a value in a query is compared by; raise OrgFault (INVALID_FIELD) if it is of another kind."""
    if value.kind == "null":
        return None
    kind = _KINDS.get(field.type, "text")
    moment = from_timestamp(value.text) if kind == "time" and value.kind == "time" else None
    if value.kind != kind or (kind == "time" and moment is None):
        quoted = "should" if kind == "text" else "should not"
        raise OrgFault(
            f"value of filter criterion for field '{field.name}' must be of type {field.type}"
            f" and {quoted} be enclosed in quotes",
            code="INVALID_FIELD",
        )
    if moment is not None:
        return moment
    if kind == "boolean":
        return float(value.text.lower() == "true")
    return float(value.text) if kind == "number" else _key(value.text, field)


def _pattern(parts: Collection[str]) -> str:
    """Return a pattern for LIKE in SQLite, with `\\` before characters that are not wildcards there."""
    text = "".join(_WILDCARDS.get(part) or _SPECIAL.sub(r"\\\g<0>", part.casefold()) for part in parts)
    # A pattern would end at its first NUL, which no value has.
    text = text.replace("\0", "\uffff")
    if len(text.encode()) > _MAX_PATTERN_BYTES:
        raise OrgFault("the pattern of LIKE is too long", code="QUERY_TOO_COMPLICATED")
    return text
