from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import pytest

from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.model.settings import Settings
from evalmeta.org.app import create_app
from evalmeta.org.organization import Organization
from evalmeta.org_clients.answers import Page
from evalmeta.store.database import delete_contents, open_database
from org.parts import URL, definition
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = "/services/data/v66.0"
DESK = PythonSubject(adapter="python", target="desk:answer")
AGENTS = "SELECT DeveloperName, (SELECT Id, Status, VersionNumber FROM BotVersions) FROM BotDefinition"


@pytest.fixture
def bound(org: Organization) -> Organization:
    """An org with a bound agent, an agent that only a definition names, and a bound prompt template."""
    prompt = definition("Drafts", subject="Draft_Reply").replace(b"AiEvaluation", b"AiTesting")
    prompt = prompt.replace(b">AGENT<", b">PROMPT<")
    with org.database.transaction():
        org.components.save(EVALUATION_DEFINITION, {"Orders": definition("Orders", subject="Returns")}, now=1)
        org.components.save(TESTING_DEFINITION, {"Drafts": prompt}, now=1)
    return replace(org, settings=lambda: Settings(subjects={"Service_Agent": DESK, "Draft_Reply": DESK}))


def send(
    org: Organization, path: str, *, token: str | None = None, content: bytes | None = None, **headers: str
) -> httpx.Response:
    async def go() -> httpx.Response:
        transport, sent = httpx.ASGITransport(app=create_app(org)), {"authorization": f"Bearer {token or org.token}"}
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            return await http.request("POST" if content else "GET", path, content=content, headers=sent | headers)

    return asyncio.run(go())


def query(org: Organization, text: str, api: str = "query") -> list[dict[str, object]]:
    reply = send(org, f"{DATA}/{api}?q={quote(text)}")
    assert reply.status_code == 200, reply.text
    return reply.json()["records"]


def states(org: Organization) -> dict[str, str]:
    return {agent["DeveloperName"]: agent["BotVersions"]["records"][0]["Status"] for agent in query(org, AGENTS)}


def activate(org: Organization, agent: str, status: str) -> dict[str, object]:
    [[version]] = [
        record["BotVersions"]["records"] for record in query(org, AGENTS) if record["DeveloperName"] == agent
    ]
    path = f"{DATA}/connect/bot-versions/{version['Id']}/activation"
    return send(org, path, content=f'{{"status": "{status}"}}'.encode()).json()


@pytest.mark.parametrize("api", ["query", "queryAll", "tooling/query"])
def test_agents_are_those_that_are_bound_or_named_by_definitions(bound: Organization, api: str) -> None:
    found = query(bound, "SELECT DeveloperName, Id FROM BotDefinition ORDER BY DeveloperName", api)
    assert [agent["DeveloperName"] for agent in found] == ["Returns", "Service_Agent"]
    assert {(agent["Id"][:3], len(agent["Id"])) for agent in found} == {("0Xx", 18)}


def test_an_agent_keeps_its_id_when_others_are_bound(bound: Organization) -> None:
    [before] = query(bound, "SELECT Id FROM BotDefinition WHERE DeveloperName = 'Service_Agent'")
    more = replace(bound, settings=lambda: Settings(subjects={"A": DESK, "Service_Agent": DESK}))
    assert before in query(more, "SELECT Id FROM BotDefinition")


def test_an_agent_is_active_if_it_is_bound(bound: Organization) -> None:
    assert states(bound) == {"Returns": "Inactive", "Service_Agent": "Active"}


def test_a_bound_agent_is_deactivated_and_activated_again(bound: Organization) -> None:
    assert activate(bound, "Service_Agent", "Inactive") == {"success": True, "isActivated": False, "messages": []}
    assert states(bound)["Service_Agent"] == "Inactive"
    by = "SELECT LastModifiedBy.Username FROM BotVersion WHERE LastModifiedDate != null"
    assert query(bound, by)[0]["LastModifiedBy"]["Username"] == ADMIN.username
    assert activate(bound, "Service_Agent", "active") == {"success": True, "isActivated": True, "messages": []}
    assert states(bound)["Service_Agent"] == "Active"


