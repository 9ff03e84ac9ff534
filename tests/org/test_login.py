from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import orjson
import pytest

from evalmeta.model.login import ADMIN
from evalmeta.model.settings import PythonSubject, Settings
from evalmeta.org.app import create_app
from evalmeta.org.organization import ORG_ID
from org.parts import URL

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization

DATA = "/services/data/v66.0"
ADMIN_PATH = f"/services/data/v51.0/sobjects/User/{ADMIN.id}"
IDENTITY = f"/id/{ORG_ID}/{ADMIN.id}"
GUARDED = (
    "/services/oauth2/userinfo",
    IDENTITY,
    DATA,
    f"{DATA}/limits",
    ADMIN_PATH,
    f"{DATA}/query?q=SELECT+Id+FROM+User",
    f"{DATA}/tooling/query?q=SELECT+Id+FROM+User",
    f"{DATA}/tooling/sobjects/SourceMember/describe",
)


def get(org: Organization, path: str, *, token: str | None = None) -> tuple[int, object]:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(org))
        async with httpx.AsyncClient(transport=transport) as http:
            return await http.get(
                URL + path, headers={"authorization": f"Bearer {org.token if token is None else token}"}
            )

    response = asyncio.run(go())
    assert response.headers["content-type"] == "application/json;charset=UTF-8"
    return response.status_code, orjson.loads(response.content)


def query(org: Organization, text: str, *, api: str = DATA) -> tuple[int, object]:
    return get(org, f"{api}/query?q={quote(text)}")


def records(org: Organization, text: str) -> list[dict[str, object]]:
    status, found = query(org, text)
    assert (status, found["done"], found["totalSize"]) == (200, True, len(found["records"]))
    return found["records"]


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("token", ["", "00D000000000001!wrong", "00D000000000001!0123456789ab.wrong"])
def test_without_a_valid_token_every_call_is_refused(org: Organization, path: str, token: str) -> None:
    error = {"message": "Session expired or invalid", "errorCode": "INVALID_SESSION_ID"}
    assert get(org, path, token=token) == (401, [error])


def test_expired_and_revoked_tokens_get_the_same_error(org: Organization) -> None:
    good, expired, revoked = (org.new_token(ADMIN, now=0, expires=end) for end in (1e11, 1, 1e11))
    org.users.revoke(revoked.partition("!")[2].partition(".")[0], now=1)
    assert [get(org, "/services/oauth2/userinfo", token=each)[0] for each in (good, expired, revoked)] == [
        200,
        401,
        401,
    ]


def test_versions_need_no_token_and_are_in_order(org: Organization) -> None:
    status, versions = get(org, "/services/data", token="")
    assert (status, [each["version"] for each in versions]) == (200, ["63.0", "64.0", "65.0", "66.0", "67.0"])
    assert versions[3] == {"label": "Spring '26", "url": DATA, "version": "66.0", "engine": "evalmeta"}
    assert [each["label"] for each in versions[:3]] == ["Spring '25", "Summer '25", "Winter '26"]


@pytest.mark.parametrize("path", ["/services/oauth2/userinfo", "//services//oauth2/userinfo", IDENTITY])
def test_the_caller_gets_its_identity(org: Organization, path: str) -> None:
    ci = org.users.add("ci@evalmeta.local", "ci", now=0)
    assert get(org, path)[1] == {
        "id": f"{URL}{IDENTITY}",
        "sub": f"{URL}{IDENTITY}",
        "asserted_user": True,
        "user_id": ADMIN.id,
        "organization_id": "00D000000000001EAA",
        "username": ADMIN.username,
        "preferred_username": ADMIN.username,
        "display_name": ADMIN.name,
        "name": ADMIN.name,
        "email": ADMIN.username,
        "user_type": "STANDARD",
        "active": True,
    }
    theirs = org.new_token(ci, now=0, expires=1e11)
    assert get(org, "/services/oauth2/userinfo", token=theirs)[1]["user_id"] == ci.id


def test_other_users_are_found_by_id_only(org: Organization) -> None:
    ci = org.users.add("ci@evalmeta.local", "ci", now=0)
    assert get(org, f"/id/{ORG_ID}/{ci.id}")[0] == 404


