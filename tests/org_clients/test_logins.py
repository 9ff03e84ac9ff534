"""What clients ask for after a login."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

import orjson

from evalmeta.model.login import ADMIN
from org.parts import URL
from org.test_login import ADMIN_PATH, DATA, IDENTITY, get

if TYPE_CHECKING:
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
    status, found = get(org, "/services/oauth2/singleaccess?redirect_uri=%2Fview%2Fruns", token=token)
    address = urlsplit(found["frontdoor_uri"])
    assert (status, f"{address.scheme}://{address.netloc}{address.path}") == (200, f"{URL}/secur/frontdoor.jsp")
    fields = parse_qs(address.query)
    assert fields["startURL"] == ["/view/runs"]
    assert get(org, "/services/oauth2/userinfo", token=fields["otp"][0])[0] == 401
    assert len(org.users.list_tokens()) == 1
