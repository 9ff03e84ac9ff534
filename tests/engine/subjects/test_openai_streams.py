from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client.servers import replying_with
from engine.builders import evaluation, run
from engine.subjects.conversations import KEY, bodies, says, talk
from engine.subjects.streams import DONE, chunk, chunked, events, streams
from evalmeta import limits
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.openai import OpenAISubject
from evalmeta.engine.subjects.openai_streams import CompletionStream
from evalmeta.errors import SubjectBusy, SubjectError, SubjectRefused, SubjectUnreachable
from evalmeta.model.generated_data import Action, Tokens
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue

USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
STOP = chunk({}, ended="stop")


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)


def agent(url: str, **more: object) -> Subject:
    settings = OpenAISubject(adapter="openai", model="desk-1", url=url, stream=True, **more)  # type: ignore[arg-type]
    return bind(settings, root=Path())


def answer(*parts: JsonValue | str, **settings: object) -> GeneratedData:
    with replying_with(streams(*parts)) as server:
        [given] = talk(agent(server.url, **settings), "And now?")
    return given


def refusal(reply: bytes, kind: type[SubjectError], **settings: object) -> str:
    """Return the message of the error that a reply becomes, which has exactly this class."""
    with replying_with(reply) as server, pytest.raises(SubjectError) as caught:
        talk(agent(server.url, **settings), "And now?")
    assert type(caught.value) is kind
    return str(caught.value)


def test_the_deltas_of_a_stream_are_one_answer_with_the_usage_of_the_last_chunk() -> None:
    parts = [chunk({"role": "assistant", "content": ""}), chunk({"content": "It is "}), chunk({"content": "sent."})]
    with replying_with(streams(*parts, STOP, USAGE, DONE)) as server:
        first, second = talk(agent(f"{server.url}/v1", extra={"temperature": 0}), "Where is it?", "And now?")
    assert (first.outcome, first.tokens, first.actions) == ("It is sent.", Tokens(9, 2), None)
    asked, again = bodies(server)
    assert (asked["stream"], asked["stream_options"], asked["temperature"]) == (True, {"include_usage": True}, 0)
    assert {"role": "assistant", "content": "It is sent."} in again["messages"]  # type: ignore[operator]
    assert second.outcome == "It is sent."


def test_the_options_of_a_stream_can_be_replaced_for_endpoints_that_do_not_know_them() -> None:
    with replying_with(streams(chunk({"content": "Yes."}), STOP, DONE)) as server:
        talk(agent(server.url, extra={"stream_options": None}), "And now?")
    assert bodies(server)[0]["stream_options"] is None


