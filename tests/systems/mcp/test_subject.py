from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalmeta
from client.servers import http_reply, listening
from engine.subjects.conversations import KEY
from evalmeta import limits
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.interfaces import DescribedSubject, ListedSubject
from evalmeta.engine.subjects import bind
from evalmeta.errors import SettingsError
from evalmeta.model.run import ErrorOrigin, Verdict
from evalmeta.systems.mcp.subject import McpSubject
from systems.mcp.tool_server import PROGRAM, reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from client.servers import Loopback
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult

SERVER = {"adapter": "mcp", "command": PROGRAM}


def call(tool: str, **arguments: object) -> JsonObject:
    return {"tool": tool, "arguments": arguments}  # type: ignore[dict-item] # JSON


def order(name: str) -> JsonObject:
    return call("get_order", id=name)


@contextmanager
def server(*, streams: bool = False, expires: bool = False, loses: bool = False, shift: int = 0) -> Iterator[Loopback]:
    """Serve the tools over streamable HTTP, with a session for each client; `shift` changes the ids of calls.

    With `loses`, the connection is closed instead of the reply to a call.
    """
    sessions: dict[str, JsonObject] = {}

    def answer(request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        if head.startswith(b"DELETE"):
            return http_reply(200, b"")
        message = json.loads(body)
        key = next(
            (line[16:].decode() for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-session-id")), ""
        )
        if message["method"] == "initialize":
            key = f"s{len(sessions)}"
            sessions[key] = {}
        state = sessions.get(key)
        if state is None or (expires and message["method"] == "tools/call"):
            return http_reply(404, b'{"error": {"message": "no such session"}}')
        if message["method"] == "tools/call":
            if loses:
                return b""
            message["id"] += shift
        text = json.dumps(reply(message, state)).encode()
        if message.get("id") is None:
            return http_reply(202, b"")
        if streams:
            notification = b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}\n\n'
            event = notification + b"event: message\ndata: " + text + b"\n\n"
            return http_reply(200, event, "Content-Type: text/event-stream", f"Mcp-Session-Id: {key}")
        return http_reply(200, text, "Content-Type: application/json", f"Mcp-Session-Id: {key}")

    with listening(answer) as served:
        yield served


def results(settings: object, *cases: Sequence[object], **options: object) -> list[CaseResult]:
    """Run cases, of which each is a list of inputs, through the public door."""
    rows = [{"turns": [{"input": given} for given in case]} for case in cases]
    run = evalmeta.evaluate(rows, settings, options=evalmeta.RunOptions(**options)).run  # type: ignore[arg-type]
    return sorted(run.cases, key=lambda case: case.number)


def answers(result: CaseResult) -> list[GeneratedData]:
    assert result.error is None, result.error
    assert result.generated is not None
    return [*(turn.generated for turn in result.earlier), result.generated]


def test_a_program_answers_calls_with_their_results_and_the_call_is_the_action() -> None:
    names = ("structured", "wrapped", "whole", "json", "text", "number", "empty", "mixed")
    (result,) = results(SERVER, [order(name) for name in names])
    given = answers(result)
    assert [answer.value for answer in given[:7]] == [
        {"id": "7"}, 5, {"result": 5}, {"id": "7"}, "It is sent.", "5", "",
    ]  # fmt: skip
    assert given[7].outcome == "Here:\nimage (image/png)\nA note.\nhttps://x.example/a.pdf"
    (action,) = given[0].actions or ()
    assert (action.name, action.input, action.output, action.error) == (
        "get_order", {"id": "structured"}, {"id": "7"}, None,
    )  # fmt: skip
    assert action.latency_ms is not None
    assert (given[0].topic, given[0].tokens, given[0].state) == (None, None, None)


@pytest.mark.parametrize(("name", "why"), [("error", "no such order"), ("invalid", "id is not valid")])
def test_an_error_of_a_tool_is_the_answer_and_the_error_of_the_action(name: str, why: str) -> None:
    (result,) = results(SERVER, [order(name), order("text")])
    first, second = answers(result)
    (action,) = first.actions or ()
    assert (first.outcome, action.error, action.output) == (why, why, None)
    assert second.outcome == "It is sent."


def test_a_tool_error_that_a_case_expects_passes_and_one_that_it_does_not_expect_fails() -> None:
    rows = [
        {"input": order(name), "actions": [{"name": "get_order", "error": is_expected}]}
        for name in ("error", "text")
        for is_expected in (True, False)
    ]
    run = evalmeta.evaluate(rows, SERVER).run
    assert [case.verdict for case in sorted(run.cases, key=lambda case: case.number)] == [
        Verdict.PASS,
        Verdict.FAILURE,
        Verdict.FAILURE,
        Verdict.PASS,
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("broken", "returned the error -32603: out of order"),
        ("nothing", "the result of get_order has no content"),
        ("exit", "exited with code 3; the end of its stderr: the disk is full"),
    ],
)
def test_a_server_that_fails_is_an_error_and_the_next_case_is_asked(name: str, why: str) -> None:
    first, second = results(SERVER, [order(name)], [order("text")], retries=0, concurrency=1)
    assert why in str(first.error)
    assert first.verdict is Verdict.ERROR
    assert answers(second)[0].outcome == "It is sent."


