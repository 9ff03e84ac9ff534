"""Requests for the records of an org: itself, its users, and its agents with one version each."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import OrgFault, SubjectNotBound
from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import ApiVersion
from evalmeta.org.handlers.rest import authenticated, json_reply, no_resource, read_body
from evalmeta.org.organization import ORG_ID, Organization, run_in_thread
from evalmeta.org.subjects import Agent, agents_of, unbound_subject
from evalmeta.org_clients.answers import Answers, Page, read_locator, read_page_size
from evalmeta.org_clients.sobjects import (
    AGENT,
    AGENT_VERSION,
    ORGANIZATION,
    SOBJECTS,
    USER,
    write_description,
    write_summary,
)
from evalmeta.org_clients.soql import read_query
from evalmeta.protocol.json_fields import read_object, text, to_timestamp
from evalmeta.store.database import full_id
from evalmeta.store.users import Agents, AgentState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject
    from evalmeta.org_clients.sobjects import SObject


# The sf CLI always uses this version to ask for the user, and whether the org is a Dev Hub.
_LOGIN_API_VERSION: Final = ApiVersion(51)
_STATES: Final = {"active": True, "inactive": False}
_ORGANIZATION_ROW: Final[JsonObject] = {
    **dict.fromkeys((field.name for field in ORGANIZATION.fields), None),
    "Id": ORG_ID,
    "Name": "evalmeta",
    "InstanceName": "LOCAL",
    "IsSandbox": False,
    "OrganizationType": "Developer Edition",
    "LanguageLocaleKey": "en_US",
    "DefaultLocaleSidKey": "en_US",
    "TimeZoneSidKey": "GMT",
    "CreatedById": ADMIN.id,
    "LastModifiedById": ADMIN.id,
}


class Records:
    """The rows of each object, read at most once."""

    def __init__(self, org: Organization) -> None:
        self._org = org
        self._rows: dict[str, Sequence[JsonObject]] = {}

    def __call__(self, name: str) -> Sequence[JsonObject]:
        """Return the rows of an object, each with all of its fields."""
        if name not in self._rows:
            self._rows[name] = list(self._read(name))
        return self._rows[name]

    def _read(self, name: str) -> Iterator[JsonObject]:
        if name == ORGANIZATION.name:
            yield _ORGANIZATION_ROW
        elif name == USER.name:
            for user in self._org.users.all_users():
                names: JsonObject = {"Username": user.username, "Name": user.name, "Email": user.username}
                yield {"Id": user.id, **names, "IsActive": True}
        else:
            write = _agent_row if name == AGENT.name else _version_row
            yield from (write(agent) for agent in agents_of(self._org))


def _activate(org: Organization, user: User, version_id: str, *, is_active: bool) -> SubjectNotBound | None:
    """Activate or deactivate an agent by the id of its version; return why that is not possible.

    Raise KeyError if there is no such version.
    """
    agent = {agent.version_id: agent for agent in agents_of(org)}[full_id(version_id)]
    if is_active and not agent.is_bound:
        return unbound_subject(org.settings().subjects, agent.name, root=org.root, settings_name=org.settings_name)
    Agents(org.database).save(agent.name, AgentState(is_active, org.database.now(), user.id))
    return None


def _agent_row(agent: Agent) -> JsonObject:
    return {
        **dict.fromkeys((field.name for field in AGENT.fields), None),
        **_changes(agent),
        "Id": agent.id,
        "DeveloperName": agent.name,
        "MasterLabel": agent.name,
        "Type": "ExternalCopilot",
    }


def _version_row(agent: Agent) -> JsonObject:
    return {
        **dict.fromkeys((field.name for field in AGENT_VERSION.fields), None),
        **_changes(agent),
        "Id": agent.version_id,
        "BotDefinitionId": agent.id,
        "DeveloperName": "v1",
        "VersionNumber": 1,
        "Status": "Active" if agent.is_active else "Inactive",
    }


def _changes(agent: Agent) -> JsonObject:
    """Return who changed an agent, and when; nothing is known of its creation."""
    state = agent.state
    moment = to_timestamp(state.modified) if state else None
    by = state.modified_by if state else ADMIN.id
    return {"IsDeleted": False, "LastModifiedDate": moment, "SystemModstamp": moment, "LastModifiedById": by}


@authenticated(oldest=_LOGIN_API_VERSION)
async def get_query(request: Request, org: Organization, _: User) -> Response:
    """Answer a query, or describe its columns."""
    page = Page(request.query_params.get("q", ""), size=read_page_size(_options(request)))
    if request.query_params.get("columns", "").casefold() != "true":
        return await _answer(request, org, page)
    query = read_query(page.query)
    return json_reply(await run_in_thread(org, lambda org: Answers(Records(org), root=_root(request)).columns(query)))


@authenticated(oldest=_LOGIN_API_VERSION)
async def get_more(request: Request, org: Organization, _: User) -> Response:
    """Return the next records of a query by the locator in its reply."""
    page = read_locator(request.path_params["locator"])
    return await _answer(request, org, page._replace(size=read_page_size(_options(request), otherwise=page.size)))


async def _answer(request: Request, org: Organization, page: Page) -> Response:
    query = read_query(page.query)
    tooling = "tooling/" if "/tooling/" in request.url.path else ""
    url = f"{_data(request)}/{tooling}query"
    return json_reply(
        await run_in_thread(org, lambda org: Answers(Records(org), root=_root(request)).select(query, page, url=url))
    )


@authenticated()
async def get_objects(request: Request, _: Organization, __: User) -> Response:
    """List the objects that can be queried."""
    root = _root(request)
    summaries = [write_summary(sobject, root=root) for sobject in SOBJECTS.values()]
    return json_reply({"encoding": "UTF-8", "maxBatchSize": 200, "sobjects": summaries})


@authenticated()
async def get_object(request: Request, _: Organization, __: User) -> Response:
    """Return an object's entry in the list of all objects."""
    kind = _kind(request)
    return json_reply({"objectDescribe": write_summary(kind, root=_root(request)), "recentItems": []})


