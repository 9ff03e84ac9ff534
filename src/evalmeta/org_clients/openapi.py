"""The description of an org's REST routes as OpenAPI 3.1, made from the routes themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from evalmeta.model.registry import NEWEST_API_VERSION, TEST_TYPES
from evalmeta.org.handlers.rest import json_reply
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from evalmeta.model.json_value import JsonObject, JsonValue

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
            "schemas": {"Errors": _ERRORS},
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
        yield (
            method.lower(),
            {
                "operationId": f"{method.lower()} {route.path}",
                "summary": summary,
                "parameters": list(_parameters(route.path)),
                **body,
                **open_to_all,
                "responses": {
                    "2XX": {"description": "the answer"},
                    "4XX": {"description": "why not", "content": _json({"$ref": "#/components/schemas/Errors"})},
                },
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
