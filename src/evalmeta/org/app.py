"""The org's ASGI application, and the embedded org that runs it in process on a project's state folder."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from evalmeta.engine.project_code import imports_kept
from evalmeta.errors import StoreLocked
from evalmeta.model.redaction import tokens_hidden
from evalmeta.org.handlers import connect, registered_handlers
from evalmeta.org.handlers.rest import fault_reply, get_identity, get_versions, refusal_reply
from evalmeta.org.handlers.soap import handle_soap
from evalmeta.org.jobs import JobQueue
from evalmeta.org.lease import is_free
from evalmeta.org.organization import Organization
from evalmeta.org.serving.login_codes import LoginCodes
from evalmeta.org.serving.server_file import read_server
from evalmeta.org.workers import DetachedWorker, InProcessWorkers
from evalmeta.store.database import open_database
from evalmeta.store.spooling import send_left

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from evalmeta.package.project import Project


_SOAP: Final = "/services/Soap/m/{version}"
_DATA: Final = "/services/data/v{version}"
_RUNS: Final = f"{_DATA}/einstein/{{run_path}}/runs"


def create_app(org: Organization, pages: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application of an org, for use in process or behind a server; `pages` are further routes."""
    app = Starlette(
        routes=[
            Route("/services/oauth2/userinfo", get_identity, methods=["GET", "POST"]),
            Route("/id/{org_id}/{user_id}", get_identity, methods=["GET", "POST"]),
            Route("/services/data", get_versions, methods=["GET"]),
            Route(_SOAP, handle_soap, methods=["POST"]),
            # CumulusCI adds the id of the org, simple-salesforce the path of a deployment.
            Route(_SOAP + "/{rest:path}", handle_soap, methods=["POST"]),
            Route(_RUNS, connect.post_run, methods=["POST"]),
            Route(_RUNS + "/check", connect.post_check, methods=["POST"]),
            Route(_RUNS + "/{run_id}", connect.get_status, methods=["GET"]),
            Route(_RUNS + "/{run_id}/results", connect.get_results, methods=["GET"]),
            Route(_RUNS + "/{run_id}/cancel", connect.post_cancel, methods=["POST"]),
            Route(_RUNS + "/{run_id}/definition", connect.get_definition, methods=["GET"]),
            Route(_RUNS + "/{run_id}/extend", connect.post_extend, methods=["POST"]),
            Route(_RUNS + "/{run_id}/rescore", connect.post_rescore, methods=["POST"]),
            *pages,
        ],
        middleware=[Middleware(_CollapseSlashes)],
        exception_handlers={HTTPException: _refuse, Exception: _server_error},
    )
    # A redirect would send a token to the address in the Host header.
    app.router.redirect_slashes = False
    app.router.default = partial(_answer_by_handlers, app)
    app.state.org = org
    app.state.login_codes = LoginCodes()
    return app


async def _answer_by_handlers(app: Starlette, scope: Scope, receive: Receive, send: Send) -> None:
    """Add the routes of registered handlers and route the request again; raise 404 if they were added before."""
    if not add_registered_routes(app):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    await app.router.app(scope, receive, send)


def add_registered_routes(app: Starlette) -> bool:
    """Add the routes of registered handlers to an application, and return whether it did not have them."""
    has_them = bool(getattr(app.state, "has_handlers", False))
    if not has_them:
        app.router.routes.extend(route for handlers in registered_handlers() for route in handlers.routes)
        app.state.has_handlers = True
    return not has_them


class _CollapseSlashes:
    """Treat `//services` as `/services`: the sf CLI adds a slash to addresses that end with one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["path"] = "/" + re.sub("/{2,}", "/", scope["path"]).strip("/")
        await self._app(scope, receive, send)


async def _refuse(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException) or error.status_code == HTTPStatus.NOT_FOUND:
        return fault_reply(request.url.path, "NOT_FOUND", "The requested resource does not exist", status=404)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _refuse_method(request)
    return refusal_reply(request.url.path, error)


def _refuse_method(request: Request) -> Response:
    text = f"HTTP method {request.method} is not allowed"
    reply = fault_reply(request.url.path, "METHOD_NOT_ALLOWED", text, status=405)
    path, routes = request.scope["path"], request.app.routes
    allowed = (route.methods or () for route in routes if isinstance(route, Route) and route.path_regex.match(path))
    # RFC 9110, section 15.5.6: the reply lists the methods that the resource has.
    reply.headers["Allow"] = ", ".join(sorted({method for methods in allowed for method in methods}))
    return reply


async def _server_error(request: Request, _: Exception) -> Response:
    return fault_reply(request.url.path, "UNKNOWN_EXCEPTION", "An unexpected error occurred", status=500)


@asynccontextmanager
async def embedded_org(project: Project, *, detached: bool = False) -> AsyncIterator[tuple[Starlette, str]]:
    """Open the embedded org of a project; yield its application and a token.

    With `detached`, runs continue in a separate process when the org is closed; otherwise they stop and can be resumed.
    """
    with tokens_hidden(), open_database(project.store) as database, imports_kept():
        # The workers of the server take waiting runs too, and ask the same agents.
        shared = read_server(project.state_dir) is not None
        workers: DetachedWorker | InProcessWorkers
        if detached:
            workers = DetachedWorker(project.root, project.store, shares_places=shared, on=project.on)
        else:
            workers = InProcessWorkers(shares_places=shared, on=project.on)
        queue = JobQueue()
        org = Organization(
            database,
            project.root,
            lambda: project.settings,
            workers.launch,
            queue.wake,
            queue.trouble,
            reads_files=True,
        )
        queue.org = org
        if isinstance(workers, InProcessWorkers):
            workers.org = org
        try:
            with suppress(StoreLocked):
                send_left(database, is_free=is_free)
            if org.jobs.count_unfinished():
                queue.wake()
            yield create_app(org), org.token
        finally:
            queue.close()
            await workers.close()
