"""What clients ask for after a login."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.routing import Route

from evalmeta.model.login import ADMIN
from evalmeta.org.app import add_registered_routes, create_app
from evalmeta.org_clients.handlers import OPENAPI_PATH, describe
from org.parts import URL, definition, deploy, opened, package
from org.test_login import ADMIN_PATH, DATA, IDENTITY, get

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.routing import BaseRoute

    from evalmeta.org.organization import Organization


def query(org: Organization, text: str, *, api: str = DATA) -> tuple[int, object]:
    return get(org, f"{api}/query?q={quote(text)}")


def records(org: Organization, text: str) -> list[dict[str, object]]:
    status, found = query(org, text)
    assert (status, found["done"], found["totalSize"]) == (200, True, len(found["records"]))
    return found["records"]


def test_a_user_is_found_as_the_sf_cli_asks(org: Organization) -> None:
    status, found = get(org, ADMIN_PATH)
    assert (status, found["Username"], found["attributes"]["url"]) == (200, ADMIN.username, ADMIN_PATH)


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


def test_the_tooling_api_has_no_source_to_track(org: Organization) -> None:
    status, [error] = get(org, f"/{DATA}/tooling/sobjects/SourceMember/describe")
    assert (status, error["errorCode"]) == (404, "NOT_FOUND")


def test_a_named_user_gets_a_token_like_a_jwt_that_ends_with_the_session(org: Organization) -> None:
    token = org.new_token(ADMIN, now=0, expires=1e11)
    status, found = get(org, "/agentforce/bootstrap/nameduser", token="", cookie=f"sid={token}")
    issued = found["access_token"]
    claims = orjson.loads(base64.urlsafe_b64decode(issued.split(".")[1] + "=="))
    assert (status, claims["sub"], claims["iss"]) == (200, ADMIN.id, f"{URL}/")
    assert {"sfdc_app_id", "scope", "exp", "iat"} < {*claims}
    assert get(org, "/services/oauth2/userinfo", token=issued)[0] == 200
    org.users.revoke(token.partition("!")[2].partition(".")[0], now=1)
    assert get(org, "/services/oauth2/userinfo", token=issued)[0] == 401


def test_a_frontdoor_address_names_the_page_to_show(org: Organization) -> None:
    token = org.new_token(ADMIN, now=0, expires=1e11)
    tokens = len(org.users.list_tokens())
    status, found = get(org, "/services/oauth2/singleaccess?redirect_uri=%2Fview%2Fruns", token=token)
    address = urlsplit(found["frontdoor_uri"])
    assert (status, f"{address.scheme}://{address.netloc}{address.path}") == (200, f"{URL}/secur/frontdoor.jsp")
    fields = parse_qs(address.query)
    assert fields["startURL"] == ["/view/runs"]
    assert get(org, "/services/oauth2/userinfo", token=fields["otp"][0])[0] == 401
    assert len(org.users.list_tokens()) == tokens


PARAMETER = re.compile(r"\{(\w+)\}")
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
# What the org has, what it nearly has, and anything.
VALUES = ANY | st.sampled_from(
    [
        *("68.0", "66.0", "v66.0", "ai-evaluations", "ai-testing", "User", "BotDefinition", "Organization"),
        *("0Af000000000001AAA", "4KB000000000001GAA", "true", "1-1", "SELECT Id FROM User"),
        "SELECT COUNT() FROM BotDefinition WHERE Id LIKE '%'",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(VALUES, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *("aiEvaluationDefinitionName", "runOptions", "iterations", "runs", "tests", "steps", "status"),
        *("validatedDeployRequestId", "deployResult", "asDeployed", "orgUrl"),
    ]
)
QUERY = st.sampled_from(["q", "columns", "after", "includeDetails", "fields", "redirect_uri"])


@pytest.fixture(scope="module")
def org(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organization]:
    with opened(tmp_path_factory.mktemp("org")) as found:
        deploy(found, package({"Orders": definition("Orders")}))
        yield found


def send(org: Organization, method: str, path: str, **request: object) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(org), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            return await http.request(method, path, **request)

    return asyncio.run(go())


def every_route(org: Organization | None) -> list[BaseRoute]:
    app = create_app(org)
    add_registered_routes(app)
    return app.routes


def operations() -> list[str]:
    paths = describe(every_route(None))["paths"]
    return [f"{method.upper()} {path}" for path, found in paths.items() for method in found]


def test_every_rest_route_is_described_and_published_without_a_token(org: Organization) -> None:
    published = send(org, "GET", OPENAPI_PATH).json()
    routes = {route.path for route in every_route(org) if isinstance(route, Route)}
    assert {*published["paths"]} == {path for path in routes if not path.startswith("/services/Soap/")}
    for operation in (operation for path in published["paths"].values() for operation in path.values()):
        assert operation["summary"].endswith(".")
        names = {parameter["name"] for parameter in operation["parameters"]}
        assert {*PARAMETER.findall(operation["operationId"])} <= names


@pytest.mark.parametrize("operation", operations())
def test_without_a_token_nothing_but_the_versions_is_answered(org: Organization, operation: str) -> None:
    method, path = operation.split()
    reply = send(org, method, PARAMETER.sub("66.0", path), json={})
    expected = {200} if path in {"/services/data", OPENAPI_PATH} else {401, 404}
    assert reply.status_code in expected, reply.text
    if reply.status_code >= 400:
        ERRORS[operation].validate(reply.json())


def error_validators() -> dict[str, Draft202012Validator]:
    """What the description says of the errors of each operation."""
    description = describe(every_route(None))
    return {
        f"{method.upper()} {path}": Draft202012Validator(
            operation["responses"]["4XX"]["content"]["application/json"]["schema"]
            | {"components": description["components"]}
        )
        for path, found in description["paths"].items()
        for method, operation in found.items()
    }


ERRORS = error_validators()


@pytest.mark.slow
@pytest.mark.parametrize("operation", operations())
@given(data=st.data())
def test_any_request_gets_an_answer_in_salesforces_form(org: Organization, operation: str, data: st.DataObject) -> None:
    method, path = operation.split()
    path = path.replace("{version}", "66.0").replace("{run_path}", "ai-evaluations")
    address = PARAMETER.sub(lambda match: quote(data.draw(VALUES, match[1]), safe=""), path)
    params = data.draw(st.dictionaries(QUERY, VALUES, max_size=3), "query")
    body = data.draw(JSON | st.dictionaries(KEYS | VALUES, JSON, max_size=3), "body")
    content = b"" if method == "GET" else orjson.dumps(body)
    headers = {"authorization": f"Bearer {org.token}"}
    reply = send(org, method, address, params=params, headers=headers, content=content)
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400:
        ERRORS[operation].validate(reply.json())
