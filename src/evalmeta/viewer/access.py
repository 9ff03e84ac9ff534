"""Who may see the pages: logins by codes and tokens, sessions, log-out, and the page to which a login leads."""

from __future__ import annotations

import hashlib
import re
import secrets
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from evalmeta import limits
from evalmeta.errors import EvalmetaError, LoginFailed
from evalmeta.store.database import Database, open_database
from evalmeta.store.users import Holder, Sessions, Users, public_id
from evalmeta.viewer.pages import ROOT, Page, Source
from evalmeta.viewer.replies import failed, page_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from evalmeta.org.serving.login_codes import LoginCodes
    from evalmeta.package.project import Project


OPEN: Final = f"{ROOT}/open"
_LOG_IN: Final = f"{ROOT}/login"
_LOG_OUT: Final = f"{ROOT}/logout"
_MAX_FIELDS: Final = 100
# A path of this server: browsers read a backslash as a slash, and drop tabs and line ends.
_TARGET: Final = re.compile(rf"{ROOT}(?:[/?][^\\\x00-\x20\x7f]*)?")
# What browsers say of an address that was typed, pasted or opened by another program, and of one on our own pages.
_NOT_FROM_OTHER_SITES: Final = frozenset({"none", "same-origin"})


class Access:
    """Log users of an org in and out, and open its store for their sessions."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def routes(self) -> list[Route]:
        """Return the routes of logins."""
        return [
            Route(_LOG_IN, self._log_in, methods=["POST"]),
            Route(_LOG_OUT, self._log_out, methods=["POST"]),
            *(Route(path, RedirectResponse(ROOT), methods=["GET"]) for path in (_LOG_IN, _LOG_OUT)),
            Route(OPEN, self._open, methods=["GET"]),
            Route("/secur/frontdoor.jsp", self._open_as_salesforce, methods=["GET"]),
        ]

    @contextmanager
    def source(self, session: str) -> Iterator[Source]:
        """Open the store for the user of a session; raise LoginFailed if the session has ended."""
        with open_database(self._project.store) as database:
            user = Sessions(database).user_of(session, now=database.now())
            if user is None:
                raise LoginFailed("the session has ended")
            # What is changed in an archive would be lost with the end of the server.
            yield Source(self._project, database, user, can_change=not self._project.is_archive)

    async def _log_in(self, request: Request) -> Response:
        form = await form_of(request)
        target = _safe(form.get("next", ""))
        return await run_in_threadpool(self._start, request, form.get("token", "").strip(), target)

    async def _log_out(self, request: Request) -> Response:
        session, form = session_of(request), await form_of(request)
        if not is_csrf(session, form):
            return login_page()

        def end() -> None:
            with open_database(self._project.store) as database:
                Sessions(database).end(session)

        try:
            await run_in_threadpool(end)
        except EvalmetaError as error:
            return failed(error)
        reply = login_page(status=HTTPStatus.OK, message="You have logged out.")
        reply.delete_cookie(_cookie(request), path=ROOT)
        return reply

    def _open(self, request: Request) -> Response:
        """Log in by the code of an address."""
        query = request.query_params
        return self._open_by(request, query.get("code", ""), _safe(query.get("next", "")))

    def _open_as_salesforce(self, request: Request) -> Response:
        query = request.query_params
        return self._open_by(request, query.get("otp", ""), _safe("/" + query.get("startURL", "").lstrip("/")))

    def _open_by(self, request: Request, code: str, target: str) -> Response:
        """Log in by a code; ask first if another site may have led the browser here, with a code of its own user."""
        codes: LoginCodes = request.app.state.login_codes
        holder = codes.holder_of(code)
        is_asked_for = request.headers.get("sec-fetch-site", "") in _NOT_FROM_OTHER_SITES
        if holder is None or codes.is_private(code) or is_asked_for:
            return self._start(request, code, target)
        with open_database(self._project.store) as database:
            user = Users(database).get(holder.user_id)
        values = {"code": code, "next": target, "user": user, "action": _LOG_IN}
        return page_reply(Page("confirm_login.html.j2", "Log in", values))

    def _start(self, request: Request, secret: str, target: str) -> Response:
        """Start a session by a code or a token, and show a page without them in its address."""
        codes: LoginCodes = request.app.state.login_codes
        try:
            with open_database(self._project.store) as database:
                holder = codes.redeem(secret) or _holder_of_token(database, secret)
                if holder is None:
                    message = "This code or token is not valid: a code logs in once, and only for some minutes."
                    return login_page(target, message=message, is_error=True)
                sessions = Sessions(database)
                sessions.end(session_of(request))
                session = sessions.add(holder, now=database.now())
        except EvalmetaError as error:
            return failed(error)
        reply = RedirectResponse(target, status_code=HTTPStatus.SEE_OTHER)
        is_secure = request.url.scheme == "https"
        reply.set_cookie(_cookie(request), session, path=ROOT, httponly=True, samesite="lax", secure=is_secure)
        return reply


def login_page(
    target: str = ROOT, *, status: int = HTTPStatus.UNAUTHORIZED, message: str = "", is_error: bool = False
) -> Response:
    """Return the page that asks for a code or a token, and then shows `target`."""
    values = {"message": message, "is_error": is_error, "next": target, "action": _LOG_IN}
    return page_reply(Page("login.html.j2", "Log in", values), status=status)


def address_of(request: Request) -> str:
    """Return the address of a request with its filters, as a page to which a login may lead."""
    query = request.scope["query_string"]
    return _safe((request.scope["raw_path"] + (b"?" + query if query else b"")).decode("latin-1"))


async def form_of(request: Request) -> dict[str, str]:
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


def session_of(request: Request) -> str:
    """Return the secret of a browser's session; empty if it has none."""
    return request.cookies.get(_cookie(request), "")


def csrf_of(session: str) -> str:
    """Return what forms of a session must send back; other origins can neither read nor compute it."""
    return hashlib.sha256(f"csrf {session}".encode()).hexdigest()


def is_csrf(session: str, form: dict[str, str]) -> bool:
    """Return whether a form has the value of its session, and remove it from the form."""
    return secrets.compare_digest(form.pop("csrf", "").encode(), csrf_of(session).encode())


def _holder_of_token(database: Database, token: str) -> Holder | None:
    user = Users(database).user_of(token, now=database.now())
    return Holder(user.id, public_id(token)) if user else None


def _safe(target: str) -> str:
    """Return the address of a page of this server; the first page for all other addresses."""
    return target if len(target) <= limits.MAX_HEADER_BYTES // 2 and _TARGET.fullmatch(target) else ROOT


def _cookie(request: Request) -> str:
    # Browsers send a cookie to all ports of a host.
    return f"evalmeta_{request.url.port or request.url.scheme}"
