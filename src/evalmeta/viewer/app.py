"""The pages as routes of a Starlette application: pages, forms, and events about unfinished runs."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from evalmeta.errors import EvalmetaError, LoginFailed, NotFound
from evalmeta.store.users import Sessions
from evalmeta.viewer.access import Access, address_of, csrf_of, form_of, is_csrf, login_page, session_of
from evalmeta.viewer.live import LiveRuns, read_states
from evalmeta.viewer.pages import ROOT, Action, Page, Query, Source
from evalmeta.viewer.replies import HEADERS, LINKS, ON_FAULT, failed
from evalmeta.viewer.routes import ACTIONS, PAGES, PageRow, render, static_files

if TYPE_CHECKING:
    from starlette.requests import Request

    from evalmeta.model.login import User
    from evalmeta.package.project import Project


_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Viewer:
    """Serve a project's pages to users of its org, who log in with their tokens or with codes."""

    def __init__(self, project: Project) -> None:
        self._access = Access(project)
        self._live = LiveRuns(project.store)

    def routes(self) -> list[Route]:
        """Return the routes of all pages, below `/view`; the application's state has the `login_codes`."""
        return [
            Route(f"{ROOT}/static/{{name}}", _static, methods=["GET"]),
            *self._access.routes(),
            Route(f"{ROOT}/live", self._follow, methods=["GET"]),
            *(
                Route(ROOT + row.path, partial(self._page, row), methods=["GET"], middleware=ON_FAULT)
                for row in PAGES.values()
            ),
            *(
                Route(ROOT + row.path, partial(self._act, row.do), methods=["POST"], middleware=ON_FAULT)
                for row in ACTIONS.values()
            ),
            Route(f"{ROOT}/", RedirectResponse(ROOT), methods=["GET"]),
            Route(f"{ROOT}/{{path:path}}", partial(self._page, PageRow("", _unknown, "")), methods=["GET"]),
        ]

    def _page(self, row: PageRow, request: Request) -> Response:
        """Return a page; without a valid session, the page to log in."""
        session, query = session_of(request), {**request.query_params, **request.path_params}
        try:
            with self._access.source(session) as source:
                # Read before the page, so that the page shows at least this.
                known = read_states(source.database).of(source.user) if row.follows else ""
                page = row.make(source, query)
                html = render(page, LINKS, source, section=row.section, csrf=csrf_of(session), known=known)
        except LoginFailed:
            return login_page(address_of(request))
        except EvalmetaError as error:
            return failed(error)
        return HTMLResponse(html, headers=HEADERS)

    async def _act(self, do: Action, request: Request) -> Response:
        """Change something, and show the page that the action names."""
        session, form = session_of(request), await form_of(request)
        if not is_csrf(session, form):
            return login_page()

        def act() -> str:
            with self._access.source(session) as source:
                if not source.can_change:
                    raise NotFound("the runs of an archive cannot be changed")
                target = do(source, {**form, **request.path_params})
            return LINKS(target.page, **target.parameters)

        try:
            address = await run_in_threadpool(act)
        except LoginFailed:
            return login_page()
        except EvalmetaError as error:
            return failed(error)
        return RedirectResponse(address, status_code=HTTPStatus.SEE_OTHER)

    async def _follow(self, request: Request) -> Response:
        """Send an event when runs start, end or get results, beginning with what changed since the page was made."""
        session = session_of(request)
        try:
            signed, user = await run_in_threadpool(self._follower, session)
        except LoginFailed:
            return login_page()
        except EvalmetaError as error:
            return failed(error)
        known = request.headers.get("last-event-id", request.query_params.get("known", ""))
        refusal = PlainTextResponse("you follow too many pages\n", status_code=HTTPStatus.TOO_MANY_REQUESTS)
        return self._live.stream(signed, user, known) or refusal

    def _follower(self, session: str) -> tuple[bytes, User]:
        with self._access.source(session) as source:
            return Sessions(source.database).hash_of(session), source.user


def _static(request: Request) -> Response:
    path = static_files().get(request.path_params["name"])
    if path is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return FileResponse(path, media_type=_TYPES.get(path.suffix), headers={"cache-control": "max-age=3600"})


def _unknown(_: Source, query: Query) -> Page:
    raise NotFound(f"page {query.get('path', '')!r} cannot be found")
