"""An org with one agent behind the Agent API, as documented, with the checks of the API and configurable faults."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from evalmeta.errors import LoginFailed
from evalmeta.model.login import SignedIn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request

__all__ = ["AGENT_ID", "API", "ORG", "AgentApi", "jwt", "served"]

AGENT_ID = "0Xxed00000002Q1CAI"
API = "https://api.salesforce.com/einstein/ai-agent/v1"
ORG = "https://desk.my.salesforce.com"
_REASONS = {"UserRequest", "Transfer", "Expiration", "Error", "Other"}


def jwt(number: int = 1) -> str:
    """Return a string with the form of the API's token."""
    return f"eyJhbGciOiJub25lIn0.eyJzdWIiOiJrcTd3Mnpq.signature{number:04}"


def say(kind: str, text: str = "", plan_id: str = "") -> dict[str, object]:
    message_id = str(uuid.uuid4())
    return {
        "type": kind,
        "id": message_id,
        "feedbackId": message_id,
        "planId": plan_id,
        "isContentSafe": True,
        "message": text,
        "result": [],
        "citedReferences": [],
    }


class AgentApi:
    """The API, and the org that exchanges sessions for its tokens.

    Attributes:
        tokens: the bearer tokens that are good.
        sessions: the org's sessions, and the token that each is exchanged for; empty for none.
        answer: gives the messages for an utterance.
        traces: what plans tell, by utterance.
        broken: replies that come before the next requests are looked at, by method and end of the path.
        said: what was said in all sessions.
        started: the bodies that sessions were started with.
        ended: the reasons that sessions were ended for.
        signed_in: the tokens that sign-ins were to replace.
    """

    def __init__(self) -> None:
        self.tokens = {"good.token.of.the.api"}
        self.sessions: dict[str, str] = {}
        self.answer: Callable[[str], list[dict[str, object]]] = lambda text: [say("Inform", f"You said {text}", text)]
        self.traces: dict[str, object] = {}
        self.broken: list[tuple[str, str, Response]] = []
        self.said: list[str] = []
        self.started: list[dict[str, object]] = []
        self.ended: list[str] = []
        self.requests: list[tuple[str, str]] = []
        self.signed_in: list[str] = []
        self.exchanged = 0
        self.has_user = True
        self._open: dict[str, int] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        v1, preview = "/einstein/ai-agent/v1", "/einstein/ai-agent/v1.1/preview"
        self.app = Starlette(
            routes=[
                Route(f"{v1}/agents/{{agent}}/sessions", self._guarded(self._start), methods=["POST"]),
                Route(f"{v1}/sessions/{{session}}/messages", self._guarded(self._send), methods=["POST"]),
                Route(f"{v1}/sessions/{{session}}", self._guarded(self._end), methods=["DELETE"]),
                Route(f"{preview}/sessions/{{session}}/plans/{{plan}}", self._guarded(self._plan), methods=["GET"]),
                Route("/agentforce/bootstrap/nameduser", self._exchange, methods=["GET"]),
            ]
        )
        self.transport = httpx.ASGITransport(self.app)

    async def sign_in(self, org: str, *, instead_of: str = "") -> SignedIn:
        """Return the newest session; each is valid for one more token."""
        self.signed_in.append(instead_of)
        if org != "dev" or not self.sessions:
            raise LoginFailed(f"the session with {org} has ended")
        return SignedIn(ORG, list(self.sessions)[-1])

    def break_next(self, method: str, end: str, status: int, body: object = None, **headers: str) -> None:
        """Answers one request to a path with this end like this."""
        self.broken.append((method, end, JSONResponse(body or error(status), status, headers)))

    def _guarded(self, answer: Callable[[Request], object]) -> Callable[[Request], object]:
        async def guarded(request: Request) -> Response:
            self.requests.append((request.method, request.scope["path"]))
            # Requests that come together are looked at together.
            await asyncio.sleep(0)
            if broken := self._broken(request):
                return broken
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            if scheme != "Bearer" or token not in self.tokens:
                return refusal(401, "Unauthorized", f"Invalid token {token}")
            return await answer(request)

        return guarded

    def _broken(self, request: Request) -> Response | None:
        for each in self.broken:
            method, end, reply = each
            if method == request.method and request.scope["path"].endswith(end):
                self.broken.remove(each)
                return reply
        return None

    async def _start(self, request: Request) -> Response:
        body = await request.json()
        self.started.append(body)
        if request.path_params["agent"] != AGENT_ID:
            return refusal(404, "NotFoundException", "Agent not found")
        if body["bypassUser"] and not self.has_user:
            return refusal(400, "BadRequestException", "Invalid user ID provided on start session: ")
        uuid.UUID(body["externalSessionKey"])
        session = str(uuid.uuid4())
        self._open[session], self._locks[session] = 0, asyncio.Lock()
        return JSONResponse({"sessionId": session, "_links": {}, "messages": [say("Inform", "Hi, I'm an agent.")]})

    async def _send(self, request: Request) -> Response:
        session = request.path_params["session"]
        if session not in self._open:
            return refusal(404, "NotFoundException", f"V6Session not found for sessionId: {session}")
        if self._locks[session].locked():
            return refusal(423, "LockedException", "Session already locked")
        async with self._locks[session]:
            message = (await request.json())["message"]
            if message["sequenceId"] <= self._open[session] or message["type"] != "Text":
                return refusal(400, "BadRequestException", "Invalid sequenceId")
            self._open[session] = message["sequenceId"]
            self.said.append(message["text"])
            # Whoever does not wait for the answer meets a locked session.
            await asyncio.sleep(0)
            return JSONResponse({"messages": self.answer(message["text"]), "_links": {}})

    async def _end(self, request: Request) -> Response:
        reason = request.headers.get("x-session-end-reason", "")
        if reason not in _REASONS or self._open.pop(request.path_params["session"], None) is None:
            return refusal(404, "NotFoundException", "V6Session not found")
        self.ended.append(reason)
        ended = {"type": "SessionEnded", "id": "1", "reason": "ClientRequest", "feedbackId": "1"}
        return JSONResponse({"messages": [ended], "_links": {}})

    async def _plan(self, request: Request) -> Response:
        trace = self.traces.get(request.path_params["plan"])
        return refusal(404, "NotFoundException", "Plan not found") if trace is None else JSONResponse(trace)

    async def _exchange(self, request: Request) -> Response:
        self.exchanged += 1
        if broken := self._broken(request):
            return broken
        if "authorization" in request.headers:
            return refusal(400, "BadRequestException", "two sessions")
        session = request.headers.get("cookie", "").removeprefix("sid=")
        if token := self.sessions.get(session):
            return JSONResponse({"access_token": token, "token_format": "jwt", "token_type": "Bearer"})
        return Response("<html>Log in</html>", 200, media_type="text/html")


def error(status: int, name: str = "HttpServerErrorException", message: str = "It is late") -> dict[str, object]:
    return {
        "status": status,
        "path": "v6.0.0/sessions",
        "requestId": "e6840f72",
        "error": name,
        "message": message,
        "timestamp": 1740760662466,
        "expected": True,
    }


def refusal(status: int, name: str, message: str) -> Response:
    return JSONResponse(error(status, name, message), status)


@asynccontextmanager
async def served(api: AgentApi) -> AsyncIterator[str]:
    """Serves it on loopback and gives the address."""
    server = uvicorn.Server(uvicorn.Config(api.app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
