from __future__ import annotations

import asyncio
import socket
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from client.oauth_server import CLIENT, OAuthServer, running
from evalmeta.client.auth import log_in_with_browser
from evalmeta.errors import LoginFailed, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.protocol.oauth import TokenReply


@pytest.fixture
def org() -> Iterator[OAuthServer]:
    with running() as server:
        yield server


def browse(url: str) -> httpx.Response:
    return httpx.get(url, follow_redirects=True, trust_env=False)


def log_in(org: OAuthServer, visit: Callable[[str], object] = browse, *, wait: float = 60.0) -> TokenReply:
    """Log in with a browser; `visit` opens the address."""

    def show(url: str) -> None:
        Thread(target=visit, args=(url,)).start()

    return asyncio.run(log_in_with_browser(org.url, CLIENT, show=show, port=0, wait=wait))


def callback_of(url: str) -> tuple[str, str]:
    query = parse_qs(urlsplit(url).query)
    return query["redirect_uri"][0], query["state"][0]


def test_a_browser_brings_a_session_that_can_be_renewed(org: OAuthServer) -> None:
    pages: list[str] = []
    reply = log_in(org, lambda url: pages.append(browse(url).text))
    assert reply.access_token in org.access_tokens
    assert reply.refresh_token in org.refresh_tokens
    # The server has checked the verifier and sent the browser to a loopback address.
    [query] = [parse_qs(urlsplit(path).query) for _, path, _ in org.requests if "/authorize" in path]
    assert urlsplit(query["redirect_uri"][0]).hostname == "localhost"


def test_a_denied_login_is_reported(org: OAuthServer) -> None:
    org.denies = True
    with pytest.raises(LoginFailed, match=r"access_denied \(end-user denied authorization\)"):
        log_in(org)


def test_what_other_pages_send_to_the_callback_changes_nothing(org: OAuthServer) -> None:
    statuses: list[int] = []

    def visit(url: str) -> None:
        callback, _ = callback_of(url)
        queries = ("code=stolen&state=guessed", "error=x&state=guessed", "", "code=%ff&state=" + "&" * 50)
        statuses.extend(browse(f"{callback}?{query}").status_code for query in queries)
        statuses.append(browse(callback.replace("OauthRedirect", "favicon.ico")).status_code)
        statuses.append(httpx.post(callback, trust_env=False).status_code)
        browse(url)

    assert log_in(org, visit).access_token in org.access_tokens
    assert statuses == [400, 400, 400, 400, 404, 404]
    assert not any("stolen" in body for _, _, body in org.requests)


def test_a_caller_that_breaks_off_or_sends_too_much_changes_nothing(org: OAuthServer) -> None:
    def visit(url: str) -> None:
        port = urlsplit(callback_of(url)[0]).port
        for sent in (b"", b"GET /OauthRedirect", b"GET /" + b"x" * 20_000, b"\xff\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as caller:
                caller.sendall(sent)
        browse(url)

    assert log_in(org, visit).access_token in org.access_tokens


def test_a_browser_login_times_out(org: OAuthServer) -> None:
    with pytest.raises(LoginFailed, match=r"nobody logged in within 0\.05 seconds"):
        log_in(org, lambda _: None, wait=0.05)


def test_a_port_in_use_is_reported(org: OAuthServer) -> None:
    port = urlsplit(org.url).port or 0
    with pytest.raises(UsageError, match=f"cannot listen on port {port}"):
        asyncio.run(log_in_with_browser(org.url, CLIENT, show=lambda _: None, port=port))