REFUND = call("refund", id="7")
NOT_RETRIED = "the case is not retried: refund may have been carried out, and evalmeta repeats only calls of tools with"


@pytest.mark.parametrize(
    ("calls", "dies_in", "hints", "effects"),
    [
        ([REFUND], "refund", {}, ["refund"]),
        ([REFUND], "refund", {"destructiveHint": False}, ["refund"]),
        ([REFUND, order("text")], "get_order", {}, ["refund", "get_order"]),
        ([REFUND], "refund", {"idempotentHint": True}, ["refund"] * 2),
        ([REFUND], "refund", {"readOnlyHint": True}, ["refund"] * 2),
        ([REFUND, order("text")], "get_order", {"idempotentHint": True}, ["refund", "get_order"] * 2),
        ([order("text"), REFUND], "get_order", {}, ["get_order"] * 2),
    ],
)
def test_a_call_that_may_have_had_effects_is_repeated_only_if_the_server_says_that_it_can_be(
    calls: list[JsonObject],
    dies_in: str,
    hints: JsonObject,
    effects: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.01)
    file = tmp_path / "effects"
    environment = {"EFFECTS": str(file), "DIES_IN": dies_in, "HINTS": json.dumps(hints)}
    (result,) = results({**SERVER, "environment": environment}, calls, retries=1)
    assert file.read_text().split() == effects
    assert (result.verdict, result.origin) == (Verdict.ERROR, ErrorOrigin.UNREACHABLE)
    is_retried = len(effects) > len(set(effects))
    assert (NOT_RETRIED in str(result.error), "(tried 2 times)" in str(result.error)) == (not is_retried, is_retried)


def test_a_call_of_a_tool_whose_hints_are_not_read_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "effects"
    environment = {"EFFECTS": str(file), "DIES_IN": "refund", "HINTS": '{"readOnlyHint": true}'}
    (result,) = results({**SERVER, "environment": environment, "check_calls": False}, [REFUND])
    assert file.read_text().split() == ["refund"]
    assert NOT_RETRIED in str(result.error)


def program(statements: str) -> JsonObject:
    return {"adapter": "mcp", "command": [sys.executable, "-c", f"import sys, time; {statements}"]}


@pytest.mark.parametrize(
    ("statements", "quoted"),
    [
        ("print('loading'); print('no config.yaml')", "'no config.yaml'"),
        ("print('no config.yaml'); print('[]'); print()", "'[]'"),
        ('print(\'{"method": "notifications/message"}\')', ""),
        ("sys.stdout.write('no config.yaml')", ""),
    ],
)
def test_the_last_text_on_stdout_of_a_program_that_exits_is_quoted(statements: str, quoted: str) -> None:
    (result,) = results(program(statements), [call("count")], retries=0)
    ending = f"; its last text on stdout is not a message: {quoted}" if quoted else ""
    assert str(result.error).endswith(f"; it wrote nothing to stderr{ending}")


def test_what_a_program_that_exits_wrote_to_stderr_is_quoted_alone() -> None:
    (result,) = results(program("print('loading'); sys.exit('no config.yaml')"), [call("count")], retries=0)
    assert result.error == "the program exited with code 1; the end of its stderr: no config.yaml"


def test_a_key_in_the_quoted_line_is_hidden() -> None:
    (result,) = results(program(f"print('Authorization: Bearer {KEY}')"), [call("count")], retries=0)
    assert "is not a message: 'Authorization: " in str(result.error)
    assert KEY not in str(result.error)


def test_a_server_that_does_not_finish_the_handshake_in_time_is_named_as_such() -> None:
    (result,) = results(program("time.sleep(60)"), [call("count")], case_timeout=0.3)
    assert result.error == "no answer within 0.3 s: the start of the session, such as a handshake, did not finish"


@pytest.mark.slow
def test_a_call_that_takes_too_long_does_not_answer_the_next_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOW", "2.5")
    with server() as served:
        settings = {"adapter": "mcp", "url": served.url}
        first, second = results(settings, [order("slow")], [call("count")], case_timeout=1.5, concurrency=1)
    assert first.error == "no answer within 1.5 s"
    assert answers(second)[0].outcome == "call 1"


