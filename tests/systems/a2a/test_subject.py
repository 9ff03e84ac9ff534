from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalmeta
from client.servers import http_reply, listening
from engine.subjects.conversations import CASE, KEY, talk
from evalmeta.engine.subjects import bind
from evalmeta.engine.trace_context import TURN, TurnContext
from evalmeta.errors import SettingsError, SubjectError, SubjectUnreachable
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.run import ErrorOrigin, Verdict
from evalmeta.systems.a2a.subject import A2aSubject
from systems.a2a.desk import (
    artifact_update,
    calls,
    card,
    desk,
    in_turn,
    message,
    result,
    says,
    status_update,
    stream,
    task,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.servers import Loopback
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult

PLAIN = Case(1, (Turn("Hi"),))
VERSIONS = pytest.mark.parametrize("version", ["1.0", "0.3"])


def agent(url: str, **more: object) -> Subject:
    return bind(A2aSubject(adapter="a2a", url=url, **more), root=Path())  # type: ignore[arg-type]


def sent(server: Loopback) -> list[JsonObject]:
    """Return the messages that a server received."""
    return [call["params"]["message"] for call in calls(server)]


def results(server: Loopback, *cases: list[str], **options: object) -> Sequence[CaseResult]:
    """Run cases, of which each is a list of utterances, through the public door."""
    rows = [{"turns": [{"input": text} for text in case]} for case in cases]
    asked = {"adapter": "a2a", "url": server.url}
    run = evalmeta.evaluate(rows, asked, options=evalmeta.RunOptions(**options)).run  # type: ignore[arg-type]
    return sorted(run.cases, key=lambda case: case.number)


@VERSIONS
def test_turns_are_messages_of_one_context(version: str) -> None:
    with desk(in_turn(*[result(message(version, {"text": "Hello"}))] * 2), version=version) as server:
        first, second = talk(agent(server.url), "Hi", "And now?", case=PLAIN)
    assert (first.outcome, first.session_id, first.topic, first.actions) == ("Hello", "c1", None, None)
    assert second.outcome == "Hello"
    assert [said["parts"][0]["text"] for said in sent(server)] == ["Hi", "And now?"]
    assert [said.get("contextId") for said in sent(server)] == [None, "c1"]
    assert {call["method"] for call in calls(server)} == {"SendMessage" if version == "1.0" else "message/send"}
    assert sent(server)[0]["role"] == ("ROLE_USER" if version == "1.0" else "user")
    headers = server.requests[1].lower()
    assert (b"a2a-version: 1.0" in headers) == (version == "1.0")


@VERSIONS
def test_the_answer_of_a_task_is_in_its_artifacts(version: str) -> None:
    done = task(version, "completed", [{"text": "One."}, {"data": {"id": 7}}], [{"text": "Two."}], says="Done.")
    with desk(in_turn(result(done)), version=version) as server:
        (given,) = talk(agent(server.url), "Hi", case=PLAIN)
    assert given.outcome == 'One.\n{"id": 7}\nTwo.'
    assert given.state == {"task_state": "completed"}


@VERSIONS
def test_data_alone_is_a_structured_answer(version: str) -> None:
    with desk(in_turn(result(task(version, "completed", [{"data": {"id": 7}}]))), version=version) as server:
        (given,) = talk(agent(server.url), "Hi", case=PLAIN)
    assert given.value == {"id": 7}


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"url": "https://x.example/a.pdf", "mediaType": "application/pdf"}, "https://x.example/a.pdf"),
        ({"kind": "file", "file": {"uri": "https://x.example/a.pdf"}}, "https://x.example/a.pdf"),
        ({"raw": "AAAA", "filename": "a.pdf"}, "a.pdf"),
        ({"kind": "file", "file": {"bytes": "AAAA", "mimeType": "image/png"}}, "a file (image/png)"),
        ({"data": None}, "null"),
    ],
)
def test_files_are_their_addresses_or_names(part: JsonObject, line: str) -> None:
    with desk(in_turn(result(message("1.0", part)))) as server:
        assert talk(agent(server.url), "Hi", case=PLAIN)[0].outcome == line


@VERSIONS
def test_a_stream_builds_artifacts_up_and_measures_the_first_part(version: str) -> None:
    events = (
        task(version, "submitted"),
        status_update(version, "working", "Looking."),
        artifact_update(version, "a", {"text": "It is "}),
        artifact_update(version, "a", {"text": "on its way."}, append=True),
        artifact_update(version, "b", {"data": {"id": 7}}),
        status_update(version, "completed"),
    )
    with desk(in_turn(stream(*events)), version=version, streams=True) as server:
        (given,) = talk(agent(server.url), "Hi", case=PLAIN)
    assert given.outcome == 'It is on its way.\n{"id": 7}'
    assert given.first_token_ms is not None
    assert calls(server)[0]["method"] == ("SendStreamingMessage" if version == "1.0" else "message/stream")


