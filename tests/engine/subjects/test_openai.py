from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client.servers import http_reply, replying_with
from engine.builders import evaluation, run
from engine.subjects.conversations import KEY, bodies, says, talk
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.openai import OpenAISubject
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.generated_data import Action, Tokens
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue


def agent(url: str, **more: object) -> Subject:
    return bind(OpenAISubject(adapter="openai", model="desk-1", url=url, **more), root=Path())  # type: ignore[arg-type]


def completion(message: JsonValue, **more: JsonValue) -> bytes:
    return says({"id": "c-1", "choices": [{"message": message, "finish_reason": "stop"}], **more})


def answer(message: JsonValue, **more: JsonValue) -> GeneratedData:
    with replying_with(completion(message, **more)) as server:
        return talk(agent(server.url), "And now?")[0]


def test_a_session_begins_with_system_context_and_history_and_keeps_what_is_said() -> None:
    with replying_with(completion({"content": "It is sent."}), completion({"content": "Tomorrow."})) as server:
        subject = agent(f"{server.url}/v1", system="Be brief.", extra={"temperature": 0, "model": "other"})
        given = talk(subject, "Where is it?", "When?")
    assert [each.outcome for each in given] == ["It is sent.", "Tomorrow."]
    assert server.requests[0].startswith(b"POST /v1/chat/completions ")
    first, second = bodies(server)
    opening = [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Context:\ntier: gold\nregion: EU"},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi, who is it?"},
        {"role": "user", "content": "Where is it?"},
    ]
    assert first == {"model": "desk-1", "temperature": 0, "messages": opening}
    assert second["messages"] == [
        *opening,
        {"role": "assistant", "content": "It is sent."},
        {"role": "user", "content": "When?"},
    ]


def test_a_case_without_history_and_context_sends_the_utterance_alone() -> None:
    with replying_with(completion({"content": "Yes."})) as server:
        talk(agent(f"{server.url}/v1/chat/completions?api-version=1"), "Ready?", case=Case(1, (Turn("Ready?"),)))
    assert server.requests[0].startswith(b"POST /v1/chat/completions?api-version=1 ")
    assert bodies(server)[0]["messages"] == [{"role": "user", "content": "Ready?"}]


def test_system_messages_of_a_history_stay_the_system_s() -> None:
    history = (HistoryMessage("system", "Be kind."), HistoryMessage("tool", "4711"))
    with replying_with(completion({"content": "Yes."})) as server:
        talk(agent(server.url), "Ready?", case=Case(1, (Turn("Ready?"),), history))
    assert bodies(server)[0]["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "4711"},
        {"role": "user", "content": "Ready?"},
    ]


def test_tool_calls_are_actions_and_are_not_repeated_to_the_endpoint() -> None:
    calls = [
        {"function": {"name": "GetOrder", "arguments": '{"id": "7"}'}},
        {"function": {"name": "Log", "arguments": "not json"}},
        {"function": {"name": "Sum", "arguments": "[1]"}},
        {"function": {"name": "Ping", "arguments": ""}},
        {"function": {"name": "Native", "arguments": {"a": 1}}},
        {"function": {"name": "None"}},
    ]
    with replying_with(completion({"content": None, "tool_calls": calls}), completion({"content": "Done."})) as server:
        given = talk(agent(server.url), "Do it", "Done?")
    assert given[0].outcome == ""
    assert given[0].actions == (
        Action("GetOrder", {"id": "7"}),
        Action("Log", {"arguments": "not json"}),
        Action("Sum", {"arguments": "[1]"}),
        Action("Ping"),
        Action("Native", {"a": 1}),
        Action("None"),
    )
    assert [each["role"] for each in bodies(server)[1]["messages"]][-2:] == ["user", "user"]


def test_the_old_function_call_is_an_action_too() -> None:
    given = answer({"content": "", "function_call": {"name": "GetOrder", "arguments": "{}"}})
    assert given.actions == (Action("GetOrder"),)


