"""Pages as HTTP replies: their security headers, and the pages about errors."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.middleware import Middleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.responses import HTMLResponse, Response

from evalmeta.errors import EvalmetaError, NotFound, StoreLocked, UsageError
from evalmeta.viewer.pages import Page, ServedLinks
from evalmeta.viewer.routes import ACTIONS, PAGES, POLICY, SHEETS, render

if TYPE_CHECKING:
    from starlette.requests import Request


# With the usual `no-referrer`, browsers send forms with the origin `null`, which is refused.
HEADERS: Final = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
LINKS: Final = ServedLinks(
    {"live": "/live", "logout": "/logout", **{name: row.path for name, row in (PAGES | SHEETS | ACTIONS).items()}}
)


def page_reply(page: Page, *, status: int = HTTPStatus.OK) -> Response:
    """Return a page that shows nothing of the project."""
    return HTMLResponse(render(page, LINKS), status_code=status, headers=HEADERS)


def failed(error: EvalmetaError) -> Response:
    """Return a page that says what happened and what to do, with a way back."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    if isinstance(error, StoreLocked):
        status = HTTPStatus.SERVICE_UNAVAILABLE
    elif isinstance(error, UsageError):
        status = HTTPStatus.NOT_FOUND if isinstance(error, NotFound) else HTTPStatus.BAD_REQUEST
    values = {"message": str(error), "actions": [str(action) for action in error.actions]}
    return page_reply(Page("error.html.j2", "Not shown", values), status=status)


def _unexpected(_: Request, __: Exception) -> Response:
    """Return a page that tells nothing; the guard of requests logs the error."""
    actions = ["Try it again.", "The log says more: logs in the project's state folder."]
    values = {"message": "an unexpected error happened", "actions": actions}
    return page_reply(Page("error.html.j2", "Not shown", values), status=HTTPStatus.INTERNAL_SERVER_ERROR)


ON_FAULT: Final = (Middleware(ServerErrorMiddleware, handler=_unexpected),)
