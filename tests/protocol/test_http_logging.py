from __future__ import annotations

import asyncio
import logging

import httpx
import pytest

from client.servers import http_reply, replying_with
from evalmeta.client.http import bearer, open_http, request
from evalmeta.errors import UsageError
from evalmeta.protocol.http import error_reason, redacted_logs

ANSWER = http_reply(200, b"{}", "Set-Cookie: sid=canary")


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


async def ask(url: str) -> None:
    async with open_http(url) as http:
        await request(http, "GET", "/")


def test_our_requests_are_logged_without_what_was_answered(caplog: pytest.LogCaptureFixture) -> None:
    with replying_with(ANSWER) as server:
        asyncio.run(ask(server.url))
    assert "receive_response_headers.complete" in caplog.messages
    assert f'HTTP Request: GET {server.url}/ "HTTP/1.1 200 Said"' in caplog.messages
    assert "canary" not in caplog.text


def test_requests_of_the_program_around_us_are_logged_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    with replying_with(ANSWER) as server:
        asyncio.run(ask(server.url))
        httpx.get(server.url, trust_env=False)
    assert "canary" in caplog.text


def test_discretion_ends_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), redacted_logs():
        raise ZeroDivisionError
    logging.getLogger("httpx").info("it has exception=canary")
    assert "canary" in caplog.text


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx.RemoteProtocolError("illegal status line: bytearray(b'canary')"), "illegal status line"),
        (httpx.LocalProtocolError("Illegal header value b'Bearer canary'"), "Illegal header value"),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), None),
        (httpx.ConnectError("[Errno 111] Connection refused"), None),
        (httpx.ReadTimeout(""), "ReadTimeout"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_reason_quotes_nothing(error: httpx.HTTPError | TimeoutError, reason: str | None) -> None:
    assert error_reason(error) == (reason or str(error))


@pytest.mark.parametrize("token", ["", "canary canary", "canary\n", "canar\u00ff"])
def test_a_token_that_no_header_can_carry_is_refused_unseen(token: str) -> None:
    with pytest.raises(UsageError) as raised:
        bearer(token)
    assert "canar" not in str(raised.value)
