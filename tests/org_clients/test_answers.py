from __future__ import annotations

import pytest

from evalmeta.errors import OrgFault
from evalmeta.org_clients.answers import Answers, Page, read_locator
from evalmeta.org_clients.sobjects import AGENT, AGENT_VERSION, USER
from evalmeta.org_clients.soql import read_query

DATES = {"Ann": None, "Bea": "2026-11-23T10:00:00.000Z", "O'Neil": "2026-11-24T10:00:00.000Z"}
IDS = {"Ann": "0Xx00000000000aAAA", "Bea": "0Xx00000000000AAAQ", "O'Neil": "0Xx000000000003AAA"}
ROWS = {
    "User": [{"Id": "005000000000001AAA", "Username": "a@b", "Name": "A", "Email": "a@b", "IsActive": True}],
    "BotDefinition": [
        {
            **dict.fromkeys((field.name for field in AGENT.fields), None),
            "Id": IDS[name],
            "DeveloperName": name,
            "CreatedDate": DATES[name],
            "LastModifiedById": "005000000000001AAA" if name == "Ann" else None,
        }
        for name in DATES
    ],
    "BotVersion": [
        {
            **dict.fromkeys((field.name for field in AGENT_VERSION.fields), None),
            "Id": f"0X900000000000{number}AAA",
            "BotDefinitionId": IDS[name],
            "VersionNumber": number,
            "IsDeleted": number == 2,
            "Status": "Active" if number == 3 else "Inactive",
        }
        for number, name in ((1, "Ann"), (2, "Ann"), (3, "Bea"))
    ],
}


def select(text: str) -> dict[str, object]:
    return Answers(ROWS.__getitem__, root="/s").select(read_query(text))


def names(rest: str) -> list[object]:
    found = select(f"SELECT DeveloperName FROM BotDefinition {rest}")  # noqa: S608 - no SQL
    return [record["DeveloperName"] for record in found["records"]]


def fault(text: str) -> OrgFault:
    with pytest.raises(OrgFault) as raised:
        select(text)
    return raised.value


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("", ["Ann", "Bea", "O'Neil"]),
        ("WHERE developername = 'ANN'", ["Ann"]),
        (r"WHERE DeveloperName = 'o\'neil'", ["O'Neil"]),
        ("WHERE DeveloperName != 'ann'", ["Bea", "O'Neil"]),
        ("WHERE DeveloperName > 'ann' AND DeveloperName <= 'BEA'", ["Bea"]),
        ("WHERE DeveloperName LIKE '%N%'", ["Ann", "O'Neil"]),
        ("WHERE DeveloperName LIKE '_e_'", ["Bea"]),
        ("WHERE DeveloperName LIKE 'a%n%n%n'", []),
        ("WHERE NOT DeveloperName LIKE '%n'", ["Bea", "O'Neil"]),
        ("WHERE DeveloperName IN ('ann', 'bea')", ["Ann", "Bea"]),
        ("WHERE DeveloperName NOT IN ('ann', 'bea')", ["O'Neil"]),
        ("WHERE (DeveloperName = 'Ann' OR DeveloperName = 'Bea') AND CreatedDate = null", ["Ann"]),
        ("WHERE Id = '0Xx00000000000a'", ["Ann"]),
        ("WHERE Id IN ('0Xx00000000000A', '0Xx00000000000aAAA')", ["Ann", "Bea"]),
        ("WHERE CreatedDate >= 2026-11-24", ["O'Neil"]),
        ("WHERE CreatedDate < 2026-11-24T00:00:00+01:00", ["Bea"]),
        ("WHERE CreatedDate < null", []),
        ("WHERE LastModifiedBy.Username = 'a@b'", ["Ann"]),
        ("WHERE Id IN (SELECT BotDefinitionId FROM BotVersion WHERE Status = 'active')", ["Bea"]),
        ("WHERE Id NOT IN (SELECT BotDefinitionId FROM BotVersion)", ["O'Neil"]),
        ("ORDER BY DeveloperName DESC", ["O'Neil", "Bea", "Ann"]),
        ("ORDER BY CreatedDate DESC", ["Ann", "O'Neil", "Bea"]),
        ("ORDER BY CreatedDate ASC NULLS LAST", ["Bea", "O'Neil", "Ann"]),
        ("ORDER BY BotUserId, DeveloperName DESC LIMIT 1 OFFSET 1", ["Bea"]),
        ("LIMIT 0", []),
    ],
)
def test_a_query_finds_what_it_asks_for(rest: str, found: list[str]) -> None:
    assert names(rest) == found