def test_tokens_are_counted_where_the_endpoint_counts_them() -> None:
    assert answer({"content": "Yes."}, usage={"prompt_tokens": 9, "completion_tokens": 2}).tokens == Tokens(9, 2)
    assert answer({"content": "Yes."}, usage={"prompt_tokens": "9"}).tokens == Tokens(None, None)
    assert answer({"content": "Yes."}, usage=None).tokens is None


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ({"content": [{"type": "text", "text": "It is "}, "sent.", {"type": "image_url"}]}, "It is sent."),
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "I cannot."),
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        ({"content": ""}, ""),
    ],
)
def test_the_outcome_is_the_whole_text(message: JsonValue, outcome: str) -> None:
    assert answer(message).outcome == outcome


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"choices": []}, "no choices"),
        ({"error": {"message": "No model"}}, "No model"),
        ([1], "no choices"),
        ({"choices": [{"message": "Hi"}]}, "no choices"),
        ({"choices": [{"message": {"content": None}, "finish_reason": "length"}]}, "finish_reason: length"),
        ({"choices": [{"message": {"content": 7}}]}, "content is int"),
        ({"choices": [{"message": {"content": [7]}}]}, "content holds int"),
        ({"choices": [{"message": {"tool_calls": [{"type": "custom"}]}}]}, "without a function's name"),
        ({"choices": [{"message": {"tool_calls": [{"function": {"name": 7}}]}}]}, "without a function's name"),
    ],
)
def test_an_invalid_reply_is_described(reply: JsonValue, words: str) -> None:
    with replying_with(says(reply)) as server, pytest.raises(SubjectError, match=words):
        talk(agent(server.url), "And now?")


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", f"{KEY}\n")
    with replying_with(http_reply(401, f'{{"error": {{"message": "Bad key {KEY}"}}}}'.encode())) as server:
        results = run(agent(server.url, api_key_env="DESK_KEY", headers={"X-Key": "${DESK_KEY}"}), evaluation(1))
    assert f"authorization: bearer {KEY}\r\n" in server.requests[0].decode().lower()
    assert f"x-key: {KEY}\r\n" in server.requests[0].decode().lower()
    assert results[0].verdict is Verdict.ERROR
    assert "Bad key [secret]; check the key" in (results[0].error or "")
    assert KEY not in repr(results)


def test_an_answer_is_a_result_with_latency() -> None:
    with replying_with(completion({"content": "Yes."})) as server:
        results = run(agent(server.url), evaluation(2, expectations=()))
    assert [result.generated.outcome for result in results if result.generated] == ["Yes.", "Yes."]
    assert all(result.generated and result.generated.latency_ms for result in results)


def test_an_utterance_is_repeated_in_the_same_session_after_the_endpoint_was_busy() -> None:
    async def go(subject: Subject) -> None:
        session = await subject.open(Case(1, ()))
        with pytest.raises(SubjectBusy):
            await session.ask("Ready?")
        assert (await session.ask("Ready?")).outcome == "Yes."
        await subject.close()

    with replying_with(http_reply(429, b""), completion({"content": "Yes."})) as server:
        asyncio.run(go(agent(server.url)))
    assert len(bodies(server)[1]["messages"]) == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"api_key_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ({"headers": {"X-Key": "${NOT_SET_ANYWHERE}"}}, "NOT_SET_ANYWHERE is not set"),
        ({"headers": {"X Key": "1"}}, "cannot be sent"),
        ({"headers": {"X-Key": "1\r\nX: 2"}}, "cannot be sent"),
        ({"extra": {"stream": True}}, "stream"),
        ({"url": "agents.example.com"}, "url"),
        ({"url": "http://agents.example.com", "headers": {"Authorization": "Bearer abc"}}, "sent unencrypted"),
    ],
)
def test_invalid_settings_are_reported_before_the_run(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        agent(**({"url": "http://127.0.0.1:1"} | settings))  # type: ignore[arg-type]
    assert caught.value.actions


@pytest.mark.parametrize(
    ("message", "extra"),
    [
        ({"content": "Yes.", "tool_calls": []}, {}),
        ({"content": "Yes."}, {"tools": [{"type": "function", "function": {"name": "GetOrder"}}]}),
        ({"content": "Yes.", "tool_calls": None}, {"functions": [{"name": "GetOrder"}]}),
    ],
)
def test_a_model_that_was_offered_tools_or_lists_its_calls_made_none(message: JsonValue, extra: JsonValue) -> None:
    with replying_with(completion(message)) as server:
        [given] = talk(agent(server.url, extra=extra), "And now?")
    assert given.actions == ()


@pytest.mark.parametrize("message", [{"content": "Yes."}, {"content": "Yes.", "tool_calls": None}])
def test_calls_of_an_endpoint_that_was_offered_no_tools_are_unknown(message: JsonValue) -> None:
    assert answer(message).actions is None
