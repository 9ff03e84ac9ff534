"""The pages as routes of a Starlette application: logins, forms, and events about unfinished runs."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from evalmeta import limits
from evalmeta.errors import EvalmetaError, LoginFailed, NotFound, StoreLocked, UsageError
from evalmeta.model.login import ADMIN
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs
from evalmeta.store.users import Users
from evalmeta.viewer.pages import ROOT, Page, ServedLinks, Source
from evalmeta.viewer.routes import ACTIONS, PAGES, POLICY, SECTION_OF, render, static_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.requests import Request

    from evalmeta.model.login import User
    from evalmeta.org.handlers.rest import Frontdoor
    from evalmeta.package.project import Project
    from evalmeta.store.database import Database
    from evalmeta.viewer.pages import Action, MakePage, Query

# With the usual `no-referrer`, browsers send forms with the origin `null`, which is refused.
_HEADERS: Final = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
_LINKS: Final = ServedLinks({"live": "/live", **{name: row.path for name, row in (PAGES | ACTIONS).items()}})
_MAX_FIELDS: Final = 100
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class _Session(NamedTuple):
    token: str
    expires: float


class Viewer:
    """Serve a project's pages to users of its org, who log in with their tokens; the holder of `token` is the admin."""

    def __init__(self, project: Project, token: str) -> None:
        self._project = project
        self._token = token
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def routes(self) -> list[Route]:
        """Return the routes of all pages, below `/view`."""
        return [
            Route(f"{ROOT}/static/{{name}}", _static, methods=["GET"]),
            Route(f"{ROOT}/login", self._log_in, methods=["POST"]),
            Route("/secur/frontdoor.jsp", self._open_once, methods=["GET"]),
            Route(f"{ROOT}/live", self._live, methods=["GET"]),
            *(
                Route(ROOT + row.path, partial(self._page, name, row.make), methods=["GET"], middleware=_ON_FAULT)
                for name, row in PAGES.items()
            ),
            *(
                Route(ROOT + row.path, partial(self._act, row.do), methods=["POST"], middleware=_ON_FAULT)
                for row in ACTIONS.values()
            ),
            Route(f"{ROOT}/", RedirectResponse(ROOT), methods=["GET"]),
            Route(f"{ROOT}/{{path:path}}", partial(self._page, "", _unknown), methods=["GET"]),
        ]

    def _page(self, name: str, make: MakePage, request: Request) -> Response:
        """Return a page; without a valid session, the page to log in."""
        if token := request.query_params.get("token"):
            return self._open(request, token)
        session, query = _session(request), {**request.query_params, **request.path_params}
        try:
            with self._source(session) as source:
                html = render(
                    make(source, query), _LINKS, source, section=SECTION_OF.get(name, ""), csrf=_csrf(session)
                )
        except EvalmetaError as error:
            return _failed(error)
        return HTMLResponse(html, headers=_HEADERS)

    async def _act(self, do: Action, request: Request) -> Response:
        """Change something, and show the page that the action names."""
        session, form = _session(request), await _form(request)
        if not secrets.compare_digest(form.pop("csrf", "").encode(), _csrf(session).encode()):
            return _login(status=HTTPStatus.UNAUTHORIZED)

        def act() -> str:
            with self._source(session) as source:
                target = do(source, {**form, **request.path_params})
            return _LINKS(target.page, **target.parameters)

        try:
            address = await run_in_threadpool(act)
        except EvalmetaError as error:
            return _failed(error)
        return RedirectResponse(address, status_code=HTTPStatus.SEE_OTHER)

    async def _log_in(self, request: Request) -> Response:
        form = await _form(request)
        return await run_in_threadpool(self._open, request, form.get("token", "").strip())

    def _open(self, request: Request, token: str) -> Response:
        """Log in the user of a token, and show the address again without the token."""
        try:
            with open_database(self._project.state_dir) as database:
                user = self._user(database, token)
        except EvalmetaError as error:
            return _failed(error)
        if user is None:
            return _login(status=HTTPStatus.UNAUTHORIZED, wrong=True)
        return self._start(request, token, request.url.path if request.method == "GET" else ROOT)

    def _open_once(self, request: Request) -> Response:
        """Log in the user of an address that is valid once, and show the page that `startURL` names."""
        # Only a served org gives out such addresses.
        frontdoor: Frontdoor | None = getattr(request.app.state, "frontdoor", None)
        token = frontdoor.redeem(request.query_params.get("otp", "")) if frontdoor else None
        if token is None:
            return _login(status=HTTPStatus.UNAUTHORIZED, wrong=True)
        target = "/" + request.query_params.get("startURL", "").lstrip("/")
        return self._start(request, token, target if target.startswith(f"{ROOT}/") else ROOT)

    def _start(self, request: Request, token: str, target: str) -> Response:
        """Start a session for the user of a token, and show an address."""
        session = secrets.token_urlsafe(32)
        self._sessions[session] = _Session(token, time.time() + limits.VIEW_SESSION_SECONDS)
        while len(self._sessions) > limits.MAX_VIEW_SESSIONS:
            self._sessions.popitem(last=False)
        reply = RedirectResponse(target, status_code=HTTPStatus.SEE_OTHER)
        is_secure = request.url.scheme == "https"
        reply.set_cookie(_cookie(request), session, path=ROOT, httponly=True, samesite="lax", secure=is_secure)
        return reply

    @contextmanager
    def _source(self, session: str) -> Iterator[Source]:
        """Open the store for the user of a session; raise LoginFailed if the session is not valid any more."""
        known = self._sessions.get(session)
        with open_database(self._project.state_dir) as database:
            user = self._user(database, known.token) if known and known.expires > time.time() else None
            if user is None:
                raise LoginFailed("the session has ended")
            yield Source(self._project, database, user)

    def _user(self, database: Database, token: str) -> User | None:
        if secrets.compare_digest(token.encode(), self._token.encode()):
            return ADMIN
        return Users(database).user_of(token, now=time.time())

    async def _live(self, request: Request) -> Response:
        """Send an event when runs start, end or get results (HTML Standard, section 9.2, Server-sent events)."""
        session = _session(request)
        try:
            before = await run_in_threadpool(self._state, session)
        except EvalmetaError as error:
            return _failed(error)
        return StreamingResponse(self._events(session, before), media_type="text/event-stream", headers=_HEADERS)

    async def _events(self, session: str, before: str) -> AsyncIterator[str]:
        yield "retry: 1000\n\n"
        # The browser calls again when the reply ends, so that a forgotten page does not keep a connection.
        for _ in range(limits.VIEW_EVENT_POLLS):
            await asyncio.sleep(limits.VIEW_POLL_SECONDS)
            try:
                now = await run_in_threadpool(self._state, session)
            except EvalmetaError:
                return
            if now != before:
                yield "event: change\ndata: runs\n\n"
                before = now

    def _state(self, session: str) -> str:
        """Return a text that changes when a run that the user may see starts, ends or gets results."""
        with self._source(session) as source:
            runs, user = Runs(source.database), source.user
            ids = [run_id for run_id, _ in runs.unfinished() if runs.is_visible_to(run_id, user)]
            counts = [(run_id, runs.count(run_id).total()) for run_id in ids]
            sql = "SELECT max(ended_at), count(*) FROM run WHERE ? OR user_id = ?"
            return repr((counts, source.database.query(sql, (user.is_admin, user.id))))


