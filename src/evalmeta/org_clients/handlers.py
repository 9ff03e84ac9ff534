"""The routes and operations of this wing, which `model/entry_points.py` names.

The endpoints here are for what other programs ask after a login: resources and limits of the org, addresses and tokens
to pass on, and the description of all REST routes as OpenAPI 3.1, which is made from the routes themselves.
"""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.routing import BaseRoute, Route

from evalmeta import limits
from evalmeta.model.registry import NEWEST_API_VERSION, TEST_TYPES
from evalmeta.org.handlers import Handlers
from evalmeta.org.handlers.rest import authenticated, fault_reply, identity_url, json_reply, token_of
from evalmeta.org_clients import components, records
from evalmeta.protocol.agent_preview import AGENT_API
from evalmeta.protocol.oauth import read_named_user_token, write_named_user_token
from evalmeta.store.users import Holder, public_id
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization
    from evalmeta.org.serving.login_codes import LoginCodes


OPENAPI_PATH: Final = "/services/data/openapi.json"
_ROOTS: Final = ("/services/data", "/services/oauth2/", "/id/", "/einstein/", "/agentforce/")
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
# Parameters in the query of requests, by the end of the path.
_QUERY: Final = {
    "/query": ("q", "columns"),
    "/queryAll": ("q", "columns"),
    "/results": ("after",),
    "/deployRequest/{job_id}": ("includeDetails",),
    "/sobjects/{name}/{record_id}": ("fields",),
    "/singleaccess": ("redirect_uri",),
}
_REQUIRED: Final = frozenset({"q"})
_OPEN: Final = frozenset({"/services/data", OPENAPI_PATH})
# Requests whose body nobody reads.
_WITHOUT_BODY: Final = ("/userinfo", "/id/{org_id}/{user_id}", "/singleaccess", "/cancel")
_ERRORS: Final[JsonObject] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["message", "errorCode"],
        "properties": {"message": {"type": "string"}, "errorCode": {"type": "string"}},
    },
}
_AGENT_API_ERROR: Final[JsonObject] = {
    "type": "object",
    "required": ["status", "path", "error", "message"],
    "properties": {
        "status": {"type": "integer"},
        "path": {"type": "string"},
        "error": {"type": "string"},
        "message": {"type": "string"},
    },
}


@authenticated()
async def get_resources(request: Request, _: Organization, user: User) -> Response:
    """List the resources of an API version."""
    root = f"/services/data/v{request.path_params['version']}"
    names = ("tooling", "metadata", "query", "queryAll", "sobjects", "limits")
    return json_reply({**{name: f"{root}/{name}" for name in names}, "identity": identity_url(request, user)})


@authenticated()
async def get_limits(_: Request, __: Organization, ___: User) -> Response:
    """List the daily limits of the org, which has none."""
    return json_reply({})


async def get_named_user(request: Request) -> Response:
    """Return an access token for the user of a session, in the form of a JWT, as @salesforce/agents requests it."""
    org: Organization = request.app.state.org
    token = request.cookies.get("sid", "")
    user = org.user_of(token)
    if user is None:
        return fault_reply("", "INVALID_SESSION_ID", "Session expired or invalid", status=HTTPStatus.UNAUTHORIZED)
    issued = write_named_user_token(token, user_id=user.id, issuer=str(request.base_url), now=time.time())
    return json_reply({"access_token": issued})


@authenticated()
async def get_frontdoor(request: Request, org: Organization, user: User) -> Response:
    """Return an address that logs a browser in once, to the pages of the org (OAuth 2.0 UI Bridge API).

    The session ends with the client's token.
    """
    codes: LoginCodes = request.app.state.login_codes
    token = read_named_user_token(token_of(request))
    holder = Holder(user.id, None if token == org.token else public_id(token))
    query = {"otp": codes.issue(holder, seconds=limits.FRONTDOOR_SECONDS)}
    if target := request.query_params.get("redirect_uri", ""):
        query["startURL"] = target
    return json_reply({"frontdoor_uri": f"{request.base_url}secur/frontdoor.jsp?{urlencode(query)}"})


async def get_openapi(request: Request) -> Response:
    """Return this description, without authentication; it says nothing about the org's contents."""
    return json_reply(describe(request.app.routes))


