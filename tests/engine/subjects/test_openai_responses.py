from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client.servers import replying_with
from engine.builders import evaluation, run
from engine.subjects.conversations import bodies, says, talk
from engine.subjects.streams import DONE, streams
from evalmeta import limits
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.openai import OpenAISubject
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.generated_data import Action, Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue


def agent(url: str, **more: object) -> Subject:
    settings = OpenAISubject(adapter="openai", model="desk-1", url=url, api="responses", **more)  # type: ignore[arg-type]
    return bind(settings, root=Path())


def message(*parts: JsonValue, **more: JsonValue) -> JsonObject:
    return {"type": "message", "role": "assistant", "content": parts, **more}


def said(text: str) -> JsonObject:
    return message({"type": "output_text", "text": text, "annotations": []})


def response(*items: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    return {"id": "resp-1", "object": "response", "status": "completed", "error": None, "output": items, **more}


def answer(*items: JsonValue, settings: dict[str, object] | None = None, **more: JsonValue) -> GeneratedData:
    with replying_with(says(response(*items, **more))) as server:
        [given] = talk(agent(server.url, **(settings or {})), "And now?")
    return given


def test_each_request_has_the_whole_conversation() -> None:
    with replying_with(says(response(said("It is sent."))), says(response(said("Tomorrow.")))) as server:
        given = talk(agent(f"{server.url}/v1", system="Be brief."), "Where is it?", "When?")
    assert [turn.outcome for turn in given] == ["It is sent.", "Tomorrow."]
    assert server.requests[0].startswith(b"POST /v1/responses ")
    first, second = bodies(server)
    assert [entry["role"] for entry in first["input"]] == ["system", "system", "user", "assistant", "user"]  # type: ignore[call-overload,index,union-attr]
    assert second["input"][-2:] == [  # type: ignore[call-overload,index]
        {"role": "assistant", "content": "It is sent."},
        {"role": "user", "content": "When?"},
    ]
    assert "messages" not in first
    assert "previous_response_id" not in second


def test_an_endpoint_that_keeps_the_conversation_only_gets_what_is_new() -> None:
    replies = [says(response(said("It is sent."))), says(response(said("Tomorrow."), id="resp-2"))]
    with replying_with(*replies, says(response(said("Yes.")))) as server:
        talk(agent(f"{server.url}/responses", previous_response_id=True), "Where is it?", "When?", "Sure?")
    first, second, third = bodies(server)
    assert len(first["input"]) == 4  # type: ignore[arg-type]
    assert "previous_response_id" not in first
    assert (second["input"], second["previous_response_id"]) == ([{"role": "user", "content": "When?"}], "resp-1")
    assert (third["input"], third["previous_response_id"]) == ([{"role": "user", "content": "Sure?"}], "resp-2")


def test_a_conversation_cannot_continue_without_the_id_of_the_reply() -> None:
    reply = says({"output": [said("Yes.")]})
    with replying_with(reply) as server, pytest.raises(SubjectError, match=r"no id.*remove previous_response_id"):
        talk(agent(server.url, previous_response_id=True), "Ready?")


def test_previous_response_id_is_a_setting_of_the_responses_api() -> None:
    settings = OpenAISubject(adapter="openai", model="desk-1", url="http://127.0.0.1:1", previous_response_id=True)
    with pytest.raises(SettingsError, match="Responses API") as caught:
        bind(settings, root=Path())
    assert caught.value.actions


def test_calls_of_all_kinds_are_actions_with_their_results() -> None:
    given = answer(
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "a", "name": "GetOrder", "arguments": '{"id": "7"}'},
        {"type": "function_call_output", "call_id": "a", "output": '{"state": "sent"}'},
        {"type": "mcp_call", "server_label": "desk", "name": "Refund", "arguments": "{}", "output": "done"},
        {"type": "mcp_call", "name": "Close", "arguments": "{}", "output": None, "error": "not allowed"},
        {"type": "custom_tool_call", "call_id": "b", "name": "Run", "input": "ls"},
        {"type": "web_search_call", "action": {"type": "search", "query": "weather"}},
        {"type": "mcp_list_tools", "tools": []},
        said("It is sent."),
        usage={"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
        model="desk-1-mini",
    )
    assert given.actions == (
        Action("GetOrder", {"id": "7"}, {"state": "sent"}),
        Action("Refund", {}, "done"),
        Action("Close", error="not allowed"),
        Action("Run", {"arguments": "ls"}),
        Action("web_search_call", {"type": "search", "query": "weather"}),
    )
    assert (given.outcome, given.tokens) == ("It is sent.", Tokens(9, 2, 4, "desk-1-mini"))


@pytest.mark.parametrize(
    ("items", "outcome"),
    [
        ([message({"type": "output_text", "text": "It is "}, {"type": "output_text", "text": "sent."})], "It is sent."),
        ([message({"type": "refusal", "refusal": "I cannot."})], "I cannot."),
        ([said("First."), {"type": "reasoning"}, said("Last.")], "First.Last."),
        ([{"type": "message", "content": "Yes."}], "Yes."),
        ([{"type": "function_call", "name": "Get", "arguments": "{}"}], ""),
    ],
)
def test_the_outcome_is_the_text_of_all_messages(items: Sequence[JsonValue], outcome: str) -> None:
    assert answer(*items).outcome == outcome


def test_a_reply_without_calls_made_none_if_tools_were_offered() -> None:
    assert answer(said("Yes.")).actions is None
    assert answer(said("Yes."), settings={"extra": {"tools": [{"type": "function", "name": "Get"}]}}).actions == ()


def test_an_incomplete_reply_is_an_answer_if_it_has_text() -> None:
    details = {"reason": "max_output_tokens"}
    assert answer(said("It is"), status="incomplete", incomplete_details=details).outcome == "It is"
    with pytest.raises(SubjectError, match=r"neither a message nor a call: max_output_tokens"):
        answer({"type": "reasoning"}, status="incomplete", incomplete_details=details)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ([1], "no list output"),
        ({"output": "Yes."}, "no list output"),
        ({"output": []}, "neither a message nor a call"),
        ({"output": [], "status": "failed", "error": {"code": "server_error", "message": "Out of order"}}, "Out of"),
        ({"output": [], "status": "queued"}, "status queued, not completed"),
    ],
)
def test_an_invalid_reply_is_described(reply: JsonValue, words: str) -> None:
    with replying_with(says(reply)) as server, pytest.raises(SubjectError, match=words):
        talk(agent(server.url), "And now?")