def _static(request: Request) -> Response:
    path = static_files().get(request.path_params["name"])
    if path is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return FileResponse(path, media_type=_TYPES.get(path.suffix), headers={"cache-control": "max-age=3600"})


def _unknown(_: Source, query: Query) -> Page:
    raise NotFound(f"page {query.get('path', '')!r} cannot be found")


def _login(*, status: int, wrong: bool = False) -> Response:
    page = Page("login.html.j2", "Log in", {"wrong": wrong, "action": f"{ROOT}/login"})
    return HTMLResponse(render(page, _LINKS), status_code=status, headers=_HEADERS)


def _failed(error: EvalmetaError) -> Response:
    """Return a page that says what happened and what to do, with a way back."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    if isinstance(error, LoginFailed):
        return _login(status=HTTPStatus.UNAUTHORIZED)
    if isinstance(error, StoreLocked):
        status = HTTPStatus.SERVICE_UNAVAILABLE
    elif isinstance(error, UsageError):
        status = HTTPStatus.NOT_FOUND if isinstance(error, NotFound) else HTTPStatus.BAD_REQUEST
    page = Page(
        "error.html.j2", "Not shown", {"message": str(error), "actions": [str(action) for action in error.actions]}
    )
    return HTMLResponse(render(page, _LINKS), status_code=status, headers=_HEADERS)


def _unexpected(_: Request, __: Exception) -> Response:
    """Return a page that tells nothing; the guard of requests logs the error."""
    actions = ["Try it again.", "The log says more: logs in the project's state folder."]
    page = Page("error.html.j2", "Not shown", {"message": "an unexpected error happened", "actions": actions})
    return HTMLResponse(render(page, _LINKS), status_code=HTTPStatus.INTERNAL_SERVER_ERROR, headers=_HEADERS)


_ON_FAULT: Final = (Middleware(ServerErrorMiddleware, handler=_unexpected),)


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, the last of each name."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limits.MAX_FORM_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None


def _session(request: Request) -> str:
    return request.cookies.get(_cookie(request), "")


def _cookie(request: Request) -> str:
    # Browsers send a cookie to all ports of a host.
    return f"evalmeta_{request.url.port or request.url.scheme}"


def _csrf(session: str) -> str:
    """Return what forms of a session must send back; other origins can neither read nor compute it."""
    return hashlib.sha256(f"csrf {session}".encode()).hexdigest()
