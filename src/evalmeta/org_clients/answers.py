"""Answers to SOQL queries: the records that a query finds, and its columns."""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from evalmeta.errors import OrgFault
from evalmeta.org_clients.pages import ALL_RECORDS, invalid_locator
from evalmeta.org_clients.sobjects import sobject
from evalmeta.org_clients.soql import ANY, ONE, Count, Group, Query
from evalmeta.protocol.json_fields import from_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.org_clients.pages import Page
    from evalmeta.org_clients.sobjects import Field, FieldType, SObject
    from evalmeta.org_clients.soql import Comparison, Condition, Kind, Order, Value

    Rows: TypeAlias = Callable[[str], Sequence[JsonObject]]
    Read: TypeAlias = Callable[[JsonObject], JsonValue]
    Test: TypeAlias = Callable[[JsonObject], bool]
    Find: TypeAlias = Callable[[Sequence[JsonObject]], Sequence[JsonObject]]
    Key: TypeAlias = str | float | None


_KINDS: Final[Mapping[FieldType, Kind]] = {"boolean": "boolean", "int": "number", "datetime": "time"}
_APEX_TYPES: Final[Mapping[FieldType, str]] = {
    "id": "Id",
    "reference": "Id",
    "string": "String",
    "boolean": "Boolean",
    "int": "Integer",
    "datetime": "Datetime",
}
_ORDERS: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ID_LENGTHS: Final = (15, 18)
_MAX_ROWS_OF_ALL_FIELDS: Final = 200  # SOQL and SOSL Reference, "FIELDS()"


class Answers:
    """Answers from the rows of an org's objects.

    Args:
        rows: returns all rows of an object by its name, each with all of its fields.
        root: the address of the objects, without a slash at the end.
    """

    def __init__(self, rows: Rows, *, root: str) -> None:
        self._rows = rows
        self._root = root

    def select(self, query: Query, page: Page = ALL_RECORDS, *, url: str = "") -> JsonObject:
        """Return a page of the reply to a query; `url` is the address of locators.

        Raise OrgFault if the query names what does not exist, if a value does not fit, or if the page starts too late.
        """
        kind = sobject(query.object)
        find, counts = self._finder(query, kind), [field for field in query.fields if isinstance(field, Count)]
        if not counts:
            write = self._writer(query, kind)
            return _page_reply(find(self._rows(kind.name)), write, page, url)
        if len(counts) < len(query.fields):
            raise OrgFault("Fields must be grouped or aggregated; this org has no GROUP BY", code="MALFORMED_QUERY")
        if counts == [Count()]:
            return {"totalSize": len(find(self._rows(kind.name))), "done": True, "records": []}
        reads = [self._reader(kind, count.field)[1] for count in counts]
        found = find(self._rows(kind.name))
        values = [sum(read(row) is not None for row in found) for read in reads]
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
        write = self._writer(Query(tuple(names) or tuple(field.name for field in kind.fields), kind.name), kind)
        wanted = _id_key(record_id)
        return next((write(row) for row in self._rows(kind.name) if _id_key(str(row["Id"])) == wanted), None)

    def _finder(self, query: Query, kind: SObject) -> Find:
        """Return what finds the rows of a query among rows, in its order."""
        matches = self._test(query.where, kind) if query.where else None
        sorts = [self._sorter(order, kind) for order in reversed(query.orders)]
        end = None if query.limit is None else query.offset + query.limit

        def find(rows: Sequence[JsonObject]) -> Sequence[JsonObject]:
            found = [row for row in rows if matches is None or matches(row)]
            for sort in sorts:
                found = sort(found)
            return found[query.offset : end]

        return find

    def _sorter(self, order: Order, kind: SObject) -> Callable[[list[JsonObject]], list[JsonObject]]:
        field, read = self._reader(kind, order.field)

        def sort(rows: list[JsonObject]) -> list[JsonObject]:
            nulls = [row for row in rows if read(row) is None]
            others = [row for row in rows if read(row) is not None]
            others.sort(key=lambda row: _comparable(read(row), field), reverse=order.descending)
            return [*others, *nulls] if order.nulls_last else [*nulls, *others]

        return sort

    def _writer(self, query: Query, kind: SObject) -> Callable[[JsonObject], JsonObject]:
        """Return what writes a row as a record."""
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
        target, by_id = self._referred(reference)
        write = self._writer(Query(tuple(names), target.name), target)

        def read(row: JsonObject) -> JsonValue:
            found = by_id.get(row[reference.name])
            return None if found is None else write(found)

        return read

    def _children(self, query: Query, kind: SObject) -> tuple[str, Read]:
        """Return the name of a relationship, and what reads the records that a sub-query finds for a row."""
        name, child, field = kind.child(query.object)
        target, by_parent = sobject(child), defaultdict(list)
        if any(isinstance(each, Count) for each in query.fields):
            raise OrgFault("COUNT() cannot be used in a sub-query", code="MALFORMED_QUERY")
        find, write = self._finder(query, target), self._writer(query, target)
        for row in self._rows(child):
            by_parent[row[field]].append(row)

        def read(row: JsonObject) -> JsonValue:
            records = [write(value) for value in find(by_parent.get(row["Id"], ()))]
            return _reply(records) if records else None

        return name, read

    def _reader(self, kind: SObject, path: str) -> tuple[Field, Read]:
        """Return the field of a path, and what reads it from a row."""
        head, _, rest = path.partition(".")
        if not rest:
            field = kind.field(head)
            return field, operator.itemgetter(field.name)
        reference = kind.parent(head)
        target, by_id = self._referred(reference)
        field, read = self._reader(target, rest)

        def read_above(row: JsonObject) -> JsonValue:
            found = by_id.get(row[reference.name])
            return None if found is None else read(found)

        return field, read_above

    def _referred(self, reference: Field) -> tuple[SObject, Mapping[JsonValue, JsonObject]]:
        target = sobject(reference.target)
        return target, {row["Id"]: row for row in self._rows(target.name)}

    def _test(self, condition: Condition, kind: SObject) -> Test:
        if not isinstance(condition, Group):
            return self._comparison(condition, kind)
        tests = [self._test(each, kind) for each in condition.conditions]
        if condition.operator == "NOT":
            return lambda row: not tests[0](row)
        combine = all if condition.operator == "AND" else any
        return lambda row: combine(test(row) for test in tests)

    def _comparison(self, comparison: Comparison, kind: SObject) -> Test:
        field, read = self._reader(kind, comparison.field)
        if comparison.operator == "LIKE":
            if field.type != "string":
                raise OrgFault(f"LIKE cannot be used with the {field.type} field '{field.name}'", code="INVALID_FIELD")
            pattern = _casefolded(comparison.pattern)
            return lambda row: (value := read(row)) is not None and _is_like(str(value).casefold(), pattern)
        if compare := _ORDERS.get(comparison.operator):
            limit = _key_of(comparison.values[0], field)
            if limit is None:
                return lambda _: False
            return lambda row: (value := read(row)) is not None and compare(_comparable(value, field), limit)
        wanted = self._wanted(comparison, field)
        if comparison.operator in {"=", "IN"}:
            return lambda row: _key(read(row), field) in wanted
        return lambda row: _key(read(row), field) not in wanted

    def _wanted(self, comparison: Comparison, field: Field) -> frozenset[Key]:
        """Return the values that a field is compared with."""
        query = comparison.query
        if query is None:
            return frozenset(_key_of(value, field) for value in comparison.values)
        if len(query.fields) != 1 or not isinstance(query.fields[0], str):
            raise OrgFault("a query in IN must have one field", code="MALFORMED_QUERY")
        target = sobject(query.object)
        theirs, read = self._reader(target, query.fields[0])
        return frozenset(_key(read(row), theirs) for row in self._finder(query, target)(self._rows(target.name)))

    def _column(self, kind: SObject, field: str | Count | Query, index: int) -> JsonObject:
        if isinstance(field, Query):
            name, child, _ = kind.child(field.object)
            inner = [self._column(sobject(child), each, number) for number, each in enumerate(field.fields)]
            return _column(name, aggregate=True, inner=inner)
        if isinstance(field, Count):
            label = f"COUNT({field.field})"
            return _column(field.alias or f"expr{index}", "int", aggregate=True, label=label)
        head, _, rest = field.partition(".")
        if rest:
            reference = kind.parent(head)
            return _column(reference.relationship, inner=[self._column(sobject(reference.target), rest, 0)])
        found = kind.field(head)
        return _column(found.name, found.type)


