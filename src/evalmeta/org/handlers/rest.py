"""What all REST calls have in common: who calls, which version, and how replies and errors are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson
from starlette.responses import Response

from evalmeta.errors import EvalmetaError, OrgFault, StoreError, StoreLocked
from evalmeta.model.registry import OLDEST_API_VERSION
from evalmeta.org.handlers.faults import code_of, message_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from evalmeta.model.jsonvalue import JsonValue
    from evalmeta.model.registry import ApiVersion
    from evalmeta.model.user import User
    from evalmeta.org.organization import Organization

__all__ = ["guarded", "json_reply"]

# REST API Developer Guide, "Set Up Authorization": orgs take `OAuth` for `Bearer`; schemes have no case (RFC 9110).
_SCHEMES: Final = frozenset({"bearer", "oauth"})
_STATUS_CODES: Final = {
    "INVALID_SESSION_ID": 401,
    "INVALID_CROSS_REFERENCE_KEY": 404,
    "NOT_FOUND": 404,
    "REQUEST_TOO_LARGE": 413,
    "SERVER_UNAVAILABLE": 503,
}
_BROKEN: Final = 500


async def guarded(
    request: Request,
    answer: Callable[[Organization, User], Awaitable[Response]],
    *,
    oldest: ApiVersion = OLDEST_API_VERSION,
) -> Response:
    """Answers a caller whose token and API version are good; what goes wrong becomes Salesforce's list of errors.

    Args:
        request: the request; an address without a version is good too.
        answer: makes the reply, given the org and the caller.
        oldest: the first version that is good here.
    """
    org: Organization = request.app.state.org
    try:
        user = org.user_of(_token_of(request.headers.get("authorization", "")))
        if user is None:
            raise OrgFault("Session expired or invalid", code="INVALID_SESSION_ID")
        if not org.speaks(request.path_params.get("version", str(oldest)), oldest=oldest):
            raise OrgFault("The requested resource does not exist", code="NOT_FOUND")
        return await answer(org, user)
    except EvalmetaError as error:
        code = code_of(error, otherwise="JSON_PARSER_ERROR")
        return json_reply([{"message": message_of(error, org), "errorCode": code}], status=_status(error, code))


def _status(error: EvalmetaError, code: str) -> int:
    if isinstance(error, OrgFault) and error.status:
        return error.status
    # To come later helps against a lock alone.
    is_broken = isinstance(error, StoreError) and not isinstance(error, StoreLocked)
    return _BROKEN if is_broken else _STATUS_CODES.get(code, 400)


def _token_of(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() in _SCHEMES else header


def json_reply(content: JsonValue, *, status: int = 200) -> Response:
    """Writes a JSON reply."""
    return Response(orjson.dumps(content), status_code=status, media_type="application/json;charset=UTF-8")
