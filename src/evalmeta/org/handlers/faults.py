"""Errors as callers are told them: a code of Salesforce's, a message, and nothing about this machine."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import orjson
from starlette.responses import Response

from evalmeta.errors import NotFound, OrgFault, SettingsError, StoreError, SubjectNotBound
from evalmeta.wire.soap import write_fault

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException

    from evalmeta.errors import EvalmetaError
    from evalmeta.org.organization import Organization

__all__ = ["code_of", "fault_reply", "message_of", "refusal_reply"]

_CODES: Final = {
    HTTPStatus.FORBIDDEN: "FORBIDDEN",
    HTTPStatus.REQUEST_TIMEOUT: "REQUEST_RUNNING_TOO_LONG",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "REQUEST_TOO_LARGE",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "REQUEST_TOO_LARGE",
    HTTPStatus.SERVICE_UNAVAILABLE: "SERVER_UNAVAILABLE",
}


def code_of(error: EvalmetaError, *, otherwise: str) -> str:
    """Gives the error's code; `otherwise` is the API's own for a message that it cannot use."""
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
    """Gives what is wrong and, on the lines after the first, what to do; without code and without paths."""
    head = str(error).removeprefix(f"{error.code}: ") if isinstance(error, OrgFault) else str(error)
    return org.without_paths("\n".join((" ".join(head.splitlines()), *error.actions)))


def fault_reply(path: str, code: str, message: str, *, status: int) -> Response:
    """Writes an error for whoever asked below `path`: a fault over SOAP, Salesforce's list of errors over REST."""
    if "/services/Soap/" in path:
        return Response(write_fault(code, message), status_code=status, media_type="text/xml;charset=UTF-8")
    body = orjson.dumps([{"message": message, "errorCode": code}])
    return Response(body, status_code=status, media_type="application/json;charset=UTF-8")


def refusal_reply(path: str, refusal: HTTPException) -> Response:
    """Writes a refusal that has a status of HTTP's own."""
    status = HTTPStatus(refusal.status_code)
    return fault_reply(path, _CODES.get(status, "UNKNOWN_EXCEPTION"), refusal.detail, status=status)