def describe(routes: Iterable[BaseRoute]) -> JsonObject:
    """Return the OpenAPI description of routes; SOAP and pages are left out."""
    paths: dict[str, JsonValue] = {}
    for route in routes:
        if isinstance(route, Route) and route.path.startswith(_ROOTS):
            known = paths.get(route.path)
            paths[route.path] = {**(known if isinstance(known, dict) else {}), **dict(_operations(route))}
    return {
        "openapi": "3.1.0",
        "info": {"title": "An org of evalmeta", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Errors": _ERRORS, "AgentApiError": _AGENT_API_ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operations(route: Route) -> Iterator[tuple[str, JsonValue]]:
    for method in sorted((route.methods or set()) - {"HEAD"}):
        summary, _, _ = (route.endpoint.__doc__ or "").strip().partition("\n")
        has_body = method in {"POST", "PATCH"} and not route.path.endswith(_WITHOUT_BODY)
        body: JsonObject = {"requestBody": _body(route.path)} if has_body else {}
        open_to_all: JsonObject = {"security": []} if route.path in _OPEN else {}
        errors = "AgentApiError" if route.path.startswith(AGENT_API) else "Errors"
        refusal: JsonObject = {"description": "why not", "content": _json({"$ref": f"#/components/schemas/{errors}"})}
        yield (
            method.lower(),
            {
                "operationId": f"{method.lower()} {route.path}",
                "summary": summary,
                "parameters": list(_parameters(route.path)),
                **body,
                **open_to_all,
                "responses": {"2XX": {"description": "the answer"}, "4XX": refusal},
            },
        )


def _parameters(path: str) -> Iterator[JsonValue]:
    for name in _PARAMETER.findall(path):
        yield {"name": name, "in": "path", "required": True, "schema": _schema(name)}
    for end, names in _QUERY.items():
        if path.endswith(end):
            for name in names:
                yield {"name": name, "in": "query", "required": name in _REQUIRED, "schema": {"type": "string"}}


def _schema(name: str) -> JsonObject:
    if name == "version":
        return {"type": "string", "examples": [str(NEWEST_API_VERSION)]}
    if name == "run_path":
        return {"type": "string", "enum": [row.run_path for row in TEST_TYPES]}
    return {"type": "string"}


def _body(path: str) -> JsonObject:
    content = _json({"type": "object"})
    if path.endswith("/deployRequest"):
        parts: JsonObject = {"json": {"type": "object"}, "file": {"type": "string", "format": "binary"}}
        content = {**content, "multipart/form-data": {"schema": {"type": "object", "properties": parts}}}
    return {"required": True, "content": content}


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


_DATA: Final = "/services/data/v{version}"
_DEPLOY_REQUESTS: Final = f"{_DATA}/metadata/deployRequest"
HANDLERS: Final = Handlers(
    [
        Route("/services/oauth2/singleaccess", get_frontdoor, methods=["GET", "POST"]),
        Route("/agentforce/bootstrap/nameduser", get_named_user, methods=["GET"]),
        Route(OPENAPI_PATH, get_openapi, methods=["GET"]),
        Route(_DATA, get_resources, methods=["GET"]),
        Route(_DATA + "/limits", get_limits, methods=["GET"]),
        Route(_DATA + "/queryAll", records.get_query, methods=["GET"]),
        Route(_DATA + "/queryAll/{locator}", records.get_more, methods=["GET"]),
        *(
            route
            for root in (_DATA, _DATA + "/tooling")
            for route in (
                Route(root + "/query", records.get_query, methods=["GET"]),
                Route(root + "/query/{locator}", records.get_more, methods=["GET"]),
                Route(root + "/sobjects", records.get_objects, methods=["GET"]),
                Route(root + "/sobjects/{name}", records.get_object, methods=["GET"]),
                Route(root + "/sobjects/{name}/describe", records.get_describe, methods=["GET"]),
                Route(root + "/sobjects/{name}/{record_id}", records.get_record, methods=["GET"]),
            )
        ),
        Route(_DATA + "/connect/bot-versions/{version_id}/activation", records.post_activation, methods=["POST"]),
        Route(_DEPLOY_REQUESTS, components.post_deploy_request, methods=["POST"]),
        Route(_DEPLOY_REQUESTS + "/validatedDeployRequestId", components.post_deploy_request, methods=["POST"]),
        Route(_DEPLOY_REQUESTS + "/{job_id}", components.get_deploy_request, methods=["GET"]),
        Route(_DEPLOY_REQUESTS + "/{job_id}", components.patch_deploy_request, methods=["PATCH"]),
    ],
    components.OPERATIONS,
)