def test_a_record_has_its_fields_its_parent_and_its_children() -> None:
    text = (
        "SELECT developername, LastModifiedBy.Name, (SELECT VersionNumber, BotDefinition.DeveloperName"
        " FROM BotVersions WHERE IsDeleted = false ORDER BY VersionNumber DESC) FROM BotDefinition"
    )
    ann, bea, neil = select(text)["records"]
    assert ann == {
        "attributes": {"type": "BotDefinition", "url": "/s/BotDefinition/0Xx00000000000aAAA"},
        "DeveloperName": "Ann",
        "LastModifiedBy": {"attributes": {"type": "User", "url": "/s/User/005000000000001AAA"}, "Name": "A"},
        "BotVersions": ann["BotVersions"],
    }
    [version] = ann["BotVersions"]["records"]
    assert (version["VersionNumber"], version["BotDefinition"]["DeveloperName"]) == (1, "Ann")
    assert (bea["BotVersions"]["totalSize"], bea["BotVersions"]["done"], neil["BotVersions"]) == (1, True, None)


def test_records_are_counted() -> None:
    assert select("SELECT COUNT() FROM BotVersion WHERE Status = 'Inactive'") == {
        "totalSize": 2,
        "done": True,
        "records": [],
    }
    [counted] = select("SELECT COUNT(Id), COUNT(CreatedDate) dated FROM BotDefinition")["records"]
    assert counted == {"attributes": {"type": "AggregateResult"}, "expr0": 3, "dated": 2}


def test_all_fields_can_be_requested_of_a_few_records() -> None:
    [user] = select("SELECT FIELDS(ALL) FROM User LIMIT 200")["records"]
    assert [*user] == ["attributes", *(field.name for field in USER.fields)]
    assert fault("SELECT FIELDS(ALL) FROM User").code == "MALFORMED_QUERY"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("SELECT Id FROM Account", "INVALID_TYPE", "sObject type 'Account' is not supported."),
        ("SELECT Nope FROM User", "INVALID_FIELD", "No such column 'Nope' on entity 'User'."),
        ("SELECT Id FROM User WHERE Nope = 1", "INVALID_FIELD", "No such column 'Nope' on entity 'User'."),
        ("SELECT Id FROM User ORDER BY Nope", "INVALID_FIELD", "No such column 'Nope' on entity 'User'."),
        ("SELECT Owner.Name FROM User", "INVALID_FIELD", "Didn't understand relationship 'Owner' in field path."),
        ("SELECT (SELECT Id FROM Bots) FROM User", "INVALID_TYPE", "Didn't understand relationship 'Bots' in FROM"),
        ("SELECT (SELECT COUNT() FROM BotVersions) FROM BotDefinition", "MALFORMED_QUERY", "COUNT() cannot be used"),
        ("SELECT Name, COUNT(Id) FROM User", "MALFORMED_QUERY", "Fields must be grouped or aggregated"),
        ("SELECT Id FROM User WHERE Name = 1", "INVALID_FIELD", "must be of type string and should be enclosed"),
        ("SELECT Id FROM BotVersion WHERE VersionNumber = '1'", "INVALID_FIELD", "of type int and should not be encl"),
        ("SELECT Id FROM BotVersion WHERE CreatedDate = 2026-13-45", "INVALID_FIELD", "must be of type datetime"),
        ("SELECT Id FROM User WHERE Id LIKE '005%'", "INVALID_FIELD", "LIKE cannot be used with the id field 'Id'"),
        ("SELECT Id FROM User WHERE Id IN (SELECT COUNT() FROM User)", "MALFORMED_QUERY", "must have one field"),
    ],
)
def test_what_a_query_names_must_exist_and_fit(text: str, code: str, message: str) -> None:
    found = fault(text)
    assert found.code == code
    assert message in str(found)