@contextmanager
def slow_endpoint() -> Iterator[tuple[str, threading.Event]]:
    """Serve a stream whose first part comes at once; the rest comes some time after an event."""
    go_on = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(events(chunk({"role": "assistant", "content": ""}), chunk({"content": "It"})).encode())
            self.wfile.flush()
            go_on.wait(30)
            time.sleep(0.05)
            self.wfile.write((events(chunk({"content": " is sent."}), STOP) + DONE).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", go_on
        finally:
            go_on.set()
            server.shutdown()


def test_the_time_until_the_first_part_is_measured_apart_from_the_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_endpoint() as (url, go_on):
        note = CompletionStream.note_part

        def note_and_go_on(stream: CompletionStream) -> None:
            note(stream)
            go_on.set()

        monkeypatch.setattr(CompletionStream, "note_part", note_and_go_on)
        [result] = run(agent(url), evaluation(1, expectations=()))
    assert result.generated is not None
    assert result.generated.outcome == "It is sent."
    assert result.generated.first_token_ms is not None
    assert result.generated.latency_ms is not None
    # The endpoint sends the rest 50 ms after the first part was read.
    assert result.generated.first_token_ms + 49 < result.generated.latency_ms


def test_a_stream_that_stays_open_keeps_to_the_time_limit_of_its_case() -> None:
    with slow_endpoint() as (url, _):
        [result] = run(agent(url), evaluation(1, expectations=()), case_timeout=0.2)
    assert result.verdict is Verdict.ERROR
    assert "no answer within 0.2 s" in (result.error or "")


def test_tool_calls_are_assembled_from_their_deltas() -> None:
    parts = [
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "GetOrder", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "Refund", "arguments": '{"am'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"id": '}}]}),
        chunk({"tool_calls": [{"index": 1, "function": {"arguments": 'ount": 5}'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"7"}'}}]}, ended="tool_calls"),
    ]
    given = answer(*parts, DONE)
    assert given.actions == (Action("GetOrder", {"id": "7"}), Action("Refund", {"amount": 5}))
    assert given.first_token_ms is not None


@pytest.mark.parametrize("index", [{"index": 0}, {}])
def test_whole_calls_with_one_index_or_none_are_several_calls(index: dict[str, JsonValue]) -> None:
    calls: list[JsonValue] = [
        {**index, "id": call_id, "function": {"name": name, "arguments": "{}"}}
        for call_id, name in (("a", "One"), ("b", "Two"))
    ]
    assert answer(chunk({"tool_calls": calls}), STOP, DONE).actions == (Action("One"), Action("Two"))


def test_an_id_and_a_name_that_each_delta_repeats_are_one_call() -> None:
    pieces = ('{"id"', ": 7}")
    parts = [
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Get", "arguments": piece}}]})
        for piece in pieces
    ]
    assert answer(*parts, STOP, DONE).actions == (Action("Get", {"id": 7}),)


def test_other_spellings_of_an_answer_are_read_too() -> None:
    old = [chunk({"function_call": {"name": "Get", "arguments": "{"}}), chunk({"function_call": {"arguments": "}"}})]
    assert answer(*old, STOP, DONE).actions == (Action("Get"),)
    assert answer(chunk({"refusal": "I "}), chunk({"refusal": "cannot."}), STOP, DONE).outcome == "I cannot."
    assert answer(chunk({"content": [{"type": "text", "text": "Yes."}]}), STOP, DONE).outcome == "Yes."
    whole = {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}
    assert answer(whole, DONE).outcome == "Yes."
    other = {"choices": [{"index": 1, "delta": {"content": "No."}}]}
    assert answer(chunk({"content": "Yes."}), other, STOP, DONE).outcome == "Yes."


def test_comments_names_and_line_ends_of_all_kinds_are_part_of_the_format() -> None:
    parts = events(chunk({"content": "Grüße."}), STOP)
    text = "\ufeff: ping\n\n\nid: 1\nretry: 10\nevent: message\n" + parts + ": ping\n\n" + DONE
    for spelling in (text, text.replace("\n", "\r\n"), text.replace("\n", "\r")):
        assert answer(spelling).outcome == "Grüße."


def test_data_in_several_lines_are_one_event() -> None:
    assert answer('data: {"choices": [{"delta": {"content":\ndata:"Yes."}}]}\n\n', DONE).outcome == "Yes."


def test_pieces_may_end_anywhere() -> None:
    text = events(chunk({"content": "Grüße, 世界."}), STOP).replace("\n", "\r\n") + DONE
    pieces = [text.encode()[place : place + 1] for place in range(len(text.encode()))]
    body = b"".join(b"1\r\n" + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    with replying_with(head + body) as server:
        assert talk(agent(server.url), "And now?")[0].outcome == "Grüße, 世界."


@pytest.mark.parametrize("end", ["", "data: [DONE]"])
def test_a_finished_answer_needs_no_last_event(end: str) -> None:
    assert answer(chunk({"content": "Yes."}), STOP, end).outcome == "Yes."


def test_an_endpoint_that_does_not_stream_answers_as_without_a_stream() -> None:
    with replying_with(
        says({"choices": [{"message": {"content": "Yes."}}]}).replace(
            b"\r\n\r\n", b"\r\nContent-Type: application/json\r\n\r\n", 1
        )
    ) as server:
        [given] = talk(agent(server.url), "And now?")
    assert (given.outcome, given.first_token_ms) == ("Yes.", None)


@pytest.mark.parametrize(
    "reply",
    [
        streams(chunk({"content": "It is"})),
        streams(events(chunk({"content": "It is"})) + 'data: {"choices": [{"del'),
        chunked(events(chunk({"content": "It is"}))),
        streams(""),
    ],
)
def test_a_stream_that_is_cut_off_is_a_transient_error(reply: bytes) -> None:
    refusal(reply, SubjectUnreachable)


def test_a_stream_that_was_cut_off_is_asked_again() -> None:
    good = streams(chunk({"content": "Yes."}), STOP, DONE)
    with replying_with(streams(chunk({"content": "It is"})), good) as server:
        [result] = run(agent(server.url), evaluation(1, expectations=()), retries=1)
    assert result.generated is not None
    assert result.generated.outcome == "Yes."


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        (["data: {\n\n"], SubjectError, "not valid JSON"),
        (["data: [1]\n\n"], SubjectError, "not a JSON object: [1]"),
        (["data: " + '{"a":' * 200 + "1" + "}" * 200 + "\n\n"], SubjectError, "nested more than"),
        (["data: <p>Welcome</p>\n\n"], SubjectError, "<p>Welcome</p>"),
        ([chunk({"content": 7})], SubjectError, "content is int"),
        ([chunk({"tool_calls": [{"index": 0}]}), STOP], SubjectError, "without a function's name"),
        ([chunk({}, ended="length"), DONE], SubjectError, "finish_reason: length"),
        ([DONE], SubjectError, "no choices"),
        ([{"error": {"message": "Slow down", "code": 429}}], SubjectBusy, "Slow down"),
        ([{"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}], SubjectBusy, "Slow down"),
        (['event: error\ndata: {"message": "Slow down", "status": 503}\n\n'], SubjectBusy, "Slow down"),
        ([chunk({"content": "It"}), {"error": {"message": "Slow down", "code": "429"}}], SubjectUnreachable, "Slow"),
        ([{"error": {"message": "No credit", "code": "insufficient_quota"}}], SubjectError, "No credit"),
        ([{"error": {"message": "Out of order", "type": "server_error"}}], SubjectError, "Out of order"),
        ([{"error": "Out of order"}], SubjectError, "Out of order"),
        ([{"error": {"type": "timeout"}}], SubjectUnreachable, "without a message"),
    ],
)
def test_an_invalid_stream_is_described(parts: list[JsonValue | str], kind: type[SubjectError], words: str) -> None:
    assert words in refusal(streams(*parts), kind)


def test_a_rate_limit_in_a_stream_is_asked_again_in_the_same_session() -> None:
    limited = streams({"error": {"message": "Slow down", "code": 429}})
    with replying_with(limited, streams(chunk({"content": "Yes."}), STOP, DONE)) as server:
        [result] = run(agent(server.url), evaluation(1, expectations=()), retries=1)
    assert result.generated is not None
    assert result.generated.outcome == "Yes."
    assert len(server.requests) == 2


def test_a_stream_has_a_limit_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_STREAM_BYTES", 10_000)
    words = refusal(streams(*[chunk({"content": "x" * 100})] * 100, DONE), SubjectError)
    assert "streamed more than 10,000 bytes" in words


def test_an_event_has_a_limit_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ENDPOINT_BYTES", 10_000)
    words = refusal(streams("data: " + "x" * 500_000), SubjectError)
    assert "an event of more than 10,000 bytes" in words


def test_a_key_is_never_shown_also_if_a_stream_splits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", KEY)
    given = answer(chunk({"content": KEY[:9]}), chunk({"content": KEY[9:]}), STOP, DONE, api_key_env="DESK_KEY")
    assert given.outcome == "[secret]"
    error = {"error": {"message": f"Bad key {KEY}"}}
    assert KEY not in refusal(streams(error), SubjectError, api_key_env="DESK_KEY")


def test_a_connection_that_stays_open_after_the_last_event_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STREAM_END_SECONDS", 0.05)
    with replying_with(chunked(events(chunk({"content": "Yes."}), STOP) + DONE)) as server:
        assert talk(agent(server.url), "And now?")[0].outcome == "Yes."


def test_a_status_is_an_error_as_without_a_stream() -> None:
    assert "No such model" in refusal(says({"error": {"message": "No such model"}}, 404), SubjectRefused)