def test_an_agent_is_not_asked_for_a_stream_against_the_settings() -> None:
    with desk(in_turn(result(message("1.0", {"text": "Hello"}))), streams=True) as server:
        talk(agent(server.url, stream=False), "Hi", case=PLAIN)
    assert calls(server)[0]["method"] == "SendMessage"


@VERSIONS
def test_a_task_that_still_runs_is_asked_for_until_it_ends(version: str) -> None:
    finished = task(version, "completed", [{"text": "Sent."}])
    replies = [result(task(version, "working")), result(finished.get("task", finished))]
    with desk(in_turn(*replies), version=version) as server:
        assert talk(agent(server.url), "Hi", case=PLAIN)[0].outcome == "Sent."
    asked = calls(server)[1]
    assert (asked["method"], asked["params"]) == ("GetTask" if version == "1.0" else "tasks/get", {"id": "t1"})


def test_a_stream_that_ends_early_is_continued_by_asking_for_the_task() -> None:
    replies = [
        stream(task("1.0", "working")),
        http_reply(429, b"{}", "Retry-After: 0"),
        result(task("1.0", "completed", [{"text": "Sent."}])),
    ]
    with desk(in_turn(*replies), streams=True) as server:
        assert talk(agent(server.url), "Hi", case=PLAIN)[0].outcome == "Sent."
    # A rate limit does not send the question again.
    assert [call["method"] for call in calls(server)] == ["SendStreamingMessage", "GetTask", "GetTask"]


def test_an_empty_stream_is_a_transient_error() -> None:
    with desk(in_turn(stream()), streams=True) as server, pytest.raises(SubjectUnreachable, match="ended before"):
        talk(agent(server.url), "Hi", case=PLAIN)


@VERSIONS
@pytest.mark.parametrize("streams", [False, True])
def test_a_question_to_the_user_is_an_answer_and_the_next_turn_continues_its_task(version: str, streams: bool) -> None:  # noqa: FBT001 - a parameter of the test
    waits, done = task(version, "input-required", says="Which order?"), task(version, "completed", [{"text": "Sent."}])
    if streams:
        # The task comes first as it was before the user's answer.
        events = (waits, status_update(version, "working"), artifact_update(version, "a", {"text": "Sent."}))
        replies = [
            stream(task(version, "submitted"), status_update(version, "input-required", "Which order?")),
            stream(*events, status_update(version, "completed")),
        ]
    else:
        replies = [result(waits), result(done)]
    with desk(in_turn(*replies, result(message(version, {"text": "Bye"}))), version=version, streams=streams) as server:
        first, second, _ = talk(agent(server.url), "Hi", "7", "Thanks", case=PLAIN)
    assert (first.outcome, first.state) == ("Which order?", {"task_state": "input-required"})
    assert (second.outcome, second.state) == ("Sent.", {"task_state": "completed"})
    assert [said.get("taskId") for said in sent(server)] == [None, "t1", None]


@VERSIONS
@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("failed", "task failed: no stock"),
        ("rejected", "task was rejected by the agent: no stock"),
        ("canceled", "task was cancelled: no stock"),
        ("auth-required", "task waits for a login or another authorization, which a case cannot give: no stock"),
        ("paused", "task is in the state 'paused', which evalmeta does not know: no stock"),
    ],
)
def test_a_task_without_an_answer_is_an_error_with_the_agents_reason(version: str, state: str, why: str) -> None:
    failed = task(version, state, [{"text": "half"}], says="no stock")
    with desk(in_turn(result(failed)), version=version) as server, pytest.raises(SubjectError, match=why):
        talk(agent(server.url), "Hi", case=PLAIN)


@pytest.mark.parametrize("streams", [False, True])
def test_an_error_of_the_protocol_is_an_error_of_the_case(streams: bool) -> None:  # noqa: FBT001 - a parameter of the test
    reply = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no such tool"}}
    with desk(lambda _: says(reply), streams=streams) as server:
        (given,) = results(server, ["Hi"])
    assert given.verdict is Verdict.ERROR
    assert given.error == "the agent returned the error -32603: no such tool"


def test_another_reply_is_an_error() -> None:
    for reply in ({"answer": "Hi"}, {"id": 1, "result": {"answer": "Hi"}}, {"id": 1, "result": "Hi"}):
        with desk(in_turn(says(reply))) as server, pytest.raises(SubjectError, match="reply is n"):
            talk(agent(server.url), "Hi", case=PLAIN)


