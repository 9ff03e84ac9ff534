"""The pages as routes of a Starlette application: pages, forms, and events about unfinished runs."""

from __future__ import annotations

import re
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from evalmeta import limits
from evalmeta.errors import EvalmetaError, LoginFailed, NotFound
from evalmeta.store.users import Sessions
from evalmeta.viewer.access import Access, address_of, csrf_of, form_of, is_csrf, login_page, session_of
from evalmeta.viewer.live import LiveRuns
from evalmeta.viewer.pages import ROOT, Action, Page, Query, Source
from evalmeta.viewer.replies import HEADERS, LINKS, ON_FAULT, failed
from evalmeta.viewer.routes import ACTIONS, PAGES, SHEETS, PageRow, SheetRow, render, static_files
from evalmeta.viewer.run_states import read_states
from evalmeta.viewer.tables import joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from evalmeta.model.login import User
    from evalmeta.package.project import Project


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9]+")
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
                Route(ROOT + row.path, partial(self._sheet, name, row), methods=["GET"], middleware=ON_FAULT)
                for name, row in SHEETS.items()
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
        session, query = session_of(request), _query_of(request)
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

    def _sheet(self, name: str, row: SheetRow, request: Request) -> Response:
        """Return all rows of a table as CSV; they are read part by part, so that few are in memory."""
        session, query = session_of(request), _query_of(request)
        try:
            first, after = self._part(row, session, query, is_first=True)
        except LoginFailed:
            return login_page(address_of(request))
        except EvalmetaError as error:
            return failed(error)

        def parts(part: str, place: str) -> Iterator[str]:
            yield part
            while place:
                part, place = self._part(row, session, {**query, row.place: place})
                yield part

        disposition = f'attachment; filename="{_file_name(name, request)}"'
        return StreamingResponse(
            parts(first, after), media_type="text/csv", headers={**HEADERS, "content-disposition": disposition}
        )

    def _part(self, row: SheetRow, session: str, query: Query, *, is_first: bool = False) -> tuple[str, str]:
        """Return a part of a table as CSV, and where the next one begins."""
        with self._access.source(session) as source:
            table = row.table(source, query, limits.CSV_ROWS)
            return table.csv(has_heading=is_first), table.after

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


def _query_of(request: Request) -> Query:
    """Return the parameters of a request; the values of the check boxes for columns are one, and so are chosen runs."""
    given = request.query_params
    columns = {name: joined(given.getlist(name)) for name in given if name.endswith("columns")}
    runs = {"run": ",".join(given.getlist("run"))} if "run" in given else {}
    return {**given, **columns, **runs, **request.path_params}


def _file_name(sheet: str, request: Request) -> str:
    """Return the name of a file with a table: letters and digits, which all systems and headers can hold."""
    page, _, kind = sheet.partition(".")
    words = [page, *request.path_params.values()]
    return f"evalmeta-{_UNSAFE.sub('-', '-'.join(words))}.{kind}"


def _static(request: Request) -> Response:
    path = static_files().get(request.path_params["name"])
    if path is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return FileResponse(path, media_type=_TYPES.get(path.suffix), headers={"cache-control": "max-age=3600"})


def _unknown(_: Source, query: Query) -> Page:
    raise NotFound(f"page {query.get('path', '')!r} cannot be found")
