from __future__ import annotations

import asyncio
import gzip
import logging
import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from client.servers import http_reply, replying_with
from evalmeta import limits
from evalmeta.engine.http_endpoint import Endpoint, Reply
from evalmeta.errors import (
    SettingsError,
    SubjectBusy,
    SubjectError,
    SubjectRefused,
    SubjectUnavailable,
    SubjectUnreachable,
)

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue

KEY = "canary/key+0123456789"


def ask(endpoint: Endpoint, body: JsonValue = None, path: str = "", **more: object) -> Reply:
    async def go() -> Reply:
        try:
            return await endpoint.send(body, path, **more)  # type: ignore[arg-type]
        finally:
            await endpoint.close()

    return asyncio.run(go())


def refusal(reply: bytes, *, kind: type[SubjectError] = SubjectError) -> SubjectError:
    """Return the error for a reply, which has exactly this class."""
    with replying_with(reply) as server, pytest.raises(SubjectError) as caught:
        ask(Endpoint(f"{server.url}/chat", secrets=[KEY]), {})
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    return caught.value


def test_json_goes_out_and_comes_back() -> None:
    with replying_with(http_reply(200, b'{"answer": "Yes."}')) as server:
        reply = ask(Endpoint(f"{server.url}/v1?day=1", headers={"X-Team": "desk"}), {"q": "é"}, "/chat")
    assert reply == Reply(200, {"answer": "Yes."})
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat?day=1 HTTP/1.1")
    assert b"x-team: desk" in head.lower()
    assert b"content-type: application/json" in head.lower()
    assert body == '{"q":"é"}'.encode()


def test_an_answer_without_a_body_may_be_allowed_and_headers_are_kept() -> None:
    with replying_with(http_reply(202, b"", "X-Session: s1")) as server:
        reply = ask(Endpoint(server.url), may_be_empty=True)
        assert (reply, reply.headers["x-session"]) == (Reply(202, None), "s1")
        with pytest.raises(SubjectError, match="empty answer"):
            ask(Endpoint(server.url))


def test_a_request_has_a_method_and_headers_of_its_own_and_may_have_no_body() -> None:
    with replying_with(http_reply(204, b"")) as server:
        reply = ask(Endpoint(server.url), method="DELETE", headers={"X-Reason": "UserRequest"})
    assert reply == Reply(204, None)
    assert server.requests[0].startswith(b"DELETE / ")
    assert b"x-reason: userrequest" in server.requests[0].lower()


def test_an_endpoint_that_was_never_asked_closes_too() -> None:
    asyncio.run(Endpoint("http://127.0.0.1:1").close())


def test_many_are_asked_at_the_same_time_over_any_transport() -> None:
    arrived = 0

    async def answer(_: httpx.Request) -> httpx.Response:
        nonlocal arrived
        arrived += 1
        while arrived < 200:
            await asyncio.sleep(0)
        return httpx.Response(200, json=arrived)

    async def go() -> list[Reply]:
        endpoint = Endpoint("https://desk.example", transport=httpx.MockTransport(answer))
        return await asyncio.gather(*(endpoint.send({}) for _ in range(200)))

    assert len(asyncio.run(go())) == 200


def test_cookies_of_one_session_are_not_sent_in_another() -> None:
    with replying_with(http_reply(200, b"{}", "Set-Cookie: session=1")) as server:

        async def go() -> None:
            endpoint = Endpoint(server.url)
            await endpoint.send({})
            await endpoint.send({})
            await endpoint.close()

        asyncio.run(go())
    assert b"cookie" not in server.requests[1].lower()


@pytest.mark.parametrize(
    ("status", "kind"), [(420, SubjectBusy), (429, SubjectBusy), (503, SubjectUnavailable), (529, SubjectBusy)]
)
def test_an_endpoint_that_is_busy_says_for_how_long(status: int, kind: type[SubjectBusy]) -> None:
    busy = refusal(http_reply(status, b'{"error": {"message": "Slow down"}}', "Retry-After: 7"), kind=kind)
    assert isinstance(busy, SubjectBusy)
    assert busy.after == 7
    assert f"status {status}: Slow down" in str(busy)


