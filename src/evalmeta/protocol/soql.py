"""The part of SOQL that logins and their commands use: one object, equalities, an order and a limit.

The form is `SELECT a, b FROM Object [WHERE a = 'x' AND ...] [ORDER BY a [ASC|DESC]] [LIMIT n]`
(SOQL and SOSL Reference).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.errors import OrgFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue


_VALUE: Final = r"(?:'(?:[^'\\]|\\.)*'|[\w.:+-]+)"
_EQUALITY: Final = rf"\w+\s*=\s*{_VALUE}"
_QUERY: Final = re.compile(
    rf"""
    \s*SELECT\s+(?P<fields>\w+(?:\s*,\s*\w+)*)
    \s+FROM\s+(?P<object>\w+)
    (?:\s+WHERE\s+(?P<where>{_EQUALITY}(?:\s+AND\s+{_EQUALITY})*))?
    (?:\s+ORDER\s+BY\s+(?P<order>\w+)(?:\s+(?P<direction>ASC|DESC))?)?
    (?:\s+LIMIT\s+(?P<limit>\d{{1,9}}))?\s*
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LITERALS: Final[dict[str, JsonValue]] = {"null": None, "true": True, "false": False}
_MAX_CHARS: Final = 100_000  # SOQL and SOSL Reference, "SOQL SELECT Syntax"


@dataclass(frozen=True, slots=True)
class Query:
    """A query; names of fields and objects are case-insensitive, and an empty `order` means no order."""

    fields: tuple[str, ...]
    object: str
    where: tuple[tuple[str, JsonValue], ...] = ()
    order: str = ""
    descending: bool = False
    limit: int | None = None


def object_of(text: str) -> str:
    """Return the object of any query, also of a query that `read_query` refuses; empty if there is none."""
    found = re.search(r"\bFROM\s+(\w+)", text, re.IGNORECASE)
    return found[1] if found else ""


def read_query(text: str) -> Query:
    """Read a query; raise OrgFault (MALFORMED_QUERY) if it is not of the form above."""
    found = _QUERY.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if found is None:
        form = "SELECT fields FROM object [WHERE field = 'value' AND ...] [ORDER BY field] [LIMIT number]"
        raise OrgFault(f"unexpected query; this org reads: {form}", code="MALFORMED_QUERY")
    equalities = re.findall(rf"(\w+)\s*=\s*({_VALUE})", found["where"] or "")
    return Query(
        fields=tuple(re.findall(r"\w+", found["fields"])),
        object=found["object"],
        where=tuple((name, _literal(value)) for name, value in equalities),
        order=found["order"] or "",
        descending=(found["direction"] or "").upper() == "DESC",
        limit=None if found["limit"] is None else int(found["limit"]),
    )


def select(query: Query, rows: Sequence[JsonObject], *, name: str) -> JsonObject:
    """Return the reply to a query from the rows of its object, whose type is `name`; all rows have the same fields.

    Raise OrgFault (INVALID_FIELD) if the object does not have a field.
    """
    if not rows:
        return {"totalSize": 0, "done": True, "records": []}
    names = {name.casefold(): name for name in rows[0]}
    wanted = [_field(query, names, each) for each in query.fields]
    where = [(_field(query, names, name), value) for name, value in query.where]
    found = [row for row in rows if all(_equals(row[name], value) for name, value in where)]
    if query.order:
        place = _field(query, names, query.order)
        found.sort(key=lambda row: str(row[place]), reverse=query.descending)
    records = [
        {"attributes": {"type": name}, **{field: row[field] for field in wanted}} for row in found[: query.limit]
    ]
    return {"totalSize": len(records), "done": True, "records": records}


def columns_of(query: Query, rows: Sequence[JsonObject], *, name: str) -> JsonObject:
    """Return the columns of a query, which the sf CLI requests before it shows records; raise like `select`."""
    names = {name.casefold(): name for name in rows[0]} if rows else {each.casefold(): each for each in query.fields}
    wanted = [_field(query, names, each) for each in query.fields]
    return {
        "columnMetadata": [_column(each, rows[0].get(each) if rows else None) for each in wanted],
        "entityName": name,
        "groupBy": False,
        "idSelected": "Id" in wanted,
        "keyPrefix": None,
    }


def _column(name: str, value: JsonValue) -> JsonObject:
    is_boolean, is_number = isinstance(value, bool), isinstance(value, int | float) and not isinstance(value, bool)
    return {
        "aggregate": False,
        "apexType": "Boolean" if is_boolean else "Integer" if is_number else "Id" if name == "Id" else "String",
        "booleanType": is_boolean,
        "columnName": name,
        "custom": False,
        "displayName": name,
        "foreignKeyName": None,
        "insertable": False,
        "joinColumns": [],
        "numberType": is_number,
        "textType": not (is_boolean or is_number),
        "updatable": False,
    }


def _literal(text: str) -> JsonValue:
    if text.startswith("'"):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return _LITERALS.get(text.lower(), text)


def _field(query: Query, names: Mapping[str, str], name: str) -> str:
    if name.casefold() not in names:
        raise OrgFault(f"No such column '{name}' on entity '{query.object}'.", code="INVALID_FIELD")
    return names[name.casefold()]


def _equals(ours: JsonValue, theirs: JsonValue) -> bool:
    """Compare as SOQL does: text ignoring case, an Id of 15 characters with one of 18."""
    if isinstance(ours, int) and not isinstance(ours, bool):
        return str(ours) == theirs
    if isinstance(ours, str) and isinstance(theirs, str):
        is_id = (len(theirs), len(ours)) == (15, 18) and ours.startswith(theirs)
        return is_id or ours.casefold() == theirs.casefold()
    return ours == theirs
