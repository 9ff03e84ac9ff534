"""REST requests and replies: authentication and identity, API versions, bodies of limited size, and errors."""

from __future__ import annotations

import logging
from functools import partial, wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import orjson
from starlette.responses import Response, StreamingResponse

from evalmeta import limits
from evalmeta.errors import (
    EvalmetaError,
    NotFound,
    OrgFault,
    SettingsError,
    StoreError,
    StoreLocked,
    StoreUnreachable,
    SubjectNotBound,
)
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, ApiVersion
from evalmeta.org.organization import ORG_ID, Organization
from evalmeta.protocol.agent_preview import AGENT_API, write_error
from evalmeta.protocol.oauth import ENGINE
from evalmeta.protocol.soap import write_fault

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator

    from starlette.exceptions import HTTPException
    from starlette.requests import Request

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.login import User


_LOG: Final = logging.getLogger(__name__)
# Orgs accept `OAuth` for `Bearer` (REST API Developer Guide, "Set Up Authorization"); RFC 9110: in any case.
_SCHEMES: Final = frozenset({"bearer", "oauth"})
_STATUS_CODES: Final = {
    "INVALID_SESSION_ID": 401,
    "INVALID_CROSS_REFERENCE_KEY": 404,
    "NOT_FOUND": 404,
    "REQUEST_TOO_LARGE": 413,
    "SERVER_UNAVAILABLE": 503,
}
_BROKEN: Final = 500
_JSON: Final = "application/json;charset=UTF-8"
_CODES: Final = {
    HTTPStatus.FORBIDDEN: "FORBIDDEN",
    HTTPStatus.REQUEST_TIMEOUT: "REQUEST_RUNNING_TOO_LONG",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "REQUEST_TOO_LARGE",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "REQUEST_TOO_LARGE",
    HTTPStatus.SERVICE_UNAVAILABLE: "SERVER_UNAVAILABLE",
}


