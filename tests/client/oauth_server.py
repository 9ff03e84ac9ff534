"""An org on loopback that gives out sessions: it checks signatures, verifiers, refresh tokens and secrets."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from evalmeta.protocol.metadata_api import FileProperties
from evalmeta.protocol.oauth import challenge_of
from evalmeta.protocol.soap import write_fault, write_results

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CLIENT", "SECRET", "USERNAME", "OAuthServer", "key_pair", "running"]

CLIENT = "3MVG9.client"
SECRET = "client.secret.value"  # noqa: S105 - of no app
USERNAME = "ci@example.com"


@cache
def key_pair() -> RSAKey:
    """Create one key for all tests, because creating it is slow."""
    return RSAKey.generate_key(2048)


class OAuthServer:
    """What the org knows, and what it was sent.

    Attributes:
        url: its address.
        requests: method, path and body of every request.
        access_tokens: the sessions that are good.
        refresh_tokens: those that are good; each is good once when `rotates`.
        leads_to: redirects every request below /services/data/v there, when it is set.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, str, str]] = []
        self.access_tokens: set[str] = set()
        self.refresh_tokens: set[str] = set()
        self.codes: dict[str, dict[str, str]] = {}
        self.rotates = False
        self.user_info = {
            "user_id": "005000000000001",
            "organization_id": "00D000000000001",
            "preferred_username": USERNAME,
        }
        self.username = USERNAME
        self.denies = False
        self.newest = "66.0"
        self.leads_to = ""

    def new_session(self) -> str:
        """Create an access token."""
        token = f"00D000000000001!{secrets.token_hex(20)}"
        self.access_tokens.add(token)
        return token

    def new_refresh_token(self) -> str:
        """Create a refresh token."""
        token = f"5Aep.{secrets.token_hex(20)}"
        self.refresh_tokens.add(token)
        return token

    def grant(self, form: dict[str, str]) -> dict[str, str] | None:
        """Return a session for a valid grant."""
        session = {"access_token": self.new_session(), "instance_url": self.url + "/"}
        match form.get("grant_type"):
            case "urn:ietf:params:oauth:grant-type:jwt-bearer" if self._is_signed(form["assertion"]):
                return session
            case "refresh_token" if self._may_refresh(form):
                return session | ({"refresh_token": self.new_refresh_token()} if self.rotates else {})
            case "authorization_code" if self._is_verified(form):
                return {**session, "refresh_token": self.new_refresh_token()}
            case _:
                return None

    def authorize(self, query: dict[str, str]) -> str:
        """Return the address to which the browser is redirected."""
        answer = {"state": query["state"]}
        if self.denies:
            answer |= {"error": "access_denied", "error_description": "end-user denied authorization"}
        else:
            answer["code"] = secrets.token_hex(8)
            self.codes[answer["code"]] = query
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    def _is_signed(self, assertion: str) -> bool:
        try:
            claims = jwt.decode(assertion, key_pair(), algorithms=["RS256"]).claims
        except (JoseError, ValueError):
            return False
        return (claims["iss"], claims["sub"], claims["aud"]) == (CLIENT, USERNAME, self.url)

    def _may_refresh(self, form: dict[str, str]) -> bool:
        good = form["refresh_token"] in self.refresh_tokens and form.get("client_secret", SECRET) == SECRET
        if good and self.rotates:
            self.refresh_tokens.discard(form["refresh_token"])
        return good

    def _is_verified(self, form: dict[str, str]) -> bool:
        asked = self.codes.pop(form["code"], {})
        same = all(asked.get(name) == form[name] for name in ("client_id", "redirect_uri"))
        return same and asked["code_challenge"] == challenge_of(form["code_verifier"])


@contextmanager
def running() -> Iterator[OAuthServer]:
    """Serve a new org on a free port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.org = OAuthServer(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.org
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        org: OAuthServer = self.server.org
        org.requests.append(("GET", self.path, ""))
        place = urlsplit(self.path)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if place.path == "/services/oauth2/authorize":
            return self._redirect(org.authorize({name: values[0] for name, values in parse_qs(place.query).items()}))
        if place.path == "/services/data":
            return self._json(200, [{"version": version} for version in ("60.0", org.newest)])
        if token not in org.access_tokens:
            return self._json(401, [{"errorCode": "INVALID_SESSION_ID", "message": "Session expired or invalid"}])
        if place.path.startswith("/services/data/v") and org.leads_to:
            return self._redirect(org.leads_to)
        if place.path == "/services/oauth2/userinfo":
            return self._json(200, org.user_info)
        return self._json(200, {"Username": org.username})

    def do_POST(self) -> None:
        org: OAuthServer = self.server.org
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        org.requests.append(("POST", self.path, body))
        if self.path == "/services/oauth2/token":
            session = org.grant({name: values[0] for name, values in parse_qs(body).items()})
            refusal = {"error": "invalid_grant", "error_description": "expired authorization code"}
            return self._json(200 if session else 400, session or refusal)
        if not any(token in body for token in org.access_tokens):
            return self._reply(500, "text/xml", write_fault("INVALID_SESSION_ID", "Session expired or invalid"))
        listed = [FileProperties("AiEvaluationDefinition", "Orders", "Orders.aiEvaluationDefinition")]
        return self._reply(200, "text/xml", write_results("listMetadata", listed))

    def _json(self, status: int, content: object) -> None:
        self._reply(status, "application/json", orjson.dumps(content))

    def _redirect(self, address: str) -> None:
        self._reply(302, "text/html", b"", location=address)

    def _reply(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
