from __future__ import annotations

import pytest

from evalmeta.model.run import ContentKind
from evalmeta.store.sql import plain, postgres_sql, upsert


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("a = ? AND b = ?", "a = %s AND b = %s"),
        ("a = ?1 OR b = ?2 OR c = ?1", "a = %(1)s OR b = %(2)s OR c = %(1)s"),
        ("a LIKE 'x%' AND b = ?", "a LIKE 'x%%' AND b = %s"),
        ("worker IS ? AND place IS NULL", "worker IS NOT DISTINCT FROM %s AND place IS NULL"),
        ("name = ? COLLATE NOCASE", 'lower(name) = lower(%s COLLATE "C")'),
        ("ON CONFLICT (type, name COLLATE NOCASE)", "ON CONFLICT (type, lower(name))"),
        ("name = ? COLLATE BINARY", 'name = %s COLLATE "C"'),
        ("json_each(CAST(options AS TEXT), '$')", "json_each(convert_from(options, 'UTF8'), '$')"),
    ],
)
def test_what_postgres_writes_otherwise_is_rewritten(sql: str, text: str) -> None:
    assert postgres_sql(sql, ("x", "y"))[0] == text


def test_values_of_numbers_are_named_by_them() -> None:
    assert postgres_sql("a = ?1 OR ?1 IS NULL", ("x",))[1] == {"1": "x"}
    assert postgres_sql("a = ? OR b = ?", ("x", 1))[1] == ["x", 1]


def test_values_are_what_postgres_can_store() -> None:
    assert [type(plain(value)) for value in (ContentKind.FILE, True, 1, 1.5, b"\0", None)] == [
        *(str, bool, int, float, bytes, type(None))
    ]
    assert plain(ContentKind.FILE) == ContentKind.FILE.value
    assert plain("a\0b") == "a␀b"


def test_a_row_is_saved_instead_of_one_with_the_same_key() -> None:
    assert upsert("pace", "agent", "agent, seen") == (
        "INSERT INTO pace (agent, seen) VALUES (?, ?) "
        "ON CONFLICT (agent) DO UPDATE SET agent = excluded.agent, seen = excluded.seen"
    )
