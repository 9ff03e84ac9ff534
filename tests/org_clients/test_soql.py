from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import OrgFault
from evalmeta.org_clients.soql import ANY, ONE, Comparison, Count, Group, Order, Query, Value, read_query


def where(condition: str) -> object:
    return read_query(f"SELECT Id FROM User WHERE {condition}").where  # noqa: S608 - no SQL


def fault(text: str) -> OrgFault:
    with pytest.raises(OrgFault) as raised:
        read_query(text)
    return raised.value


def test_a_query_is_read_in_any_case_and_spacing() -> None:
    text = " select Id ,Name,count(Id) c from User\nwhere Name='a' order by Id desc nulls LAST,Name limit 3 offset 2 "
    fields, orders = ("Id", "Name", Count("Id", "c")), (Order("Id", descending=True, nulls_last=True), Order("Name"))
    name = Comparison("Name", "=", (Value("text", "a"),))
    assert read_query(text) == Query(fields, "User", name, orders, 3, 2)


def test_a_query_contains_queries_of_children_and_of_values() -> None:
    text = "SELECT (SELECT Id FROM BotVersions) FROM BotDefinition WHERE Id IN (SELECT BotDefinitionId FROM BotVersion)"
    inner = Query(("BotDefinitionId",), "BotVersion")
    expected = Query((Query(("Id",), "BotVersions"),), "BotDefinition", Comparison("Id", "IN", query=inner))
    assert read_query(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'O\'Neil \\ \n'", Value("text", "O'Neil \\ \n")),
        ("-7.5", Value("number", "-7.5")),
        ("TRUE", Value("boolean", "TRUE")),
        ("null", Value("null", "null")),
        ("2026-11-23", Value("time", "2026-11-23")),
        ("2026-11-23T10:00:00Z", Value("time", "2026-11-23T10:00:00Z")),
    ],
)
def test_values_are_read_by_their_kind(text: str, value: Value) -> None:
    assert where(f"Name = {text}") == Comparison("Name", "=", (value,))


def test_a_pattern_has_wildcards_that_can_be_escaped() -> None:
    assert where(r"Name LIKE 'a_\%\_%\''") == Comparison("Name", "LIKE", pattern=("a", ONE, "%", "_", ANY, "'"))


def test_conditions_are_grouped_by_parentheses() -> None:
    one, two, three = (Comparison(name, "=", (Value("number", "1"),)) for name in "abc")
    assert where("(a = 1 OR NOT b = 1) AND c <> 1") == Group(
        "AND", (Group("OR", (one, Group("NOT", (two,)))), Comparison("c", "!=", three.values))
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected end of the query at column 1, expecting SELECT"),
        ("SELECT", "unexpected end of the query at column 7"),
        ("SELECT Id FORM User", "unexpected token: 'FORM' at column 11, expecting FROM"),
        ("SELECT Id FROM User; DROP", "unexpected token: ';' at column 20"),
        ("SELECT Id FROM User WHERE a LIKE 1", "unexpected token: '1' at column 34"),
        ("SELECT Id FROM User WHERE a = 'b", 'unexpected token: "\'" at column 31'),
        ("SELECT Id FROM User WHERE a = 2026-99", "unexpected token: '2026-99' at column 31"),
        ("SELECT Id FROM User GROUP BY Id", "unexpected token: 'GROUP' at column 21"),
        ("SELECT Id FROM User LIMIT x", "unexpected token: 'x' at column 27"),
        ("SELECT Id FROM User LIMIT 10000000000", "unexpected token: '10000000000' at column 27"),
        ("SELECT COUNT(), Id FROM User", "COUNT() cannot be combined with fields"),
        ("SELECT (SELECT (SELECT Id FROM a) FROM b) FROM c", "unexpected token: '(' at column 16"),
    ],
)
def test_a_query_of_another_form_is_refused_with_the_place_and_the_form(text: str, message: str) -> None:
    found = fault(text)
    assert (found.code, str(found)) == ("MALFORMED_QUERY", message)
    assert found.actions[-1].startswith("This org reads: SELECT fields | COUNT() | (SELECT")


def test_and_and_or_need_parentheses() -> None:
    assert fault("SELECT Id FROM User WHERE a = 1 AND b = 2 OR c = 3").actions[0].startswith("Use parentheses")


@pytest.mark.parametrize(
    "condition", ["(" * 60_000, "NOT " * 20_000, " AND ".join(["a = 1"] * 10_000), f"a IN ({'1,' * 60_000}1)"]
)
def test_a_hostile_query_ends_soon(condition: str) -> None:
    assert fault(f"SELECT Id FROM User WHERE {condition}").code == "QUERY_TOO_COMPLICATED"  # noqa: S608 - no SQL


@given(st.text(alphabet="SELECT idFROMuserwhANDORkNULSin()=',.%\\ \n0"))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(OrgFault):
        assert read_query(text).fields