def test_an_empty_org_has_forgotten_what_was_deactivated(bound: Organization) -> None:
    activate(bound, "Service_Agent", "Inactive")
    delete_contents(bound.database, is_ours=lambda _: True)
    assert states(bound) == {"Draft_Reply": "Active", "Service_Agent": "Active"}


def test_an_agent_without_an_adapter_is_not_activated(bound: Organization) -> None:
    reply = activate(bound, "Returns", "Active")
    assert (reply["success"], reply["isActivated"]) == (False, False)
    assert "no adapter is bound to the agent 'Returns'" in reply["messages"][0]
    assert "[subjects.Returns]" in reply["messages"][0]


@pytest.mark.parametrize(("version", "sent", "status"), [("0X9", "Active", 404), ("0X9", "On", 400)])
def test_a_wrong_activation_is_refused(bound: Organization, version: str, sent: str, status: int) -> None:
    path = f"{DATA}/connect/bot-versions/{version}/activation"
    assert send(bound, path, content=f'{{"status": "{sent}"}}'.encode()).status_code == status


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT Id FROM ScratchOrgInfo limit 1", "INVALID_TYPE"),
        ("SELECT Id, Metadata FROM StandardValueSet WHERE MasterLabel = 'A'", "INVALID_TYPE"),
        ("SELECT Nope FROM User", "INVALID_FIELD"),
        ("SELECT Id FORM User", "MALFORMED_QUERY"),
        (f"SELECT Id FROM User WHERE {'NOT ' * 60} a = 1", "QUERY_TOO_COMPLICATED"),  # noqa: S608 - no SQL
    ],
)
@pytest.mark.parametrize("api", ["/services/data/v51.0/query", f"{DATA}/queryAll", f"{DATA}/tooling/query"])
def test_errors_are_those_of_salesforce(org: Organization, text: str, code: str, api: str) -> None:
    reply = send(org, f"{api}?q={quote(text)}")
    assert (reply.status_code, reply.json()[0]["errorCode"]) == (400, code)


def test_an_error_says_what_can_be_asked(org: Organization) -> None:
    [error] = send(org, f"{DATA}/query?q=SELECT+Id+FROM+Account").json()
    objects = "BotDefinition, BotVersion, Organization, User"
    assert error["message"] == f"sObject type 'Account' is not supported.\nThis org has {objects}."


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organization]:
    """An org with 4,001 agents."""
    folder = tmp_path_factory.mktemp("org")
    subjects = {f"Agent_{number:04}": DESK for number in range(4_001)}
    with open_database(store_in(folder / "state")) as database:
        yield Organization(database, folder, lambda: Settings(subjects=subjects), lambda _: None)


@pytest.mark.parametrize("api", ["queryAll", "tooling/query"])
def test_a_query_has_pages_of_2000_records(crowded: Organization, api: str) -> None:
    text = "SELECT DeveloperName FROM BotDefinition ORDER BY DeveloperName DESC"
    pages = [send(crowded, f"{DATA}/{api}?q={quote(text)}").json()]
    while not pages[-1]["done"]:
        pages.append(send(crowded, pages[-1]["nextRecordsUrl"]).json())
    assert [len(page["records"]) for page in pages] == [2_000, 2_000, 1]
    assert {page["totalSize"] for page in pages} == {4_001}
    found = [record["DeveloperName"] for page in pages for record in page["records"]]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4_001
    assert pages[0]["nextRecordsUrl"].startswith(f"{DATA}/{api.replace('All', '')}/")
    assert "nextRecordsUrl" not in pages[-1]