def test_an_endpoint_that_is_busy_need_not_say_for_how_long() -> None:
    busy = refusal(http_reply(429, b""), kind=SubjectBusy)
    assert isinstance(busy, SubjectBusy)
    assert busy.after is None
    assert str(busy).endswith("/chat answered with status 429")


def test_retry_after_ms_is_preferred_to_retry_after() -> None:
    busy = refusal(http_reply(429, b"", "Retry-After: 1", "retry-after-ms: 350"), kind=SubjectBusy)
    assert isinstance(busy, SubjectBusy)
    assert busy.after == 0.35


def test_a_byte_order_mark_is_ignored() -> None:
    with replying_with(http_reply(200, b'\xef\xbb\xbf{"a": 1}')) as server:
        assert ask(Endpoint(server.url)).value == {"a": 1}


def test_an_account_without_credit_is_not_busy() -> None:
    refusal(
        http_reply(429, b'{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}'),
        kind=SubjectRefused,
    )


@pytest.mark.parametrize("status", [408, 502, 504])
def test_a_gateway_error_is_transient(status: int) -> None:
    page = b"<html><head><style>p {}</style><title>Bad Gateway</title></head><body><p>nginx</p></body></html>"
    error = refusal(http_reply(status, page), kind=SubjectUnreachable)
    assert str(error).endswith(f"status {status}: Bad Gateway nginx")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "Out of order"}}', "Out of order"),
        (b'{"error": "Out of order"}', "Out of order"),
        (b'{"error": "NotFoundException", "message": "Out of order"}', "Out of order"),
        (b'{"detail": "Out of order"}', "Out of order"),
        (b'{"detail": [{"loc": ["q"]}]}', '{"detail": [{"loc": ["q"]}]}'),
        (b'["Out of order"]', '["Out of order"]'),
        (b'"Out of order"', "Out of order"),
        (b"Out\n of order", "Out of order"),
        (b"\xff", "�"),
        (b"x" * 400, "x" * 299 + "…"),
    ],
)
def test_a_refusal_gives_the_endpoints_own_words(body: bytes, words: str) -> None:
    error = refusal(http_reply(500, body), kind=SubjectRefused)
    assert isinstance(error, SubjectRefused)
    assert error.status == 500
    assert str(error).endswith(f"/chat answered with status 500: {words}")


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "check the key"), (403, "permissions"), (404, "url"), (405, "method")]
)
def test_some_refusals_say_what_to_check(status: int, hint: str) -> None:
    assert hint in str(refusal(http_reply(status, b""), kind=SubjectRefused))


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("spelling", [KEY, KEY.replace("/", "\\/"), f"Bearer {KEY}"])
def test_a_key_that_the_endpoint_repeats_shows_up_nowhere(status: int, spelling: str) -> None:
    with replying_with(http_reply(status, b'{"message": "key %s"}' % spelling.encode())) as server:
        endpoint = Endpoint(server.url, secrets=[KEY])
        try:
            shown = repr(ask(endpoint, {}).value)
        except SubjectError as error:
            shown = str(error)
    assert "key" in shown
    assert "[secret]" in shown
    assert "canary" not in shown


def test_a_key_of_one_request_is_kept_too() -> None:
    with replying_with(http_reply(500, KEY.encode())) as server, pytest.raises(SubjectError, match=r"\[secret\]"):
        ask(Endpoint(server.url), {}, secrets=[KEY])


def test_a_key_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with replying_with(http_reply(200, b"{}", f"X-Echo: {KEY}")) as server:
        ask(Endpoint(server.url, headers={"Authorization": f"Bearer {KEY}"}, secrets=[KEY]), {})
    assert caplog.records
    assert KEY not in caplog.text


