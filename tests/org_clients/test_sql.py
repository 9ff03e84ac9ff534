from __future__ import annotations

import pytest

from evalmeta.org_clients.answers import Answers
from evalmeta.org_clients.sobjects import AGENT, SOBJECTS
from evalmeta.org_clients.soql import read_query
from org_clients.test_answers import ROWS, fault, names, select

CONDITIONS = [
    *("DeveloperName = null", "DeveloperName = 'ann'", "CreatedDate = 2026-11-24", "CreatedDate != null"),
    *("CreatedDate < 2026-11-24", "CreatedDate >= null", "Description LIKE '%'", "Description IN ('a', null)"),
    *("BotUser.Name = 'a'", "LastModifiedBy.IsActive = true", "LastModifiedBy.Name NOT IN ('A')"),
    *("Id IN (SELECT BotDefinitionId FROM BotVersion)", "Description IN (SELECT ToneType FROM BotVersion)"),
    *("Description NOT IN (SELECT Status FROM BotVersion)", "Id IN (SELECT VersionNumber FROM BotVersion)"),
]


def nested(depth: int, form: str) -> str:
    """Return groups of conditions in each other, of which the innermost decides."""
    text = "DeveloperName = 'Ann'"
    for number in range(depth):
        text = form.format(text, *(("OR", "Id = null") if number % 2 else ("AND", "Id != null")))
    return text


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_or_its_negation_holds_for_each_row(condition: str) -> None:
    found, others = names(f"WHERE {condition}"), names(f"WHERE NOT {condition}")
    assert sorted([*found, *others]) == sorted(names(""))
    assert names(f"WHERE NOT (NOT {condition})") == found


@pytest.mark.parametrize("form", ["({2} {1} {0})", "({0} {1} {2})", "NOT (NOT ({2} {1} {0}))"])
def test_conditions_are_as_deep_as_a_query_may_have_them(form: str) -> None:
    assert names(f"WHERE {nested(12 if 'NOT' in form else 48, form)}") == ["Ann"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"100\%", ["100%"]),
        (r"%\_%", ["a_b"]),
        (r"a\\b", ["a\\b"]),
        ("STRASSE", ["Straße"]),
        ("straß_", ["Straße"]),
        ("_", ["é"]),
        ("É", ["é"]),
        ("a_b", ["a_b", "a\\b"]),
        ("' OR 1 = 1 --", []),
    ],
)
def test_a_pattern_has_only_its_own_wildcards(pattern: str, found: list[str]) -> None:
    texts = ["100%", "1000", "a_b", "a\\b", "Straße", "é"]
    rows = [{**ROWS["BotDefinition"][0], "MasterLabel": text} for text in texts]
    escaped = pattern.replace("'", r"\'")
    query = read_query(f"SELECT MasterLabel FROM BotDefinition WHERE MasterLabel LIKE '{escaped}'")  # noqa: S608 - no SQL
    reply = Answers(lambda name: rows if name == AGENT.name else [], root="/s").select(query)
    assert [record["MasterLabel"] for record in reply["records"]] == found


@pytest.mark.parametrize("value", ["'", '"', "\\", "'; DROP TABLE User; --", "?1", "x'00'", "\0", "own.place"])
def test_a_value_never_becomes_sql(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    for operator in ("=", "LIKE"):
        assert "Ann" not in names(f"WHERE DeveloperName {operator} '{escaped}'")
    assert names(f"WHERE DeveloperName NOT IN ('{escaped}')") == names("")


def test_a_pattern_that_sqlite_would_refuse_is_refused() -> None:
    pattern = r"\%" * 25_001
    refused = fault(f"SELECT Id FROM User WHERE Name LIKE '{pattern}'")  # noqa: S608 - no SQL
    assert (refused.code, str(refused)) == ("QUERY_TOO_COMPLICATED", "the pattern of LIKE is too long")


def test_orders_and_counts_may_name_a_field_more_often_than_a_table_has_columns() -> None:
    assert names(f"ORDER BY {', '.join(['DeveloperName DESC', *['DeveloperName'] * 3_000])}")[0] == "O'Neil"
    counts = ", ".join(["COUNT(CreatedDate)"] * 3_000)
    [record] = select(f"SELECT {counts} FROM BotDefinition")["records"]  # noqa: S608 - no SQL
    assert record["expr2999"] == 2


@pytest.mark.parametrize("kind", SOBJECTS.values(), ids=lambda kind: kind.name)
def test_every_object_can_be_asked_and_sorted_by_all_its_fields(kind: object) -> None:
    fields = ", ".join(field.name for field in kind.fields)
    answers = Answers({"Organization": [], **ROWS}.__getitem__, root="/s")
    reply = answers.select(read_query(f"SELECT {fields} FROM {kind.name} ORDER BY {fields}"))  # noqa: S608 - no SQL
    assert reply["totalSize"] == len(ROWS.get(kind.name, ()))
