from __future__ import annotations

import asyncio

import httpx
import pytest

from client.oauth_server import running
from client.servers import URL, answering, failing
from evalmeta import limits
from evalmeta.client.connection import Connection
from evalmeta.client.http import Reply, open_http, request
from evalmeta.errors import MessageUnreadable, OrgFault, OrgUnreachable, UsageError
from evalmeta.model.registry import ApiVersion


def ask(transport: httpx.AsyncBaseTransport) -> Reply:
    async def go() -> Reply:
        async with open_http(URL, transport=transport) as http:
            return await request(http, "POST", "/login", form={"a": "b"})

    return asyncio.run(go())


def test_an_answer_comes_back_with_its_status() -> None:
    transport, requests = answering((418, b"tea"))
    assert ask(transport) == Reply(418, b"tea")
    assert requests[0].content == b"a=b"


def test_a_redirect_is_not_followed_and_only_its_host_is_shown() -> None:
    moved = httpx.Response(307, headers={"location": "https://elsewhere.example/x?sid=canary"})
    with pytest.raises(
        MessageUnreadable, match=f"^{URL} redirects to https://elsewhere.example; nothing was sent"
    ) as raised:
        ask(httpx.MockTransport(lambda _: moved))
    assert "canary" not in f"{raised.value} {raised.value.actions}"


def test_a_redirect_to_an_invalid_address_is_reported() -> None:
    moved = httpx.Response(302, headers={"location": "http://desk:canary/"})
    with pytest.raises(OrgUnreachable, match="Invalid URL in location header"):
        ask(httpx.MockTransport(lambda _: moved))


def test_no_answer_is_unreachable() -> None:
    with pytest.raises(OrgUnreachable, match=f"^{URL} does not answer: ReadTimeout"):
        ask(failing(httpx.ReadTimeout("")))


def test_an_answer_over_the_limit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LOGIN_BYTES", 10)
    with pytest.raises(MessageUnreadable, match="larger than 10 bytes"):
        ask(answering((200, bytes(11)))[0])


def test_no_token_is_sent_unencrypted_to_another_machine() -> None:
    with pytest.raises(UsageError, match="is not allowed: it would send the access token unencrypted"):
        Connection(url="http://desk.example", token="canary", api_version=ApiVersion(66))  # noqa: S106 - of no org


@pytest.mark.parametrize("kind", ["http_proxy", "all_proxy"])
def test_no_proxy_sees_the_token_of_an_org_on_this_machine(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv(kind, "http://127.0.0.1:9")
    with running() as org:
        assert connected(org.url, org.new_session()) == "66.0"


def connected(url: str, token: str) -> str:
    async def go() -> str:
        async with Connection(url=url, token=token, api_version=ApiVersion(66)) as connection:
            return str(await connection.newest_version())

    return asyncio.run(go())


def test_a_connection_follows_no_redirect() -> None:
    with running() as org, running() as elsewhere:
        org.leads_to = f"{elsewhere.url}/services/data/v66.0/limits"
        with pytest.raises(MessageUnreadable, match=f"it redirects to {elsewhere.url}; nothing was sent there"):
            limits_of(org.url, [org.new_session()])
        assert elsewhere.requests == []


def limits_of(url: str, tokens: list[str]) -> list[str]:
    """Send two requests; the first token is the connection's, the others replace expired ones."""

    async def renew() -> str:
        return tokens.pop(0)

    async def go() -> list[str]:
        version = ApiVersion(66)
        async with Connection(url=url, token=tokens.pop(0), api_version=version, renew=renew) as connection:
            await asyncio.gather(connection.get("/limits"), connection.get("/limits"))
        return tokens

    return asyncio.run(go())


def test_a_session_that_ended_is_renewed_once_for_all_who_wait() -> None:
    with running() as org:
        assert limits_of(org.url, ["00D!ended", org.new_session(), "00D!third"]) == ["00D!third"]


def test_a_new_session_that_is_refused_too_is_an_error() -> None:
    with running() as org, pytest.raises(OrgFault) as raised:
        limits_of(org.url, ["00D!ended", "00D!also", "00D!fourth", "00D!fifth"])
    assert raised.value.code == "INVALID_SESSION_ID"