def authenticated(
    *, oldest: ApiVersion = OLDEST_API_VERSION
) -> Callable[[Callable[[Request, Organization, User], Awaitable[Response]]], Callable[[Request], Awaitable[Response]]]:
    """Return a decorator that makes an endpoint of a handler, as `respond` does."""

    def decorate(
        handler: Callable[[Request, Organization, User], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        @wraps(handler)
        async def endpoint(request: Request) -> Response:
            return await respond(request, partial(handler, request), oldest=oldest)

        return endpoint

    return decorate


async def respond(
    request: Request,
    answer: Callable[[Organization, User], Awaitable[Response]],
    *,
    oldest: ApiVersion = OLDEST_API_VERSION,
) -> Response:
    """Answer a request whose token and API version are valid; write errors as Salesforce's list of errors.

    The address may have no version; `oldest` is the first supported one.
    """
    org: Organization = request.app.state.org
    try:
        user = org.user_of(token_of(request))
        if user is None:
            message = org.refusal_of(token_of(request), usual="Session expired or invalid")
            raise OrgFault(message, code="INVALID_SESSION_ID")
        if not org.supports(request.path_params.get("version", str(oldest)), oldest=oldest):
            raise no_resource()
        return await answer(org, user)
    except EvalmetaError as error:
        if org.is_served and isinstance(error, SettingsError | SubjectNotBound):
            # Only the people who serve the org can mend this.
            _LOG.warning("%s %s refused: %s", request.method, request.url.path, error)
        code = code_of(error, otherwise="JSON_PARSER_ERROR")
        reply = fault_reply(request.url.path, code, message_of(error, org), status=_status(error, code))
        if isinstance(error, StoreUnreachable):
            # Clients then ask for more than three minutes, while a run keeps its results on this machine.
            reply.headers["Retry-After"] = str(limits.UNREACHABLE_SECONDS)
        return reply


def no_resource() -> OrgFault:
    """Return Salesforce's error for an address that names nothing."""
    return OrgFault("The requested resource does not exist", code="NOT_FOUND")


def token_of(request: Request) -> str:
    """Return the token of a request; empty if it has none."""
    header = request.headers.get("authorization", "")
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() in _SCHEMES else header


def _status(error: EvalmetaError, code: str) -> int:
    if isinstance(error, OrgFault) and error.status:
        return error.status
    # A retry helps only if the database is locked.
    is_broken = isinstance(error, StoreError) and not isinstance(error, StoreLocked)
    return _BROKEN if is_broken else _STATUS_CODES.get(code, 400)


def json_reply(content: JsonValue, *, status: int = 200) -> Response:
    """Return a JSON reply."""
    return json_bytes(orjson.dumps(content), status=status)


def json_bytes(content: bytes, *, status: int = 200) -> Response:
    """Return a reply of JSON that is already written."""
    return Response(content, status_code=status, media_type=_JSON)


def json_stream(start: bytes, items: Iterable[bytes], end: bytes) -> Response:
    """Return a reply of JSON whose items, with commas between them, are sent in pieces of about 64 kB."""

    def pieces() -> Iterator[bytes]:
        waiting, size, comma = [start], len(start), b""
        for item in items:
            waiting += (comma, item)
            size, comma = size + len(item), b","
            if size >= limits.PIECE_BYTES:
                yield b"".join(waiting)
                waiting, size = [], 0
        yield b"".join((*waiting, end))

    return StreamingResponse(pieces(), media_type=_JSON)


async def stream_body(request: Request, *, limit: int) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of a request's body; raise OrgFault, and stop reading, after `limit` bytes."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise OrgFault(f"the body is larger than {limit:,} bytes", code="REQUEST_TOO_LARGE")
        yield chunk


async def read_body(request: Request, *, limit: int) -> bytes:
    """Return a request's body; raise like `stream_body`."""
    return b"".join([chunk async for chunk in stream_body(request, limit=limit)])


def code_of(error: EvalmetaError, *, otherwise: str) -> str:
    """Return the API's code for an error; `otherwise` is the API's code for messages that are not valid."""
    match error:
        case OrgFault():
            return error.code
        case SubjectNotBound():
            return "SUBJECT_NOT_BOUND"
        case SettingsError():
            return "INVALID_SUBJECT"
        case NotFound():
            return "INVALID_INPUT"
        case StoreError():
            return "SERVER_UNAVAILABLE"
        case _:
            return otherwise


def message_of(error: EvalmetaError, org: Organization) -> str:
    """Return an error's text in the first line and its actions in the next ones, without the code and without paths."""
    head = str(error).removeprefix(f"{error.code}: ") if isinstance(error, OrgFault) else str(error)
    return org.without_paths("\n".join((" ".join(head.splitlines()), *error.actions)))


def fault_reply(path: str, code: str, message: str, *, status: int) -> Response:
    """Return the error reply for a path: a SOAP fault, an error of the Agent API, or Salesforce's list of errors."""
    if "/services/Soap/" in path:
        return Response(write_fault(code, message), status_code=status, media_type="text/xml;charset=UTF-8")
    if path.startswith(AGENT_API):
        return json_reply(write_error(path.removeprefix(AGENT_API), message, status=status), status=status)
    return json_reply([{"message": message, "errorCode": code}], status=status)


def refusal_reply(path: str, refusal: HTTPException) -> Response:
    """Return the error reply for an HTTP exception."""
    status = HTTPStatus(refusal.status_code)
    return fault_reply(path, _CODES.get(status, "UNKNOWN_EXCEPTION"), refusal.detail, status=status)


_SEASONS: Final = ("Spring", "Summer", "Winter")


async def get_versions(_: Request) -> Response:
    """List the API versions, without authentication."""
    versions = [ApiVersion(major) for major in range(OLDEST_API_VERSION.major, NEWEST_API_VERSION.major + 1)]
    return json_reply(
        [
            {"label": _label(version), "url": f"/services/data/v{version}", "version": str(version), "engine": ENGINE}
            for version in versions
        ]
    )


@authenticated()
async def get_identity(request: Request, _: Organization, user: User) -> Response:
    """Return the caller's identity, with the keys of OpenID Connect's userinfo and of Salesforce's identity."""
    if request.path_params.get("user_id", user.id) != user.id:
        raise no_resource()
    return json_reply(
        {
            "id": identity_url(request, user),
            "sub": identity_url(request, user),
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


def _label(version: ApiVersion) -> str:
    """Return the name of a release: there are three a year, and 63.0 is Spring '25."""
    past = version.major - OLDEST_API_VERSION.major
    return f"{_SEASONS[past % 3]} '{25 + (past + 1) // 3}"


def identity_url(request: Request, user: User) -> str:
    """Return the address of a user's identity."""
    return f"{request.base_url}id/{ORG_ID}/{user.id}"
