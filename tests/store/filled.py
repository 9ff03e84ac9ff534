"""Rows in every table, with values that databases keep in different ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.store.copying import tables

if TYPE_CHECKING:
    from evalmeta.store.database import Database
    from evalmeta.store.sql import Row

ROWS: Final = 7
TEXTS: Final = ("", "NULL", "\\N", "a\tb\n\\.\r\n'\"", "Ünï ☃ 😀 \u2028", "x" * 100_000, '{"a": 1}')
BLOBS: Final = (b"", b"\\x00", bytes(range(256)), b"\0", b"\n\t\\.", b"\xff" * 100_000, b"[1]")
# Postgres keeps these integers as true and false.
TRUTHS: Final = {"is_admin", "check_only", "is_active", "is_right", "should_pass"}
REALS: Final = (0.0, -0.0, 0.1 + 0.2, 1.7e308, 5e-324, float("inf"), 1_790_000_000.123456)
INTEGERS: Final = (0, 1, -1, 2**31 - 1, 7, 12, 30)


def all_rows(database: Database) -> dict[str, list[Row]]:
    """Return the rows of all tables of a SQLite database, in the order in which it reads them."""
    return {table.name: database.query(f"SELECT * FROM {table.name}") for table in tables()}


def fill(database: Database) -> None:
    """Add rows to every table of a SQLite database; all columns that may be NULL are NULL in one row."""
    database.execute("PRAGMA foreign_keys = OFF")
    for table in tables():
        for number in range(ROWS):
            _add(database, table.name, number)
    database.execute("PRAGMA foreign_keys = ON")
    assert database.query("PRAGMA foreign_key_check") == []


def _add(database: Database, table: str, number: int) -> None:
    columns = database.query(f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table}')")
    parents = {row[3]: (row[2], row[4]) for row in database.query(f"PRAGMA foreign_key_list({table})")}
    indexed = {
        name
        for (index,) in database.query(f"SELECT name FROM pragma_index_list('{table}')")
        for (name,) in database.query(f"SELECT name FROM pragma_index_info('{index}')")
    }
    values = []
    for name, kind, is_required, key in columns:
        parent, column = parents.get(name, ("", ""))
        if parent:
            values.append(_key(f"{parent}.{column}", kind, number))
        elif number == ROWS - 1 and not (is_required or key):
            values.append(None)
        elif key or name in indexed:
            # Postgres indexes at most 2,700 bytes.
            values.append(_key(f"{table}.{name}", kind, number))
        else:
            values.append(number % 2 if name in TRUTHS else _value(kind, number))
    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)


def _key(name: str, kind: str, number: int) -> str | bytes | int | float:
    """Return a value that no other row of the column has; rows of other tables that refer to it have the same."""
    match kind:
        case "INTEGER":
            return 1_000 + number
        case "REAL":
            return REALS[number]
        case "BLOB":
            return name.encode() + bytes([number])
        case _:
            return f"{TEXTS[number][:50]}{name} {number}"


def _value(kind: str, number: int) -> str | bytes | int | float:
    values = {"TEXT": TEXTS, "BLOB": BLOBS, "REAL": REALS, "INTEGER": INTEGERS}[kind]
    return values[number % len(values)]