def _fields(query: Query, kind: SObject) -> Iterable[str | Count | Query]:
    """Yield the fields of a query, those of FIELDS() by name."""
    for each in query.fields:
        if each not in {"FIELDS(ALL)", "FIELDS(STANDARD)"}:
            yield each
            continue
        if each == "FIELDS(ALL)" and (query.limit is None or query.limit > _MAX_ROWS_OF_ALL_FIELDS):
            raise OrgFault("FIELDS(ALL) needs a LIMIT of at most 200", code="MALFORMED_QUERY")
        yield from (field.name for field in kind.fields)


def _page_reply(
    rows: Sequence[JsonObject], write: Callable[[JsonObject], JsonObject], page: Page, url: str
) -> JsonObject:
    """Return the rows of a page as records, and the address of the next page."""
    if page.start > len(rows):
        raise invalid_locator()
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
    children = (each["records"] for each in record.values() if isinstance(each, dict) and "records" in each)
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


def _key(value: JsonValue, field: Field) -> Key:
    """Return what a value is compared by: text ignores case, and ids of 15 and 18 characters are the same."""
    return None if value is None else _comparable(value, field)


def _comparable(value: JsonValue, field: Field) -> str | float:
    if field.type in {"boolean", "int"}:
        return float(value) if isinstance(value, int) else 0.0
    if field.type == "datetime":
        return from_timestamp(str(value)) or 0.0
    return _id_key(str(value)) if field.type in {"id", "reference"} else str(value).casefold()


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
    return float(value.text) if kind == "number" else str(_comparable(value.text, field))


def _id_key(text: str) -> str:
    return text[: _ID_LENGTHS[0]] if len(text) in _ID_LENGTHS else text


def _casefolded(pattern: Iterable[str]) -> list[str]:
    parts: list[str] = []
    for part in pattern:
        parts += [part] if part in {ANY, ONE} else part.casefold()
    return parts


def _is_like(text: str, pattern: Sequence[str]) -> bool:
    """Return whether a text matches a pattern, in at most as many steps as the product of their lengths."""
    place, index, restart, tried = 0, 0, -1, 0
    while place < len(text):
        if index < len(pattern) and pattern[index] == ANY:
            restart, tried, index = index, place, index + 1
        elif index < len(pattern) and pattern[index] in {ONE, text[place]}:
            place, index = place + 1, index + 1
        elif restart >= 0:
            tried += 1
            place, index = tried, restart + 1
        else:
            return False
    return all(part == ANY for part in pattern[index:])
