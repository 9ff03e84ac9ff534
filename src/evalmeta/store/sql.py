"""The SQL of the store, which is that of SQLite and is rewritten for Postgres: values, rows and statements."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Value: TypeAlias = str | int | float | bytes | None
Bound: TypeAlias = "Sequence[Value] | dict[str, Value]"
Row: TypeAlias = tuple[Any, ...]  # type: ignore[explicit-any] # only the SQL knows the types of the columns

_INSERT: Final = "INSERT INTO"
# Texts that ignore case have the same order and are equal as in SQLite: only the letters A to Z are folded.
_REWRITTEN: Final = (
    (re.compile("%"), "%%"),
    (re.compile(r" IS (?=\?)"), " IS NOT DISTINCT FROM "),
    (re.compile(r"(\w+) = (\?\d*) COLLATE NOCASE"), r'lower(\1) = lower(\2 COLLATE "C")'),
    (re.compile(r"(\w+) COLLATE NOCASE"), r"lower(\1)"),
    (re.compile(r"COLLATE BINARY"), 'COLLATE "C"'),
    (re.compile(r"CAST\((\w+) AS TEXT\)"), r"convert_from(\1, 'UTF8')"),
    (re.compile(r"\?(\d+)"), r"%(\1)s"),
    (re.compile(r"\?"), "%s"),
)


def upsert(table: str, key: str, columns: str) -> str:
    """Return the statement that saves a row of all these columns, instead of one with the same key."""
    names = columns.split(", ")
    changes = ", ".join(f"{name} = excluded.{name}" for name in names)
    return f"{_INSERT} {table} ({columns}) VALUES ({placeholders(names)}) ON CONFLICT ({key}) DO UPDATE SET {changes}"


def placeholders(values: Collection[object]) -> str:
    """Return the placeholders of the values of a list, NULL for none: Postgres refuses an empty list behind `IN`."""
    return ", ".join("?" * len(values)) or "NULL"


def by_number(values: Sequence[Value]) -> dict[str, Value]:
    """Return the values of `?1`, `?2` and so on by their numbers."""
    return {str(number): value for number, value in enumerate(values, 1)}


def postgres_sql(sql: str, values: Sequence[Value]) -> tuple[str, Bound]:
    """Return a statement and its values as psycopg takes them."""
    bound = [*map(plain, values)]
    return _rewritten(sql), by_number(bound) if "?1" in sql else bound


@lru_cache(maxsize=1024)
def _rewritten(sql: str) -> str:
    for pattern, text in _REWRITTEN:
        sql = pattern.sub(text, sql)
    return sql


def plain(value: Value) -> Value:
    """Return a value as Postgres can store it: without the character 0, for which another one stands.

    A member of an enumeration is the text that it is; psycopg would save its name.
    """
    return str.__str__(value).replace("\0", "\N{SYMBOL FOR NULL}") if isinstance(value, str) else value
