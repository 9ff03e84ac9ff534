"""The org's ASGI application: routes, and what is said where none of them leads on."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from evalmeta.org.handlers.connect import get_results, get_status, post_run
from evalmeta.org.handlers.soap import handle_soap
from evalmeta.wire.soap import write_fault

if TYPE_CHECKING:
    from starlette.requests import Request

    from evalmeta.org.organization import Organization

__all__ = ["create_app"]

_SOAP: Final = "/services/Soap/m/{version}"
_RUNS: Final = "/services/data/v{version}/einstein/ai-evaluations/runs"


def create_app(org: Organization) -> Starlette:
    """Makes the application of an org, to be reached in process or served."""
    app = Starlette(
        routes=[
            Route(_SOAP, handle_soap, methods=["POST"]),
            Route(_RUNS, post_run, methods=["POST"]),
            Route(_RUNS + "/{run_id}", get_status, methods=["GET"]),
            Route(_RUNS + "/{run_id}/results", get_results, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _refuse, Exception: _break_off},
    )
    app.state.org = org
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _rest_error(405, "METHOD_NOT_ALLOWED", f"HTTP method {request.method} is not allowed")
    return _rest_error(404, "NOT_FOUND", "The requested resource does not exist")


async def _break_off(request: Request, _: Exception) -> Response:
    code, message = "UNKNOWN_EXCEPTION", "An unexpected error occurred"
    if request.url.path.startswith("/services/Soap/"):
        return Response(write_fault(code, message), status_code=500, media_type="text/xml;charset=UTF-8")
    return _rest_error(500, code, message)


def _rest_error(status: int, code: str, message: str) -> Response:
    body = orjson.dumps([{"message": message, "errorCode": code}])
    return Response(body, status_code=status, media_type="application/json;charset=UTF-8")