def test_errors_say_what_can_be_asked() -> None:
    assert fault("SELECT Id FROM X").actions == ("This org has BotDefinition, BotVersion, Organization, User.",)
    hint = "Components are not records. List them: sf org list metadata --metadata-type AiEvaluationDefinition"
    assert fault("SELECT Id FROM aievaluationdefinition").actions == (hint,)
    assert fault("SELECT X FROM User").actions == ("User has the fields Id, Username, Name, Email, IsActive.",)
    assert fault("SELECT (SELECT Id FROM X) FROM BotDefinition").actions == (
        "BotDefinition has the relationships BotVersions.",
    )


def test_a_pattern_with_many_wildcards_ends_soon() -> None:
    pattern, text = "%a" * 2000 + "b", "a" * 4000
    rows = {"User": [{**ROWS["User"][0], "Name": text}]}
    query = read_query(f"SELECT COUNT() FROM User WHERE Name LIKE '{pattern}'")  # noqa: S608 - no SQL
    assert Answers(rows.__getitem__, root="/s").select(query)["totalSize"] == 0


def test_columns_have_types_and_those_of_relations_are_nested() -> None:
    text = "SELECT id, LastModifiedBy.Name, (SELECT VersionNumber, IsDeleted FROM BotVersions) FROM BotDefinition"
    found = Answers(ROWS.__getitem__, root="/s").columns(read_query(text))
    assert (found["entityName"], found["idSelected"], found["keyPrefix"]) == ("BotDefinition", True, "0Xx")
    own, parent, children = found["columnMetadata"]
    assert (own["columnName"], own["apexType"], own["joinColumns"]) == ("Id", "Id", ())
    assert (parent["columnName"], parent["joinColumns"][0]["columnName"]) == ("LastModifiedBy", "Name")
    assert (children["columnName"], children["aggregate"]) == ("BotVersions", True)
    assert [column["apexType"] for column in children["joinColumns"]] == ["Integer", "Boolean"]


def test_a_count_is_a_column() -> None:
    text = "SELECT COUNT(Id) many, COUNT(Name) FROM User"
    one, two = Answers(ROWS.__getitem__, root="/s").columns(read_query(text))["columnMetadata"]
    assert (one["columnName"], one["displayName"], two["columnName"]) == ("many", "COUNT(Id)", "expr1")


def test_a_record_is_found_by_id() -> None:
    answers = Answers(ROWS.__getitem__, root="/s")
    assert answers.record(AGENT, "0Xx00000000000A")["DeveloperName"] == "Bea"
    assert [*answers.record(AGENT, IDS["Ann"], ("developerName",))] == ["attributes", "DeveloperName"]
    assert answers.record(AGENT, "0Xx") is None


def test_children_count_towards_the_size_of_a_page() -> None:
    query = "SELECT Id, (SELECT Id FROM BotVersions) FROM BotDefinition ORDER BY DeveloperName"
    answers = Answers(ROWS.__getitem__, root="/s")
    first = answers.select(read_query(query), Page(query, size=3), url="/q")
    page = read_locator(first["nextRecordsUrl"].removeprefix("/q/"))
    last = answers.select(read_query(page.query), page)
    assert [len(first["records"]), len(last["records"])] == [1, 2]
    assert (first["done"], last["done"], first["totalSize"]) == (False, True, 3)