@pytest.mark.parametrize("streams", [False, True])
def test_a_reply_to_another_request_is_an_error(streams: bool) -> None:  # noqa: FBT001 - a parameter of the test
    reply = (stream if streams else result)(message("1.0", {"text": "Sent."})).replace(b'"id": 1', b'"id": 9')
    with desk(lambda _: reply, streams=streams) as server:
        (given,) = results(server, ["Hi"], retries=0)
    assert given.error == "the reply is for request 9, not 1"


@pytest.mark.parametrize("streams", [False, True])
@VERSIONS
def test_a_message_of_the_user_is_not_the_agents_answer(version: str, streams: bool) -> None:  # noqa: FBT001 - as above
    said, asks = message(version, {"text": "Hi"}), task(version, "input-required", says="Hi")
    for answer in (said, asks):
        of_user = json.dumps(answer).replace('"agent"', '"user"').replace("ROLE_AGENT", "ROLE_USER")
        reply = (stream if streams else result)(json.loads(of_user))
        with desk(in_turn(reply), version=version, streams=streams) as server:
            (given,) = results(server, ["Hi"], retries=0)
        assert "not an answer" in str(given.error)


def test_a_case_says_its_history_first_and_its_context_with_each_message() -> None:
    with desk(in_turn(*[result(message("1.0", {"text": "Hello"}))] * 2)) as server:
        assert len(talk(agent(server.url), "And now?", case=CASE)) == 1
    assert [said["parts"][0]["text"] for said in sent(server)] == ["Hello", "And now?"]
    assert [said["metadata"] for said in sent(server)] == [{"tier": "gold", "region": "EU"}] * 2


def test_a_lost_request_for_a_task_is_repeated_and_the_message_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalmeta.systems.a2a.subject._FIRST_PAUSE", 0.001)
    runs, done = result(task("1.0", "working")), result(task("1.0", "completed", [{"text": "Sent."}]))
    with desk(in_turn(runs, b"", says({}, 502), b"", runs, b"", done)) as server:
        (given,) = results(server, ["Hi"], retries=0)
    assert (given.error, given.generated and given.generated.outcome) == (None, "Sent.")
    assert [call["method"] for call in calls(server)] == ["SendMessage", *["GetTask"] * 6]


def test_a_task_that_is_lost_too_often_is_a_transient_error_and_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalmeta.systems.a2a.subject._FIRST_PAUSE", 0.001)
    canceled = result(task("1.0", "canceled"))
    with desk(in_turn(result(task("1.0", "working")), b"", b"", b"", b"", canceled)) as server:
        (given,) = results(server, ["Hi"], retries=0)
    assert given.origin is ErrorOrigin.UNREACHABLE
    assert [call["method"] for call in calls(server)] == ["SendMessage", *["GetTask"] * 4, "CancelTask"]


def working(call: JsonObject) -> bytes:
    return result(task("1.0", "canceled" if call["method"] == "CancelTask" else "working"))


def test_a_task_is_cancelled_when_its_session_ends() -> None:
    async def leave(url: str, server: Loopback) -> None:
        subject = agent(url)
        session = await subject.open(PLAIN)
        asking = asyncio.ensure_future(session.ask("Hi"))
        while "GetTask" not in [call["method"] for call in calls(server)]:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait({asking})
        await session.close()
        await subject.close()

    with desk(working) as server:
        asyncio.run(leave(server.url, server))
    assert (calls(server)[-1]["method"], calls(server)[-1]["params"]) == ("CancelTask", {"id": "t1"})


@pytest.mark.slow
def test_a_task_is_cancelled_when_its_case_takes_too_long() -> None:
    with desk(working) as server:
        (given,) = results(server, ["Hi"], case_timeout=3)
    assert given.error == "no answer within 3 s"
    assert calls(server)[-1]["method"] == "CancelTask"
    assert calls(server)[-1]["params"] == {"id": "t1"}


@pytest.mark.parametrize("path", ["/agents/desk", "/agents/desk/"])
def test_the_card_may_be_at_the_root_of_the_host(path: str) -> None:
    with desk(in_turn(result(message("1.0", {"text": "Hello"})))) as server:
        assert talk(agent(f"{server.url}{path}"), "Hi", case=PLAIN)[0].outcome == "Hello"


def test_the_url_may_be_that_of_the_card() -> None:
    with desk(in_turn(result(message("1.0", {"text": "Hello"}))), path="/agents/desk") as server:
        url = f"{server.url}/agents/desk/.well-known/agent-card.json"
        assert talk(agent(url), "Hi", case=PLAIN)[0].outcome == "Hello"


