from __future__ import annotations

import time
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.servers import TOKEN, answering, connect, http_reply, listening, replying_with, visit
from evalmeta import limits
from evalmeta.client.http import Backoff
from evalmeta.client.metadata import cancel, list_components, quick_deploy, submit
from evalmeta.errors import MessageUnreadable, OrgBusy, OrgFault, OrgUnreachable
from evalmeta.protocol.metadata_api import AsyncResult, CancelResult, FileProperties
from evalmeta.protocol.soap import write_fault, write_results, write_text_result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalmeta.client.connection import Connection

    Call = Callable[[Connection], Awaitable[object]]

LISTED = http_reply(200, write_results("listMetadata", [FileProperties("T", "A", "ts/A.t")]))
RECEIPT = http_reply(200, write_results("deploy", [AsyncResult(done=False, id="0Af1")]))
CANCELED = http_reply(200, write_results("cancelDeploy", [CancelResult(done=False, id="0Af1")]))
QUICK = http_reply(200, write_text_result("deployRecentValidation", "0Af2"))
HTML = b"<html><body>Down for maintenance</body></html>"
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<half"
CHANGES = (
    (lambda connection: submit(connection, b"zip"), RECEIPT),
    (lambda connection: cancel(connection, "0Af1"), CANCELED),
    (lambda connection: quick_deploy(connection, "0Af1"), QUICK),
)


def list_them(connection: Connection) -> Awaitable[object]:
    return list_components(connection, "T")


@pytest.mark.parametrize(
    "trouble",
    [b"", HALF, *(http_reply(status, HTML) for status in (420, 429, 502, 503, 504))],
    ids=lambda raw: raw[:20],
)
def test_a_check_is_repeated_after_transient_errors(trouble: bytes) -> None:
    with replying_with(trouble, trouble, LISTED) as server:
        [found] = visit(server, list_them)
    assert (found.full_name, len(server.requests)) == ("A", 3)


@pytest.mark.parametrize(("call", "answer"), CHANGES)
@pytest.mark.parametrize("status", [420, 429, 503, 529])
def test_a_change_that_was_refused_for_now_is_asked_for_again(call: Call, answer: bytes, status: int) -> None:
    with replying_with(http_reply(status, HTML), answer) as server:
        visit(server, call)
    assert len(server.requests) == 2


@pytest.mark.parametrize(("call", "answer"), CHANGES)
@pytest.mark.parametrize(
    "trouble", [b"", HALF, *(http_reply(status, HTML) for status in (408, 502, 504))], ids=lambda raw: raw[:20]
)
def test_a_change_that_may_have_been_made_is_never_repeated(call: Call, answer: bytes, trouble: bytes) -> None:
    with replying_with(trouble, answer) as server, pytest.raises((OrgUnreachable, OrgBusy)) as raised:
        visit(server, call)
    assert (len(server.requests), raised.value.is_undone, raised.value.exit_code) == (1, False, 4)
    assert "check before you repeat it" in raised.value.actions[-1]


@pytest.mark.parametrize("call", [list_them, CHANGES[0][0]])
def test_a_refused_connection_fails_soon(call: Call) -> None:
    with replying_with(LISTED) as server:
        pass
    with pytest.raises(OrgUnreachable, match=f"^{server.url} does not answer: ") as raised:
        visit(server, call)
    assert raised.value.is_undone


def test_retries_of_a_busy_org_are_limited() -> None:
    transport, requests = answering((503, HTML))
    with pytest.raises(OrgBusy, match="answered with status 503: too many requests"):
        connect(transport, list_them)
    assert len(requests) == limits.MAX_ATTEMPTS


@pytest.mark.parametrize(
    "body",
    [
        write_fault("SERVER_UNAVAILABLE", "This org is busy; try again later"),
        orjson.dumps([{"message": "This org is busy; try again later", "errorCode": "SERVER_UNAVAILABLE"}]),
    ],
)
def test_the_message_of_a_busy_org_is_shown(body: bytes) -> None:
    with pytest.raises(OrgBusy, match=r"status 503: .*This org is busy; try again later$"):
        connect(answering((503, body))[0], list_them)


def test_retry_after_of_a_busy_org_is_honoured() -> None:
    asked = OrgBusy("busy", after=7)
    assert Backoff(first=0.001, most=2).pause(asked) == 7


def test_too_long_a_retry_after_fails_immediately() -> None:
    with replying_with(http_reply(429, HTML, "Retry-After: 3600"), LISTED) as server, pytest.raises(OrgBusy) as raised:
        visit(server, list_them)
    assert raised.value.actions == ("Try again later. The org asks to wait 3600 seconds.",)


@pytest.mark.parametrize("reply", [http_reply(200, HTML), http_reply(500, HTML), http_reply(200, b"<half")])
def test_nonsense_is_not_asked_for_again(reply: bytes) -> None:
    with replying_with(reply) as server, pytest.raises(MessageUnreadable):
        visit(server, list_them)
    assert len(server.requests) == 1


def test_a_redirect_gets_no_token() -> None:
    with replying_with(LISTED) as elsewhere:
        away = http_reply(302, b"", f"Location: {elsewhere.url}/services/Soap/m/66.0")
        with replying_with(away) as server, pytest.raises(MessageUnreadable, match="nothing was sent there") as raised:
            visit(server, list_them)
    assert elsewhere.requests == []
    assert TOKEN not in str(raised.value)


def test_a_fault_is_not_transient() -> None:
    with replying_with(http_reply(500, write_fault("INVALID_TYPE", "no"))) as server, pytest.raises(OrgFault):
        visit(server, list_them)
    assert len(server.requests) == 1


def test_a_request_has_a_deadline_even_where_an_answer_trickles_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.2)

    def answer(_: bytes) -> bytes:
        time.sleep(0.5)
        return LISTED

    with listening(answer) as server, pytest.raises(OrgUnreachable, match="does not answer"):
        visit(server, lambda connection: submit(connection, b"zip"))


@given(st.integers(2, 40))
def test_pauses_grow_up_to_a_limit_and_begin_anew_after_a_success(errors: int) -> None:
    backoff, error = Backoff(first=1, most=errors + 1), OrgBusy("busy")
    pauses = [backoff.pause(error) for _ in range(errors)]
    assert all(min(2**place, 30) / 2 <= pause <= min(2**place, 30) for place, pause in enumerate(pauses))
    with pytest.raises(OrgBusy):
        backoff.pause(error)
    backoff.reset()
    assert backoff.pause(error) <= 1
