"""Answers to SOQL queries: the records that a query finds, page by page, and its columns.

Sources: REST API Developer Guide, "Query Options Header" and "Query More Results". The locator of a page contains the
query: the org does not have to remember it.
"""

from __future__ import annotations

import base64
import binascii
import operator
import re
import sys
import zlib
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta.errors import OrgFault
from evalmeta.org_clients.sobjects import Field, FieldType, SObject, sobject
from evalmeta.org_clients.soql import MAX_CHARS, Comparison, Count, Query, Value
from evalmeta.org_clients.sql import count_values, find_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.org_clients.sql import Rows

    Read: TypeAlias = Callable[[JsonObject], JsonValue]


MIN_PAGE_RECORDS: Final = 200
MAX_PAGE_RECORDS: Final = 2_000
_BATCH_SIZE: Final = re.compile(r"batchSize\s*=\s*([0-9]{1,9})\b", re.IGNORECASE)
_CONTENT: Final = re.compile(r"(\d{1,4}) (.*)", re.DOTALL | re.ASCII)
_START: Final = re.compile(r"\d{1,9}", re.ASCII)
_APEX_TYPES: Final[Mapping[FieldType, str]] = {
    "id": "Id",
    "reference": "Id",
    "string": "String",
    "boolean": "Boolean",
    "int": "Integer",
    "datetime": "Datetime",
}
_MAX_ROWS_OF_ALL_FIELDS: Final = 200  # SOQL and SOSL Reference, "FIELDS()"


class Page(NamedTuple):
    """A page of a query: its first record, and the greatest number of records in it."""

    query: str
    start: int = 0
    size: int = MAX_PAGE_RECORDS

    @property
    def locator(self) -> str:
        """Return the locator, which `read_locator` reads."""
        content = zlib.compress(f"{self.size} {self.query}".encode(), level=9)
        return f"{base64.urlsafe_b64encode(content).decode().rstrip('=')}-{self.start}"


ALL_RECORDS: Final = Page("", size=sys.maxsize)


def read_locator(locator: str) -> Page:
    """Return the page of a locator; raise OrgFault (INVALID_QUERY_LOCATOR)."""
    content, _, start = locator.rpartition("-")
    match = _CONTENT.fullmatch(_inflated(content))
    if not match or not _START.fullmatch(start):
        raise _invalid_locator()
    return Page(match[2], int(start), int(match[1]))


def _invalid_locator() -> OrgFault:
    return OrgFault("invalid query locator", code="INVALID_QUERY_LOCATOR")


def read_page_size(options: str, *, otherwise: int = MAX_PAGE_RECORDS) -> int:
    """Return the batch size of a Sforce-Query-Options header, or the nearest one that is allowed."""
    match = _BATCH_SIZE.search(options)
    return min(max(int(match[1]), MIN_PAGE_RECORDS), MAX_PAGE_RECORDS) if match else otherwise


def _inflated(content: str) -> str:
    """Return the content of a locator; empty if it is not valid or too long."""
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)), 4 * MAX_CHARS)
        return text.decode() if reader.eof else ""
    except (binascii.Error, zlib.error, ValueError):
        return ""