def test_a_user_is_found_as_the_sf_cli_asks(org: Organization) -> None:
    status, found = get(org, ADMIN_PATH)
    assert (status, found["Username"], found["attributes"]["url"]) == (200, ADMIN.username, ADMIN_PATH)


@pytest.mark.parametrize(
    "path",
    [ADMIN_PATH[:-4], ADMIN_PATH.replace("v51.0", "v50.0"), ADMIN_PATH.replace("51", "68"), DATA.replace("66", "51")],
)
def test_an_unknown_resource_is_404(org: Organization, path: str) -> None:
    error = {"message": "The requested resource does not exist", "errorCode": "NOT_FOUND"}
    assert get(org, path) == (404, [error])


def test_resources_are_at_the_listed_addresses(org: Organization) -> None:
    found = get(org, f"{DATA}/")[1]
    assert (found["query"], found["identity"]) == (f"{DATA}/query", f"{URL}{IDENTITY}")
    assert get(org, found["limits"]) == (200, {})
    assert get(org, found["identity"].removeprefix(URL))[0] == 200


def test_the_organization_answers_the_query_of_every_command(org: Organization) -> None:
    fields = "Name, InstanceName, IsSandbox, TrialExpirationDate, NamespacePrefix, OrganizationType"
    [record] = records(org, f"SELECT {fields} FROM Organization")  # noqa: S608 - no SQL
    assert list(record) == ["attributes", *fields.split(", ")]
    assert (record["IsSandbox"], record["NamespacePrefix"]) == (False, None)


def test_users_are_found(org: Organization) -> None:
    [record] = records(org, f"SELECT Id FROM User WHERE Username = '{ADMIN.username}'")  # noqa: S608 - no SQL
    assert record["Id"] == ADMIN.id


def test_agents_are_those_that_are_bound_each_with_one_version(org: Organization) -> None:
    desk = PythonSubject(adapter="python", target="desk:answer")
    bound = replace(org, settings=lambda: Settings(subjects={"Service_Agent": desk, "Desk": desk}))
    [agent] = records(bound, "SELECT Id FROM BotDefinition WHERE DeveloperName = 'Service_Agent'")
    assert agent["Id"] == "0Xx000000000002CAA"
    where = f"WHERE BotDefinitionId = '{agent['Id']}' ORDER BY VersionNumber DESC LIMIT 1"
    [version] = records(bound, f"SELECT Id FROM BotVersion {where}")  # noqa: S608 - no SQL
    assert version["Id"].startswith("0X9")
    assert records(org, "SELECT Id FROM BotDefinition") == []


@pytest.mark.parametrize(
    ("text", "api", "name"),
    [
        ("SELECT Id FROM ScratchOrgInfo limit 1", "/services/data/v51.0", "ScratchOrgInfo"),
        ("SELECT Id FROM Account WHERE a IN ('b')", DATA, "Account"),
        ("SELECT Id, Metadata FROM StandardValueSet WHERE MasterLabel = 'A'", f"{DATA}/tooling", "StandardValueSet"),
    ],
)
def test_an_unsupported_object_is_refused(org: Organization, text: str, api: str, name: str) -> None:
    error = {"message": f"sObject type '{name}' is not supported.", "errorCode": "INVALID_TYPE"}
    assert query(org, text, api=api) == (400, [error])


def test_columns_of_a_query_can_be_requested(org: Organization) -> None:
    status, found = get(org, f"{DATA}/query?q=SELECT+Id,Name+FROM+User&columns=true")
    assert (status, [each["columnName"] for each in found["columnMetadata"]]) == (200, ["Id", "Name"])


def test_a_query_of_another_form_is_refused(org: Organization) -> None:
    status, [error] = query(org, "SELECT Id FROM User WHERE Name LIKE 'a%'")
    assert (status, error["errorCode"]) == (400, "MALFORMED_QUERY")


def test_the_tooling_api_has_no_source_to_track(org: Organization) -> None:
    status, [error] = get(org, f"/{DATA}/tooling/sobjects/SourceMember/describe")
    assert (status, error["errorCode"]) == (404, "NOT_FOUND")