def test_a_refused_connection_is_transient() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(SubjectUnreachable, match="is it running"):
        ask(Endpoint(url), {})


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    ],
)
def test_an_incomplete_answer_is_transient(reply: bytes) -> None:
    assert "does not answer" in str(refusal(reply, kind=SubjectUnreachable))


def test_an_invalid_head_is_not_quoted() -> None:
    refusal(f"{KEY}\r\n\r\n".encode(), kind=SubjectUnreachable)


def test_a_tls_error_is_not_transient() -> None:
    async def go() -> None:
        async with await asyncio.start_server(_speak_plainly, "127.0.0.1", 0) as server:
            await Endpoint(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}").send({})

    with pytest.raises(SubjectError, match="check the url") as caught:
        asyncio.run(go())
    assert type(caught.value) is SubjectError


async def _speak_plainly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "returned an empty answer; expected JSON"),
        (b" \n", "returned an empty answer; expected JSON"),
        (b"<h1>Welcome</h1>", "not valid JSON .*: Welcome"),
        (b'{"answer": NaN}', 'not valid JSON .*: {"answer": NaN}'),
        (b'{"answer": "\xff"}', "not valid JSON"),
        (b"[" * 101 + b"]" * 101, "more than 100 levels"),
        (b"[" * 100_000, "not valid JSON"),
        (b'"' + b"x" * 10_000_000 + b'"', "more than 8,000,000 bytes"),
    ],
)
def test_an_answer_that_is_not_json_is_quoted(body: bytes, words: str) -> None:
    with pytest.raises(SubjectError, match=words):
        raise refusal(http_reply(200, body))


def test_an_answer_that_grows_is_cut_off() -> None:
    body = gzip.compress(b" " * (limits.MAX_ENDPOINT_BYTES + 1))
    assert "more than" in str(refusal(http_reply(200, body, "Content-Encoding: gzip")))


def test_a_redirect_is_not_followed() -> None:
    reply = http_reply(307, b"", "Location: https://elsewhere.example/chat?token=1")
    assert str(refusal(reply)).endswith("/chat redirects to https://elsewhere.example; nothing was sent there")


def test_an_unexpected_status_is_an_error() -> None:
    assert "status 304" in str(refusal(http_reply(304, b""), kind=SubjectRefused))


def test_text_that_is_not_valid_unicode_is_not_sent() -> None:
    with pytest.raises(SubjectError, match="cannot be written"):
        ask(Endpoint("http://127.0.0.1:1"), {"utterance": "\ud800"})


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("agents.example.com/chat", "does not begin with http"),
        ("ftp://agents.example.com", "does not begin with http"),
        ("https://", "does not begin with http"),
        ("https://agents.example.com:port", "not valid: Invalid port"),
        ("https://agents.example.com:99999", "99999 is not a valid port"),
        ("https://agents..example.com", "its host is not a valid name"),
        (f"https://{'a' * 64}.example.com", "its host is not a valid name"),
        ("https://me:secret@agents.example.com", "user or a password"),
    ],
)
def test_an_invalid_url_is_reported_before_anything_is_sent(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        Endpoint(url)
    assert caught.value.actions
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://[::1]:8080/chat", "https://agents.example.com./chat", "https://bücher.example"]
)
def test_hosts_are_names_and_addresses(url: str) -> None:
    assert Endpoint(url)


def test_no_key_goes_over_plain_http_to_another_machine() -> None:
    with pytest.raises(SettingsError, match="sent unencrypted"):
        Endpoint("http://agents.example.com", secrets=[KEY])
    with pytest.raises(SettingsError, match="sent unencrypted"):
        ask(Endpoint("http://agents.example.com"), {}, secrets=[KEY])
    for url in ("https://agents.example.com", "http://localhost:1", "http://[::1]:1"):
        assert Endpoint(url, secrets=[KEY])
    assert Endpoint("http://agents.example.com")


def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with replying_with(http_reply(200, b"{}")) as server:
        assert ask(Endpoint(server.url), {}).value == {}