def happens(kind: str, **more: JsonValue) -> str:
    """Return an event as the API streams it, with its name."""
    import json

    return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': 1, **more})}\n\n"


CREATED = happens("response.created", response=response(status="in_progress"))
DELTA = happens("response.output_text.delta", item_id="msg-1", output_index=0, content_index=0, delta="It is ")


def test_the_last_event_of_a_stream_has_the_whole_reply() -> None:
    items = [
        {"type": "function_call", "call_id": "a", "name": "GetOrder", "arguments": '{"id": "7"}'},
        said("It is sent."),
    ]
    whole = response(*items, usage={"input_tokens": 9, "output_tokens": 2})
    rest = [happens("response.function_call_arguments.delta", delta="{"), DELTA]
    with replying_with(streams(CREATED, *rest, happens("response.completed", response=whole))) as server:
        [given] = talk(agent(server.url, stream=True), "And now?")
    assert (given.outcome, given.tokens) == ("It is sent.", Tokens(9, 2))
    assert given.actions == (Action("GetOrder", {"id": "7"}),)
    assert given.first_token_ms is not None
    assert bodies(server)[0]["stream"] is True
    assert "stream_options" not in bodies(server)[0]


def test_items_that_the_last_event_does_not_repeat_are_those_that_were_streamed() -> None:
    item = happens("response.output_item.done", output_index=0, item=said("It is sent."))
    for end in (happens("response.completed", response=response()), DONE):
        with replying_with(streams(CREATED, item, end)) as server:
            [given] = talk(agent(server.url, stream=True), "And now?")
        assert given.outcome == "It is sent."


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        ([CREATED, DELTA], SubjectUnreachable, "ended before its answer was complete"),
        ([CREATED, DONE], SubjectUnreachable, "ended before its answer was complete"),
        ([happens("error", code="rate_limit_exceeded", message="Slow down")], SubjectBusy, "Slow down"),
        ([DELTA, happens("error", code="rate_limit_exceeded", message="Slow down")], SubjectUnreachable, "Slow down"),
        (
            [happens("response.failed", response=response(status="failed", error={"code": "x", "message": "Broken"}))],
            SubjectError,
            "Broken",
        ),
        ([happens("response.failed", response=response(status="failed"))], SubjectError, "status failed"),
        ([happens("response.incomplete", response=response(status="incomplete"))], SubjectError, "neither a message"),
    ],
)
def test_an_invalid_stream_is_described(parts: list[str], kind: type[SubjectError], words: str) -> None:
    with replying_with(streams(*parts)) as server, pytest.raises(SubjectError, match=words) as caught:
        talk(agent(server.url, stream=True), "And now?")
    assert type(caught.value) is kind


def test_a_response_that_was_cut_off_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)
    whole = happens("response.completed", response=response(said("Yes.")))
    with replying_with(streams(CREATED, DELTA), streams(CREATED, whole)) as server:
        [result] = run(agent(server.url, stream=True), evaluation(1, expectations=()), retries=1)
    assert result.generated is not None
    assert result.generated.outcome == "Yes."