@pytest.mark.slow
def test_a_call_that_takes_too_long_ends_the_program() -> None:
    first, second = results(SERVER, [order("slow")], [call("count")], case_timeout=1.5, concurrency=1)
    assert first.error == "no answer within 1.5 s"
    assert answers(second)[0].outcome == "call 1"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (call("get_ordr", id="7"), "the server of MCP has no tool 'get_ordr'. Did you mean 'get_order'?"),
        (call("get_order"), "arguments: expected the key 'id'"),
        (call("get_order", id=7), 'arguments.id: expected type "string", got 7; to call it with them all the same'),
        ("Where is my order?", "does not name the tool to call; write it like input: {tool: get_order"),
        ({"arguments": {}}, "does not name the tool"),
        ({"tool": "count", "args": {}}, "the unknown key 'args'"),
        ({"tool": "count", "arguments": [7]}, "the arguments of count are not a mapping"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_right_is_an_error_before_the_first_call_of_the_case(given: object, why: str) -> None:
    with server() as served:
        (result,) = results({"adapter": "mcp", "url": served.url}, [call("count"), given])
    assert why in str(result.error)
    assert result.generated is None
    assert not any(b"tools/call" in request for request in served.requests)


def test_calls_are_not_checked_against_the_settings() -> None:
    given = [call("get_order", id=7), call("get_order", id="invalid")]
    (result,) = results({**SERVER, "check_calls": False}, given)
    assert [answer.outcome for answer in answers(result)] == ["It is sent.", "id is not valid"]


def test_a_text_with_the_json_of_a_call_calls_the_tool() -> None:
    (result,) = results(SERVER, ['{"tool": "count"}'])
    assert answers(result)[0].outcome == "call 1"


@pytest.mark.parametrize("streams", [False, True])
def test_each_case_has_a_session_with_a_server_over_http(streams: bool) -> None:  # noqa: FBT001 - a parameter of the test
    with server(streams=streams) as served:
        given = results({"adapter": "mcp", "url": f"{served.url}/mcp"}, *[[call("count")] * 2] * 4, concurrency=4)
    assert [[answer.outcome for answer in answers(result)] for result in given] == [["call 1", "call 2"]] * 4
    heads = [request.lower() for request in served.requests if b"initialize" not in request]
    assert all(b"mcp-session-id: s" in head and b"mcp-protocol-version: 2024-11-05" in head for head in heads)
    assert sum(request.startswith(b"DELETE") for request in served.requests) == 4
    # The tools are listed once.
    assert sum(b'"tools/list"' in request for request in served.requests) == 3


def test_programs_at_once_do_not_share_calls() -> None:
    given = results(SERVER, *[[call("count")] * 3] * 2, concurrency=2)
    assert all(len({answer.outcome for answer in answers(result)}) == 3 for result in given)


def test_a_reply_to_another_request_is_an_error() -> None:
    with server(shift=9994) as served:
        (result,) = results({"adapter": "mcp", "url": served.url}, [call("count")], retries=0)
    assert result.error == "the reply is for request 9999, not 5"


def test_a_session_that_the_server_has_ended_is_a_transient_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.01)
    with server(expires=True) as served:
        (result,) = results({"adapter": "mcp", "url": served.url}, [call("count")], retries=1)
    assert result.error == "the server of MCP has ended the session (tried 2 times)"


def test_a_call_whose_reply_over_http_is_lost_is_not_repeated() -> None:
    with server(loses=True) as served:
        (result,) = results({"adapter": "mcp", "url": served.url}, [call("count")])
    assert "the case is not retried: count may have been carried out" in str(result.error)
    assert sum(b'"tools/call"' in request for request in served.requests) == 1


def test_a_server_that_is_gone_is_an_error() -> None:
    (result,) = results({"adapter": "mcp", "url": "http://127.0.0.1:9/mcp"}, [call("count")], retries=0)
    assert "is it running" in str(result.error)


def test_a_server_without_tools_is_an_error() -> None:
    (result,) = results({**SERVER, "environment": {"NO_TOOLS": "1"}}, [call("count")])
    assert result.error == "the server of MCP has no tools"


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    error = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": f"bad key {KEY}"}}).encode()
    with listening(lambda _: http_reply(200, error)) as served:
        (result,) = results({"adapter": "mcp", "url": served.url, "api_key_env": "SHOP_KEY"}, [call("count")])
    assert result.error == "the agent returned the error 1: bad key [secret]"
    assert f"authorization: bearer {KEY}".encode() in served.requests[0].lower()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "needs either a command or a url"),
        ({"url": "http://127.0.0.1", "command": ("python",)}, "needs either a command or a url"),
        ({"url": "127.0.0.1"}, "is not valid"),
        ({"command": ("no-such-program",)}, "cannot be found"),
    ],
)
def test_settings_that_cannot_work_are_an_error_before_the_first_call(settings: dict[str, object], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        bind(McpSubject(adapter="mcp", **settings), root=Path())  # type: ignore[arg-type]


def described(**settings: object) -> DescribedSubject:
    subject: Subject = bind(McpSubject(adapter="mcp", **settings), root=Path())  # type: ignore[arg-type]
    assert isinstance(subject, DescribedSubject)
    return subject


def test_the_tools_of_a_server_are_its_actions() -> None:
    subject = bind(McpSubject(adapter="mcp", command=PROGRAM), root=Path())
    assert isinstance(subject, ListedSubject)
    parts = run_to_end(subject.inventory()).parts
    assert [(part.kind, part.topic, part.name) for part in parts] == [
        ("action", "", "get_order"),
        ("action", "", "refund"),
        ("action", "", "count"),
    ]


def test_a_server_says_its_tools_and_calls_of_those_that_only_read() -> None:
    offer = run_to_end(described(command=PROGRAM).describe())
    assert offer.text == "3 tools: get_order, refund, count"
    assert offer.inputs == ({"tool": "get_order", "arguments": {"id": "text"}},)
