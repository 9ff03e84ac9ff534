from __future__ import annotations

import asyncio
import gzip
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.servers import TOKEN, URL, answering, connect, failing
from evalmeta import limits
from evalmeta.client.connection import Connection, _rest_error
from evalmeta.client.metadata import deploy, describe, list_components, retrieve
from evalmeta.client.runs import fetch_results, poll_run, start_run
from evalmeta.errors import (
    MessageUnreadable,
    NotFound,
    OrgError,
    OrgFault,
    OrgUnreachable,
    SettingsError,
    StoreError,
    SubjectNotBound,
    Suggestion,
    UsageError,
    WaitRanOut,
)
from evalmeta.model.registry import NEWEST_API_VERSION, Manifest
from evalmeta.protocol.metadata_api import AsyncResult
from evalmeta.protocol.soap import write_fault, write_results
from examples import at_most
from org.parts import ask

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization

HTML = b"<!DOCTYPE html>\n<html><head><title>Login</title></head><body><p>Sign in<br></body></html>"
HALF = write_results("deploy", [AsyncResult(done=False, id="0Af")])[:200]
EVERY_CALL = (
    describe,
    lambda connection: list_components(connection, "T"),
    lambda connection: deploy(connection, b"zip"),
    lambda connection: retrieve(connection, Manifest(())),
    lambda connection: start_run(connection, "Orders"),
    lambda connection: poll_run(connection, "4KB", wait=0, on_progress=lambda _: None),
    lambda connection: fetch_results(connection, "4KB"),
)


def rest_error(code: str, message: str) -> bytes:
    return orjson.dumps([{"message": message, "errorCode": code}])


@pytest.mark.slow
@pytest.mark.parametrize("call", EVERY_CALL)
@pytest.mark.parametrize("reply", [HTML, HALF, b"", b"null", b"{", b"<a/>", b"[]", b"\xff\xfe\x00"])
@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_a_reply_that_is_not_an_orgs_is_reported_with_the_address(call: object, reply: bytes, status: int) -> None:
    transport, _ = answering((status, reply))
    with pytest.raises(
        MessageUnreadable, match=f"^{URL} answered with status {status}, but the reply is not from an org"
    ) as raised:
        connect(transport, call)
    assert raised.value.actions
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize("call", EVERY_CALL)
@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("All connection attempts failed"),
        httpx.ReadTimeout(""),
        httpx.RemoteProtocolError("peer closed connection without sending complete message body"),
    ],
)
def test_no_answer_is_unreachable(call: object, error: Exception) -> None:
    with pytest.raises(OrgUnreachable, match=f"^{URL} does not answer: .+") as raised:
        connect(failing(error), call)
    assert raised.value.exit_code == 4


@settings(deadline=None, max_examples=at_most(50))
@given(st.binary(), st.sampled_from([200, 400, 500]))
def test_any_answer_is_a_result_or_an_error_of_the_org(reply: bytes, status: int) -> None:
    for call in EVERY_CALL:
        with suppress(OrgError, WaitRanOut):
            connect(answering((status, reply))[0], call)


@pytest.mark.parametrize("results", [[], [AsyncResult(done=True, id="1")] * 2])
def test_a_call_with_one_result_refuses_any_other_number(results: list[AsyncResult]) -> None:
    transport, _ = answering((200, write_results("deploy", results)))
    with pytest.raises(MessageUnreadable, match=f"answered deploy with {len(results)} results, not with one"):
        connect(transport, lambda connection: deploy(connection, b"zip"))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("SUBJECT_NOT_BOUND", SubjectNotBound),
        ("INVALID_SUBJECT", SettingsError),
        ("SERVER_UNAVAILABLE", StoreError),
        ("NOT_FOUND", NotFound),
        ("INVALID_INPUT", NotFound),
        ("INVALID_SESSION_ID", OrgFault),
    ],
)
def test_an_orgs_error_code_decides_the_error_class(code: str, kind: type[Exception]) -> None:
    for call, reply in (
        (start_run, rest_error(code, "no\nDo this.")),
        (list_components, write_fault(code, "no\nDo this.")),
    ):
        transport, _ = answering((500, reply))
        with pytest.raises(kind, match=r"no$") as raised:
            connect(transport, lambda connection, call=call: call(connection, "Orders"))
        assert (type(raised.value), raised.value.actions) == (kind, ("Do this.",))


def test_a_fault_shows_its_code_once() -> None:
    transport, _ = answering((401, rest_error("INVALID_SESSION_ID", "Session expired or invalid")))
    with pytest.raises(OrgFault) as raised:
        connect(transport, lambda connection: start_run(connection, "Orders"))
    assert str(raised.value) == "INVALID_SESSION_ID: Session expired or invalid"
    assert raised.value.code == "INVALID_SESSION_ID"