@authenticated()
async def get_describe(request: Request, _: Organization, __: User) -> Response:
    """Describe an object; without SourceMember the sf CLI tracks no source."""
    return json_reply(write_description(_kind(request), root=_root(request)))


@authenticated(oldest=_LOGIN_API_VERSION)
async def get_record(request: Request, org: Organization, _: User) -> Response:
    """Return a record by its id, with all fields or with those that `fields` lists."""
    kind, record_id = _kind(request), request.path_params["record_id"]
    names = [name.strip() for name in request.query_params.get("fields", "").split(",") if name.strip()]

    def find(org: Organization) -> JsonObject | None:
        return Answers(Records(org), root=_root(request)).record(kind, record_id, names)

    if (record := await run_in_thread(org, find)) is None:
        raise no_resource()
    return json_reply(record)


@authenticated()
async def post_activation(request: Request, org: Organization, user: User) -> Response:
    """Activate or deactivate an agent: `{"status": "Active"}` or `{"status": "Inactive"}`."""
    status = text(read_object(await read_body(request, limit=limits.MAX_JSON_BYTES)), "status")
    is_active = _STATES.get(status.casefold())
    if is_active is None:
        raise OrgFault(f"status must be Active or Inactive, not {status!r}", code="INVALID_INPUT", status=400)
    version_id = request.path_params["version_id"]
    try:
        refusal = await run_in_thread(org, lambda org: _activate(org, user, version_id, is_active=is_active))
    except KeyError:
        raise no_resource() from None
    messages = [] if refusal is None else [f"{refusal}. {' '.join(map(str, refusal.actions))}"]
    return json_reply(
        {"success": refusal is None, "isActivated": is_active and refusal is None, "messages": messages},
        status=HTTPStatus.OK,
    )


def _options(request: Request) -> str:
    return request.headers.get("sforce-query-options", "")


def _data(request: Request) -> str:
    return f"/services/data/v{request.path_params['version']}"


def _root(request: Request) -> str:
    """Return the address of the objects: the same for queries of both APIs."""
    return f"{_data(request)}/sobjects"


def _kind(request: Request) -> SObject:
    kind = SOBJECTS.get(request.path_params["name"].casefold())
    if kind is None:
        raise no_resource()
    return kind