class Answers:
    """Answers from the rows of an org's objects, which `rows` returns by name; `root` is the address of the objects."""

    def __init__(self, rows: Rows, *, root: str) -> None:
        self._rows = rows
        self._root = root

    def select(self, query: Query, page: Page = ALL_RECORDS, *, url: str = "") -> JsonObject:
        """Return a page of the reply to a query, with locators below `url`; raise OrgFault if that is not possible."""
        kind = sobject(query.object)
        found = find_rows(query, kind, self._rows)
        counts = [field for field in query.fields if isinstance(field, Count)]
        if not counts:
            return _page_reply(found, self._writer(query, kind), page, url)
        if len(counts) < len(query.fields):
            raise OrgFault("Fields must be grouped or aggregated; this org has no GROUP BY", code="MALFORMED_QUERY")
        if counts == [Count()]:
            return {"totalSize": len(found), "done": True, "records": []}
        values = count_values(query, kind, self._rows, [count.field for count in counts])
        names = [count.alias or f"expr{index}" for index, count in enumerate(counts)]
        return _reply([{"attributes": {"type": "AggregateResult"}, **dict(zip(names, values, strict=True))}])

    def columns(self, query: Query) -> JsonObject:
        """Return the columns of a query, which the sf CLI requests before it shows records; raise like `select`."""
        kind = sobject(query.object)
        columns = [self._column(kind, field, index) for index, field in enumerate(_fields(query, kind))]
        return {
            "columnMetadata": columns,
            "entityName": kind.name,
            "groupBy": False,
            "idSelected": any(column["columnName"] == "Id" for column in columns),
            "keyPrefix": kind.prefix,
        }

    def record(self, kind: SObject, record_id: str, names: Sequence[str] = ()) -> JsonObject | None:
        """Return the record with an id of 15 or 18 characters and these fields, by default all; None without one."""
        fields = tuple(names) or tuple(field.name for field in kind.fields)
        query = Query(fields, kind.name, Comparison("Id", "=", (Value("text", record_id),)))
        return next(map(self._writer(query, kind), find_rows(query, kind, self._rows)), None)

    def _writer(self, query: Query, kind: SObject) -> Callable[[JsonObject], JsonObject]:
        parts: dict[str, Read] = {}
        above: defaultdict[str, list[str]] = defaultdict(list)
        for field in _fields(query, kind):
            if isinstance(field, Query):
                name, part = self._children(field, kind)
                parts[name] = part
            elif isinstance(field, str) and "." in field:
                head, _, rest = field.partition(".")
                above[kind.parent(head).relationship].append(rest)
            elif isinstance(field, str):
                name = kind.field(field).name
                parts[name] = operator.itemgetter(name)
        for relationship, names in above.items():
            parts[relationship] = self._parent(kind.parent(relationship), names)

        def write(row: JsonObject) -> JsonObject:
            attributes = {"type": kind.name, "url": f"{self._root}/{kind.name}/{row['Id']}"}
            return {"attributes": attributes, **{name: part(row) for name, part in parts.items()}}

        return write

    def _parent(self, reference: Field, names: Sequence[str]) -> Read:
        """Return what reads the parent of a row as a record with these fields."""
        target = sobject(reference.target)
        by_id = {row["Id"]: row for row in self._rows(target.name)}
        write = self._writer(Query(tuple(names), target.name), target)

        def read(row: JsonObject) -> JsonValue:
            parent = by_id.get(row[reference.name])
            return None if parent is None else write(parent)

        return read

    def _children(self, query: Query, kind: SObject) -> tuple[str, Read]:
        """Return the name of a relationship, and what reads the records that a sub-query finds for a row."""
        name, child, field = kind.child(query.object)
        target, by_parent = sobject(child), defaultdict(list)
        if any(isinstance(column, Count) for column in query.fields):
            raise OrgFault("COUNT() cannot be used in a sub-query", code="MALFORMED_QUERY")
        # Each parent has as many children as the query allows.
        for row in find_rows(replace(query, limit=None, offset=0), target, self._rows):
            by_parent[row[field]].append(row)
        end = None if query.limit is None else query.offset + query.limit
        write = self._writer(query, target)

        def read(row: JsonObject) -> JsonValue:
            records = [write(child) for child in by_parent[row["Id"]][query.offset : end]]
            return _reply(records) if records else None

        return name, read

    def _column(self, kind: SObject, field: str | Count | Query, index: int) -> JsonObject:
        if isinstance(field, Query):
            name, child, _ = kind.child(field.object)
            inner = [self._column(sobject(child), part, number) for number, part in enumerate(field.fields)]
            return _column(name, aggregate=True, inner=inner)
        if isinstance(field, Count):
            label = f"COUNT({field.field})"
            return _column(field.alias or f"expr{index}", "int", aggregate=True, label=label)
        head, _, rest = field.partition(".")
        if rest:
            reference = kind.parent(head)
            return _column(reference.relationship, inner=[self._column(sobject(reference.target), rest, 0)])
        known = kind.field(head)
        return _column(known.name, known.type)


def _fields(query: Query, kind: SObject) -> Iterable[str | Count | Query]:
    """Yield the fields of a query, those of FIELDS() by name."""
    for field in query.fields:
        if field not in {"FIELDS(ALL)", "FIELDS(STANDARD)"}:
            yield field
            continue
        if field == "FIELDS(ALL)" and (query.limit is None or query.limit > _MAX_ROWS_OF_ALL_FIELDS):
            raise OrgFault("FIELDS(ALL) needs a LIMIT of at most 200", code="MALFORMED_QUERY")
        yield from (known.name for known in kind.fields)


def _page_reply(
    rows: Sequence[JsonObject], write: Callable[[JsonObject], JsonObject], page: Page, url: str
) -> JsonObject:
    """Return the rows of a page as records, and the address of the next page."""
    if page.start > len(rows):
        raise _invalid_locator()
    records: list[JsonObject] = []
    size = 0
    for row in rows[page.start :]:
        record = write(row)
        size += _number_of_records(record)
        if records and size > page.size:
            break
        records.append(record)
    end = page.start + len(records)
    if end == len(rows):
        return {"totalSize": len(rows), "done": True, "records": records}
    next_url = f"{url}/{page._replace(start=end).locator}"
    return {"totalSize": len(rows), "done": False, "nextRecordsUrl": next_url, "records": records}


def _number_of_records(record: JsonObject) -> int:
    """Return 1 and the number of a record's children, which count towards the size of a page."""
    children = (value["records"] for value in record.values() if isinstance(value, dict) and "records" in value)
    return 1 + sum(len(child) for child in children if isinstance(child, list))


def _reply(records: list[JsonObject]) -> JsonObject:
    return {"totalSize": len(records), "done": True, "records": records}


def _column(
    name: str, kind: FieldType = "string", *, aggregate: bool = False, label: str = "", inner: Sequence[JsonObject] = ()
) -> JsonObject:
    return {
        "aggregate": aggregate,
        "apexType": _APEX_TYPES[kind],
        "booleanType": kind == "boolean",
        "columnName": name,
        "custom": False,
        "displayName": label or name,
        "foreignKeyName": None,
        "insertable": False,
        "joinColumns": inner,
        "numberType": kind == "int",
        "textType": kind not in {"boolean", "int"},
        "updatable": False,
    }