@pytest.mark.parametrize("call", EVERY_CALL)
def test_the_org_refuses_a_wrong_token(org: Organization, call: object) -> None:
    with pytest.raises(OrgFault) as raised:
        ask(org, call, token=TOKEN)
    assert raised.value.code == "INVALID_SESSION_ID"
    assert TOKEN not in str(raised.value)


def test_rest_requests_carry_the_token_in_the_header_and_soap_in_the_message() -> None:
    transport, requests = answering((500, b""))
    for call in EVERY_CALL:
        with suppress(OrgError):
            connect(transport, call)
    for request in requests:
        in_header, in_body = TOKEN in request.headers.get("authorization", ""), TOKEN.encode() in request.content
        assert (in_header, in_body) == (("/data/" in request.url.path), ("/Soap/" in request.url.path))
        assert TOKEN not in str(request.url)


def test_requests_go_where_salesforce_answers() -> None:
    transport, requests = answering((500, b""))
    for call in EVERY_CALL:
        with suppress(OrgError):
            connect(transport, call)
    runs = "/services/data/v66.0/einstein/ai-evaluations/runs"
    soap = ["/services/Soap/m/66.0"] * 4
    assert [request.url.path for request in requests] == [*soap, runs, f"{runs}/4KB", f"{runs}/4KB/results"]
    assert {request.headers["content-type"] for request in requests[:4]} == {"text/xml; charset=UTF-8"}


def connection_with(token: str) -> Connection:
    return Connection(url=URL, token=token, api_version=NEWEST_API_VERSION, transport=failing(httpx.ReadError("")))


def test_a_repr_shows_the_address_and_no_token() -> None:
    assert repr(connection_with(TOKEN)) == f"Connection({URL!r}, api_version='68.0')"


@pytest.mark.parametrize("token", ["", "top secret", "top-secret\n", "top-secrét", "top\x00secret"])
def test_a_token_that_no_header_can_carry_is_refused_unseen(token: str) -> None:
    with pytest.raises(UsageError) as raised:
        connection_with(token)
    assert "secr" not in str(raised.value)


def test_an_address_that_is_not_valid_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a valid address of an org"):
        Connection(url="http://[::1", token=TOKEN, api_version=NEWEST_API_VERSION)


def test_an_answer_over_the_limit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REPLY_BYTES", 1_000)
    transport, _ = answering((200, b'{"runId": "' + b"x" * 1_000 + b'"}'))
    with pytest.raises(MessageUnreadable, match="larger than 1,000 bytes"):
        connect(transport, lambda connection: start_run(connection, "Orders"))


def test_the_limit_counts_what_comes_out_of_compression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REPLY_BYTES", 1_000)
    packed = httpx.Response(200, content=gzip.compress(bytes(100_000)), headers={"content-encoding": "gzip"})
    with pytest.raises(MessageUnreadable, match="larger than 1,000 bytes"):
        connect(httpx.MockTransport(lambda _: packed), lambda connection: start_run(connection, "Orders"))


def test_damaged_compression_is_unreachable() -> None:
    damaged = {"content-encoding": "gzip"}

    async def raw() -> object:
        yield b"not gzip at all"

    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=raw(), headers=damaged))
    with pytest.raises(OrgUnreachable):
        connect(transport, lambda connection: start_run(connection, "Orders"))


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<half",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"no http\r\n\r\n",
    ],
)
def test_a_server_that_breaks_off_is_unreachable(reply: bytes) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    async def go() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
            port = server.sockets[0].getsockname()[1]
            async with Connection(
                url=f"http://127.0.0.1:{port}", token=TOKEN, api_version=NEWEST_API_VERSION, poll_seconds=0.001
            ) as connection:
                await describe(connection)

    with pytest.raises(OrgUnreachable, match="does not answer"):
        asyncio.run(go())


def test_an_answer_that_repeats_the_token_has_it_hidden() -> None:
    transport, _ = answering((200, b'{"said": "Bearer %s"}' % TOKEN.encode()))
    assert connect(transport, lambda connection: connection.get("/x")) == {"said": "Bearer [secret]"}


def test_a_connection_keeps_no_query_of_its_address() -> None:
    assert "canary" not in repr(Connection(url=f"{URL}/?sid=canary", token=TOKEN, api_version=NEWEST_API_VERSION))


def test_a_command_that_an_org_suggests_can_repeat_the_call_s_options() -> None:
    error = _rest_error(b'[{"errorCode": "LOST", "message": "lost\\nResume it: evalmeta test resume --job-id X"}]')

    assert error
    [action] = error.actions
    assert isinstance(action, Suggestion)
    assert (str(action), action.command) == (
        "Resume it: evalmeta test resume --job-id X",
        ("test", "resume", "--job-id", "X"),
    )
