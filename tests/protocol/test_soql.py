from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import OrgFault
from evalmeta.protocol.soql import Query, columns_of, object_of, read_query, select

ROWS = [
    {"Id": "005000000000001AAA", "Name": "Ann", "Age": 7, "IsActive": True, "Left": None},
    {"Id": "005000000000002AAA", "Name": "O'Neil", "Age": 9, "IsActive": False, "Left": None},
]


def names(text: str) -> list[object]:
    found = select(read_query(text), ROWS, name="User")
    assert found["totalSize"] == len(found["records"])
    return [record["Name"] for record in found["records"]]


def test_a_query_is_read_in_any_case_and_spacing() -> None:
    text = " select Id ,Name from User\nwhere Name = 'a' and Id='b' order by Id desc limit 3 "
    where = (("Name", "a"), ("Id", "b"))
    assert read_query(text) == Query(("Id", "Name"), "User", where, order="Id", descending=True, limit=3)


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("", ["Ann", "O'Neil"]),
        ("WHERE name = 'ANN'", ["Ann"]),
        (r"WHERE Name = 'O\'Neil'", ["O'Neil"]),
        ("WHERE Id = '005000000000002'", ["O'Neil"]),
        ("WHERE Age = 7 AND IsActive = true", ["Ann"]),
        ("WHERE IsActive = FALSE AND Left = null", ["O'Neil"]),
        ("WHERE Name = 'Ann' AND Name = 'Bob'", []),
        ("ORDER BY Name DESC", ["O'Neil", "Ann"]),
        ("ORDER BY Name LIMIT 1", ["Ann"]),
        ("LIMIT 0", []),
    ],
)
def test_a_query_finds_what_it_says(rest: str, found: list[str]) -> None:
    assert names(f"SELECT Name FROM User {rest}") == found  # noqa: S608 - no SQL


def test_a_record_has_the_fields_that_were_asked_for() -> None:
    [record] = select(read_query("SELECT name, AGE FROM user LIMIT 1"), ROWS, name="User")["records"]
    assert record == {"attributes": {"type": "User"}, "Name": "Ann", "Age": 7}


def test_columns_have_types() -> None:
    found = columns_of(read_query("SELECT id, Age, IsActive FROM user"), ROWS, name="User")
    assert (found["entityName"], found["idSelected"]) == ("User", True)
    told = [(each["columnName"], each["apexType"], each["textType"]) for each in found["columnMetadata"]]
    assert told == [("Id", "Id", True), ("Age", "Integer", False), ("IsActive", "Boolean", False)]


def test_columns_need_no_rows_but_must_exist() -> None:
    [column] = columns_of(read_query("SELECT Any FROM Thing"), [], name="Thing")["columnMetadata"]
    assert (column["columnName"], column["textType"], column["joinColumns"]) == ("Any", True, [])
    with pytest.raises(OrgFault, match="No such column 'Nope'"):
        columns_of(read_query("SELECT Nope FROM User"), ROWS, name="User")


def test_a_query_may_have_no_rows() -> None:
    assert select(read_query("SELECT Any FROM Thing"), [], name="Thing") == {
        "totalSize": 0,
        "done": True,
        "records": [],
    }


@pytest.mark.parametrize("text", ["SELECT Nope FROM User", "SELECT Id FROM User WHERE Nope = 1"])
def test_an_unknown_field_is_reported(text: str) -> None:
    with pytest.raises(OrgFault, match="No such column 'Nope' on entity 'User'") as raised:
        select(read_query(text), ROWS, name="User")
    assert raised.value.code == "INVALID_FIELD"


@pytest.mark.parametrize(
    "text", ["", "SELECT", "SELECT Id FROM User; DROP", "SELECT Id FROM User WHERE a > 1", "x" * 10**6]
)
def test_a_query_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(OrgFault) as raised:
        read_query(text)
    assert raised.value.code == "MALFORMED_QUERY"


def test_the_object_of_any_query_is_found() -> None:
    text = "SELECT Id FROM SandboxProcess WHERE a IN ('x') AND b != null ORDER BY c"
    assert (object_of(text), object_of("SELECT 1")) == ("SandboxProcess", "")


@given(st.text(alphabet="SELECT idFROMuserwh=',.\\ \n0"))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(OrgFault):
        assert read_query(text).fields
