"""Requests of a login: the caller's identity, the API versions, and a few queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.errors import OrgFault
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, ApiVersion
from evalmeta.org.handlers.rest import authenticated, json_reply
from evalmeta.org.organization import ORG_ID
from evalmeta.protocol.oauth import ENGINE
from evalmeta.protocol.soql import columns_of, object_of, read_query, select
from evalmeta.store.database import with_checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization


_SEASONS: Final = ("Spring", "Summer", "Winter")
# The sf CLI always uses this version to ask for the user, and whether the org is a Dev Hub.
_LOGIN_API_VERSION: Final = ApiVersion(51)


async def get_versions(_: Request) -> Response:
    """List the API versions, without authentication."""
    versions = [ApiVersion(major) for major in range(OLDEST_API_VERSION.major, NEWEST_API_VERSION.major + 1)]
    return json_reply(
        [
            {"label": _label(each), "url": f"/services/data/v{each}", "version": str(each), "engine": ENGINE}
            for each in versions
        ]
    )


@authenticated()
async def get_identity(request: Request, _: Organization, user: User) -> Response:
    """Return the caller's identity, with the keys of OpenID Connect's userinfo and of Salesforce's identity."""
    if request.path_params.get("user_id", user.id) != user.id:
        raise _not_found()
    return json_reply(
        {
            "id": _identity_url(request, user),
            "sub": _identity_url(request, user),
            "asserted_user": True,
            "user_id": user.id,
            "organization_id": ORG_ID,
            "username": user.username,
            "preferred_username": user.username,
            "display_name": user.name,
            "name": user.name,
            "email": user.username,
            "user_type": "STANDARD",
            "active": True,
        }
    )


@authenticated()
async def get_resources(request: Request, _: Organization, user: User) -> Response:
    """List the resources of an API version."""
    root = f"/services/data/v{request.path_params['version']}"
    names = ("tooling", "metadata", "query", "sobjects", "limits")
    return json_reply({**{name: f"{root}/{name}" for name in names}, "identity": _identity_url(request, user)})


@authenticated(oldest=_LOGIN_API_VERSION)
async def get_user(request: Request, org: Organization, _: User) -> Response:
    """Return a user by record id."""
    user = org.users.get(request.path_params["user_id"])
    if user is None:
        raise _not_found()
    url = f"/services/data/v{request.path_params['version']}/sobjects/User/{user.id}"
    return json_reply({"attributes": {"type": "User", "url": url}, **_user_row(user)})


@authenticated(oldest=_LOGIN_API_VERSION)
async def get_query(request: Request, org: Organization, _: User) -> Response:
    """Answer a query about the org, its users or its agents, or describe the query's columns."""
    text = request.query_params.get("q", "")
    found = _OBJECTS.get(object_of(text).casefold())
    if found is None:
        raise _unsupported(object_of(text))
    name, rows = found
    reply = columns_of if request.query_params.get("columns", "").casefold() == "true" else select
    return json_reply(reply(read_query(text), rows(org), name=name))


@authenticated(oldest=_LOGIN_API_VERSION)
async def get_tooling_query(request: Request, _: Organization, __: User) -> Response:
    """Refuse a Tooling API query: the org has no Tooling API objects."""
    raise _unsupported(object_of(request.query_params.get("q", "")))


@authenticated()
async def get_describe(_: Request, __: Organization, ___: User) -> Response:
    """Refuse to describe a Tooling API object; without SourceMember the sf CLI tracks no source."""
    raise _not_found()


@authenticated()
async def get_limits(_: Request, __: Organization, ___: User) -> Response:
    """List the daily limits of the org, which has none."""
    return json_reply({})


def _label(version: ApiVersion) -> str:
    """Return the name of a release: there are three a year, and 63.0 is Spring '25."""
    past = version.major - OLDEST_API_VERSION.major
    return f"{_SEASONS[past % 3]} '{25 + (past + 1) // 3}"


def _identity_url(request: Request, user: User) -> str:
    return f"{request.base_url}id/{ORG_ID}/{user.id}"


def _not_found() -> OrgFault:
    return OrgFault("The requested resource does not exist", code="NOT_FOUND")


def _unsupported(name: str) -> OrgFault:
    return OrgFault(f"sObject type '{name}' is not supported.", code="INVALID_TYPE")


def _organization_rows(_: Organization) -> Sequence[JsonObject]:
    return [
        {
            "Id": ORG_ID,
            "Name": "evalmeta",
            "InstanceName": "LOCAL",
            "IsSandbox": False,
            "TrialExpirationDate": None,
            "NamespacePrefix": None,
            "OrganizationType": "Developer Edition",
        }
    ]


def _user_row(user: User) -> JsonObject:
    return {"Id": user.id, "Username": user.username, "Name": user.name, "Email": user.username, "IsActive": True}


def _agent_rows(org: Organization) -> Sequence[JsonObject]:
    return [
        {"Id": with_checksum(f"0Xx{number:012d}"), "DeveloperName": name, "MasterLabel": name}
        for number, name in enumerate(sorted(org.settings().subjects), start=1)
    ]


def _agent_version_rows(org: Organization) -> Sequence[JsonObject]:
    return [
        {
            "Id": with_checksum(f"0X9{number:012d}"),
            "BotDefinitionId": agent["Id"],
            "DeveloperName": "v1",
            "VersionNumber": 1,
            "Status": "Active",
        }
        for number, agent in enumerate(_agent_rows(org), start=1)
    ]


_OBJECTS: Final[dict[str, tuple[str, Callable[[Organization], Sequence[JsonObject]]]]] = {
    "organization": ("Organization", _organization_rows),
    "user": ("User", lambda org: [_user_row(user) for user in org.users.all_users()]),
    "botdefinition": ("BotDefinition", _agent_rows),
    "botversion": ("BotVersion", _agent_version_rows),
}