def test_the_batch_size_of_a_query_is_that_of_its_next_pages(crowded: Organization) -> None:
    path = f"{DATA}/query?q=SELECT+Id+FROM+BotVersion+LIMIT+600"
    reply = send(crowded, path, **{"Sforce-Query-Options": "batchSize=250"}).json()
    assert (len(reply["records"]), reply["totalSize"]) == (250, 600)
    assert len(send(crowded, reply["nextRecordsUrl"]).json()["records"]) == 250
    larger = send(crowded, reply["nextRecordsUrl"], **{"Sforce-Query-Options": "batchSize=300"}).json()
    assert len(larger["records"]) == 300
    assert send(crowded, larger["nextRecordsUrl"]).json()["done"] is True


@pytest.mark.parametrize("locator", ["01gRO0000016PIAYA2-2000", Page("SELECT Id FROM User", 2_000).locator])
def test_an_unknown_locator_is_refused_as_in_salesforce(org: Organization, locator: str) -> None:
    reply = send(org, f"{DATA}/query/{locator}")
    error = {"message": "invalid query locator", "errorCode": "INVALID_QUERY_LOCATOR"}
    assert (reply.status_code, reply.json()) == (400, [error])


def test_columns_of_a_query_can_be_requested(org: Organization) -> None:
    reply = send(org, f"{DATA}/query?q=SELECT+Id,Name+FROM+User&columns=true").json()
    assert [column["columnName"] for column in reply["columnMetadata"]] == ["Id", "Name"]


@pytest.mark.parametrize("root", [DATA, f"{DATA}/tooling"])
def test_objects_are_listed_and_described(org: Organization, root: str) -> None:
    listed = send(org, f"{root}/sobjects").json()["sobjects"]
    assert [summary["name"] for summary in listed] == ["BotDefinition", "BotVersion", "Organization", "User"]
    for summary in listed:
        description = send(org, summary["urls"]["describe"]).json()
        names = [field["name"] for field in description["fields"]]
        rows = query(org, f"SELECT {','.join(names)} FROM {summary['name']}")  # noqa: S608 - no SQL
        assert all([*row] == ["attributes", *names] for row in rows)
        assert send(org, summary["urls"]["sobject"]).json()["objectDescribe"] == summary
    [children] = send(org, f"{root}/sobjects/botdefinition/describe").json()["childRelationships"]
    assert (children["relationshipName"], children["childSObject"]) == ("BotVersions", "BotVersion")


def test_a_record_is_found_by_the_id_that_a_query_returned(bound: Organization) -> None:
    [agent] = query(bound, "SELECT Id, DeveloperName FROM BotDefinition WHERE DeveloperName = 'Returns'")
    record = send(bound, agent["attributes"]["url"]).json()
    assert (record["Id"], record["MasterLabel"]) == (agent["Id"], "Returns")
    assert send(bound, f"{agent['attributes']['url'][:-3]}?fields=Id,DeveloperName").json() == agent


def test_the_org_itself_has_the_fields_that_clients_read(org: Organization) -> None:
    fields = "Id, Name, OrganizationType, IsSandbox, InstanceName, NamespacePrefix, TrialExpirationDate, CreatedDate"
    [row] = query(org, f"SELECT {fields}, LanguageLocaleKey, CreatedBy.Username FROM Organization")  # noqa: S608 - no SQL
    assert (row["OrganizationType"], row["IsSandbox"], row["NamespacePrefix"]) == ("Developer Edition", False, None)
    assert row.pop("CreatedBy")["Username"] == ADMIN.username
    assert row.items() <= send(org, f"{DATA}/sobjects/Organization/{row['Id'][:15]}").json().items()


@pytest.mark.parametrize("path", ["sobjects/Account", "sobjects/Account/describe", "sobjects/User/005", "sobjects/X/1"])
def test_what_the_org_does_not_have_is_404(org: Organization, path: str) -> None:
    error = {"message": "The requested resource does not exist", "errorCode": "NOT_FOUND"}
    reply = send(org, f"{DATA}/{path}")
    assert (reply.status_code, reply.json()) == (404, [error])


def test_records_cannot_be_changed(org: Organization) -> None:
    reply = send(org, f"{DATA}/sobjects/User", content=b"{}")
    assert (reply.status_code, reply.json()[0]["errorCode"]) == (405, "METHOD_NOT_ALLOWED")
