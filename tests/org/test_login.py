from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import orjson
import pytest

from evalmeta.model.login import ADMIN
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
    f"{DATA}/queryAll?q=SELECT+Id+FROM+User",
    f"{DATA}/sobjects",
    f"{DATA}/sobjects/User",
    f"{DATA}/sobjects/User/describe",
    "/services/oauth2/singleaccess",
    "/agentforce/bootstrap/nameduser",
)


def get(org: Organization, path: str, *, token: str | None = None, **headers: str) -> tuple[int, object]:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(org))
        async with httpx.AsyncClient(transport=transport) as http:
            sent = {"authorization": f"Bearer {org.token if token is None else token}", **headers}
            return await http.get(URL + path, headers=sent)

    response = asyncio.run(go())
    assert response.headers["content-type"] == "application/json;charset=UTF-8"
    return response.status_code, orjson.loads(response.content)


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("token", ["", "00D000000000001!wrong", "00D000000000001!0123456789ab.wrong"])
def test_without_a_valid_token_every_call_is_refused(org: Organization, path: str, token: str) -> None:
    error = {"message": "Session expired or invalid", "errorCode": "INVALID_SESSION_ID"}
    assert get(org, path, token=token) == (401, [error])


def test_expired_and_revoked_tokens_get_the_same_error(org: Organization) -> None:
    good, expired, revoked = (org.new_token(ADMIN, now=0, expires=end) for end in (1e11, 1, 1e11))
    org.users.revoke(revoked.partition("!")[2].partition(".")[0], now=1)
    assert [get(org, "/services/oauth2/userinfo", token=token)[0] for token in (good, expired, revoked)] == [
        200,
        401,
        401,
    ]


def test_a_token_of_a_restored_store_is_refused_with_what_to_do(org: Organization) -> None:
    token = org.new_token(ADMIN, now=0, expires=1e11)
    org.database.execute("UPDATE access_token SET signature = NULL")
    message = "This token was created for another folder or by another user; create a new one: evalmeta org token"
    error = {"message": message, "errorCode": "INVALID_SESSION_ID"}
    assert get(org, "/services/oauth2/userinfo", token=token) == (401, [error])
    assert get(org, "/services/oauth2/userinfo", token=f"{token}x")[1] != [error]


def test_versions_need_no_token_and_are_in_order(org: Organization) -> None:
    status, versions = get(org, "/services/data", token="")
    assert (status, [version["version"] for version in versions]) == (
        200,
        ["63.0", "64.0", "65.0", "66.0", "67.0", "68.0"],
    )
    assert versions[3] == {"label": "Spring '26", "url": DATA, "version": "66.0", "engine": "evalmeta"}
    assert [version["label"] for version in versions[:3]] == ["Spring '25", "Summer '25", "Winter '26"]


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


@pytest.mark.parametrize(
    "path",
    [ADMIN_PATH[:-4], ADMIN_PATH.replace("v51.0", "v50.0"), ADMIN_PATH.replace("51", "69"), DATA.replace("66", "51")],
)
def test_an_unknown_resource_is_404(org: Organization, path: str) -> None:
    error = {"message": "The requested resource does not exist", "errorCode": "NOT_FOUND"}
    assert get(org, path) == (404, [error])


@pytest.mark.parametrize("token", ["eyJh.eyJh.xx", "eyJh.eyJh.!", "eyJh.eyJh._w", "a.b.c"])
def test_what_is_like_a_jwt_but_has_no_token_is_refused(org: Organization, token: str) -> None:
    assert get(org, "/services/oauth2/userinfo", token=token)[0] == 401