def test_an_address_without_a_card_is_an_error_that_names_what_was_tried() -> None:
    with listening(lambda _: says({}, 404)) as server, pytest.raises(SubjectError) as caught:
        talk(agent(f"{server.url}/desk"), "Hi", case=PLAIN)
    assert f"{server.url}/desk/.well-known/agent-card.json, {server.url}/.well-known/" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ([], "is not an agent card"),
        ({"name": "Desk"}, "its interfaces: none"),
        ({"url": "http://127.0.0.1", "preferredTransport": "GRPC", "protocolVersion": "0.3.0"}, "interfaces: GRPC 0.3"),
        ({**card("1.0", "http://127.0.0.1"), "supportedInterfaces": [
            {"url": "http://127.0.0.1", "protocolBinding": "JSONRPC", "protocolVersion": "2.0"}]}, "JSONRPC 2.0"),
    ],
)  # fmt: skip
def test_a_card_without_an_interface_that_can_be_asked_is_an_error(body: JsonObject, why: str) -> None:
    with listening(lambda _: says(body)) as server, pytest.raises(SubjectError, match=why):
        talk(agent(server.url), "Hi", case=PLAIN)


def test_the_newest_interface_of_a_card_is_asked() -> None:
    both = {**card("0.3", "http://127.0.0.1:1/old"), **card("1.0", "/rpc")}

    def reply(request: bytes) -> bytes:
        return says(both) if request.startswith(b"GET") else result(message("1.0", {"text": "Hello"}))

    with listening(reply) as server:
        assert talk(agent(server.url), "Hi", case=PLAIN)[0].outcome == "Hello"
    assert server.requests[1].startswith(b"POST /rpc ")


def test_a_server_that_is_gone_is_a_transient_error() -> None:
    with pytest.raises(SubjectUnreachable, match="is it running"):
        talk(agent("http://127.0.0.1:9"), "Hi", case=PLAIN)


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", KEY)
    with desk(in_turn(result(message("1.0", {"text": f"Your key is {KEY}"})))) as server:
        (given,) = talk(agent(server.url, api_key_env="DESK_KEY"), "Hi", case=PLAIN)
    assert given.outcome == "Your key is [secret]"
    assert all(f"authorization: bearer {KEY}".encode() in request.lower() for request in server.requests)


def test_the_key_is_not_sent_to_another_host_that_the_card_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", KEY)
    elsewhere = says(card("1.0", "https://elsewhere.example/rpc"))
    with listening(lambda _: elsewhere) as server, pytest.raises(SubjectError) as caught:
        talk(agent(server.url, api_key_env="DESK_KEY"), "Hi", case=PLAIN)
    assert 'set interface = "https://elsewhere.example/rpc"' in str(caught.value)


def test_an_interface_of_the_settings_replaces_that_of_the_card() -> None:
    def reply(request: bytes) -> bytes:
        wrong = says(card("1.0", "http://127.0.0.1:1/rpc"))
        return wrong if request.startswith(b"GET") else result(message("1.0", {"text": "Hello"}))

    with listening(reply) as server:
        assert talk(agent(server.url, interface=f"{server.url}/own"), "Hi", case=PLAIN)[0].outcome == "Hello"
    assert server.requests[1].startswith(b"POST /own ")


@pytest.mark.parametrize("keys", [{"url": "desk"}, {"url": "http://127.0.0.1", "interface": "desk"}])
def test_a_url_that_is_not_valid_is_an_error_before_the_first_question(keys: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="not valid"):
        agent(**keys)


def test_each_message_carries_the_context_of_its_trace() -> None:
    async def ask(url: str) -> None:
        TURN.set(TurnContext("00-1-2-01", {}))
        subject = agent(url)
        await (await subject.open(PLAIN)).ask("Hi")
        await subject.close()

    with desk(in_turn(result(message("1.0", {"text": "Hello"})))) as server:
        asyncio.run(ask(server.url))
    assert b"traceparent: 00-1-2-01" in server.requests[-1]


def test_sessions_at_once_do_not_share_a_context() -> None:
    def answer(call: JsonObject) -> bytes:
        said = call["params"]["message"]
        context = said.get("contextId") or f"c-{said['parts'][0]['text']}"
        return result(message("1.0", {"text": context}, context=context))

    with desk(answer) as server:
        given = results(server, *([name, "And?"] for name in "abcd"), concurrency=4)
    assert [case.generated.outcome for case in given] == ["c-a", "c-b", "c-c", "c-d"]
    assert sum(request.startswith(b"GET") for request in server.requests) == 1
