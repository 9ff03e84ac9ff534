"""The org's ASGI application, and the embedded org that runs it in process on a project's state folder."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from evalmeta.engine.subjects.python import imports_kept
from evalmeta.org.handlers.connect import (
    get_definition,
    get_results,
    get_status,
    post_cancel,
    post_check,
    post_extend,
    post_rescore,
    post_run,
)
from evalmeta.org.handlers.login import (
    get_describe,
    get_identity,
    get_limits,
    get_query,
    get_resources,
    get_tooling_query,
    get_user,
    get_versions,
)
from evalmeta.org.handlers.rest import fault_reply, refusal_reply
from evalmeta.org.handlers.soap import get_deploy_request, handle_soap, patch_deploy_request, post_deploy_request
from evalmeta.org.jobs import JobQueue
from evalmeta.org.organization import Organization
from evalmeta.org.workers import DetachedWorker, InProcessWorkers
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from evalmeta.package.project import Project


_SOAP: Final = "/services/Soap/m/{version}"
_DATA: Final = "/services/data/v{version}"
_DEPLOY_REQUESTS: Final = f"{_DATA}/metadata/deployRequest"
_RUNS: Final = f"{_DATA}/einstein/{{run_path}}/runs"


def create_app(org: Organization, pages: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application of an org, for use in process or behind a server; `pages` are further routes."""
    app = Starlette(
        routes=[
            Route("/services/oauth2/userinfo", get_identity, methods=["GET", "POST"]),
            Route("/id/{org_id}/{user_id}", get_identity, methods=["GET", "POST"]),
            Route("/services/data", get_versions, methods=["GET"]),
            Route(_DATA, get_resources, methods=["GET"]),
            Route(_DATA + "/limits", get_limits, methods=["GET"]),
            Route(_DATA + "/query", get_query, methods=["GET"]),
            Route(_DATA + "/sobjects/User/{user_id}", get_user, methods=["GET"]),
            Route(_DATA + "/tooling/query", get_tooling_query, methods=["GET"]),
            Route(_DATA + "/tooling/sobjects/{name}/describe", get_describe, methods=["GET"]),
            Route(_SOAP, handle_soap, methods=["POST"]),
            Route(_DEPLOY_REQUESTS, post_deploy_request, methods=["POST"]),
            Route(_DEPLOY_REQUESTS + "/validatedDeployRequestId", post_deploy_request, methods=["POST"]),
            Route(_DEPLOY_REQUESTS + "/{job_id}", get_deploy_request, methods=["GET"]),
            Route(_DEPLOY_REQUESTS + "/{job_id}", patch_deploy_request, methods=["PATCH"]),
            Route(_RUNS, post_run, methods=["POST"]),
            Route(_RUNS + "/check", post_check, methods=["POST"]),
            Route(_RUNS + "/{run_id}", get_status, methods=["GET"]),
            Route(_RUNS + "/{run_id}/results", get_results, methods=["GET"]),
            Route(_RUNS + "/{run_id}/cancel", post_cancel, methods=["POST"]),
            Route(_RUNS + "/{run_id}/definition", get_definition, methods=["GET"]),
            Route(_RUNS + "/{run_id}/extend", post_extend, methods=["POST"]),
            Route(_RUNS + "/{run_id}/rescore", post_rescore, methods=["POST"]),
            *pages,
        ],
        middleware=[Middleware(_CollapseSlashes)],
        exception_handlers={HTTPException: _refuse, Exception: _server_error},
    )
    # A redirect would send a token to the address in the Host header.
    app.router.redirect_slashes = False
    app.state.org = org
    return app


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
        return fault_reply("", "NOT_FOUND", "The requested resource does not exist", status=404)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return fault_reply("", "METHOD_NOT_ALLOWED", f"HTTP method {request.method} is not allowed", status=405)
    return refusal_reply(request.url.path, error)


async def _server_error(request: Request, _: Exception) -> Response:
    return fault_reply(request.url.path, "UNKNOWN_EXCEPTION", "An unexpected error occurred", status=500)


@asynccontextmanager
async def embedded_org(project: Project, *, detached: bool = False) -> AsyncIterator[tuple[Starlette, str]]:
    """Open the embedded org of a project; yield its application and a token.

    With `detached`, runs continue in a separate process when the org is closed; otherwise they stop and can be resumed.
    """
    with open_database(project.state_dir) as database, imports_kept():
        workers = DetachedWorker(project.root, project.state_dir) if detached else InProcessWorkers()
        queue = JobQueue()
        org = Organization(
            database, project.root, lambda: project.settings, workers.launch, queue.wake, reads_files=True
        )
        queue.org = org
        if isinstance(workers, InProcessWorkers):
            workers.org = org
        try:
            if org.jobs.count_unfinished():
                queue.wake()
            yield create_app(org), org.token
        finally:
            queue.close()
            await workers.close()
