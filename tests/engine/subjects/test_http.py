from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client.servers import http_reply, replying_with
from engine.builders import evaluation, run
from engine.subjects.conversations import KEY, bodies, says, talk
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.http import HttpSubject
from evalmeta.errors import SettingsError, SubjectError, SubjectUnreachable
from evalmeta.model.generated_data import Action, Tokens
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue

HISTORY = [
    {"role": "user", "message": "Hello", "topic": None},
    {"role": "agent", "message": "Hi, who is it?", "topic": "Greeting"},
]


def agent(url: str, **more: object) -> Subject:
    return bind(HttpSubject(adapter="http", url=url, **more), root=Path())  # type: ignore[arg-type]


def answer(reply: JsonValue, **settings: object) -> GeneratedData:
    with replying_with(says(reply)) as server:
        return talk(agent(server.url, **settings), "And now?")[0]


def test_an_utterance_goes_out_and_an_answer_comes_back() -> None:
    with replying_with(says({"answer": "It is sent."})) as server:
        given = talk(agent(f"{server.url}/chat", method="PUT"), "Where is it?")
    assert given[0].outcome == "It is sent."
    assert server.requests[0].startswith(b"PUT /chat ")
    assert bodies(server) == [{"utterance": "Where is it?"}]


def test_the_request_is_made_of_a_template() -> None:
    request = {
        "input": {"text": "{{utterance}}", "tier": "{{context.tier}}", "none": "{{context.none}}"},
        "history": "{{history}}",
        "all": ["{{context}}", 7],
        "prompt": "Tier {{ context.tier }}, {{session}}: {{utterance}}",
    }
    with replying_with(says({"answer": "{{session}}", "id": 5})) as server:
        given = talk(agent(server.url, request=request, session="$.id"), "Where?", "{{context.tier}}")
    first, second = bodies(server)
    assert first == {
        "input": {"text": "Where?", "tier": "gold", "none": None},
        "history": HISTORY,
        "all": [{"tier": "gold", "region": "EU"}, 7],
        "prompt": "Tier gold, : Where?",
    }
    assert second["prompt"] == "Tier gold, 5: {{context.tier}}"
    assert second["history"] == [
        *HISTORY,
        {"role": "user", "message": "Where?", "topic": None},
        {"role": "agent", "message": "{{session}}", "topic": None},
    ]
    assert [each.session_id for each in given] == ["5", "5"]


def test_a_session_is_sent_back_until_the_endpoint_names_another() -> None:
    replies = [{"answer": "a", "id": "s1"}, {"answer": "b"}, {"answer": "c", "id": "s2"}]
    with replying_with(*map(says, replies)) as server:
        subject = agent(server.url, request={"q": "{{utterance}}", "session": "{{session}}"}, session="$.id")
        given = talk(subject, "1", "2", "3")
    assert [body["session"] for body in bodies(server)] == [None, "s1", "s1"]
    assert [each.session_id for each in given] == ["s1", "s1", "s2"]


def test_everything_is_found_by_its_path() -> None:
    reply = {
        "reply": {"texts": [{"text": "It is"}, {"text": "sent."}], "topic": "Orders"},
        "steps": [
            "Greet",
            {"tool": {"name": "GetOrder"}, "args": '{"id": 7}', "result": ["sent"]},
            {"tool": {"name": "Log"}, "args": {"level": 1}},
            {"tool": {"name": "Ping"}},
        ],
        "usage": {"in": 9},
        "session": {"cart": [7]},
        "path": [{"agent": "Triage"}, {"agent": "Orders"}],
    }
    given = answer(
        reply,
        answer="$.reply.texts[*].text",
        topic="$.reply.topic",
        actions="$.steps",
        action_name="$.tool.name",
        action_input="$.args",
        action_output="$.result",
        input_tokens="$.usage.in",
        output_tokens="$.usage.out",
        trace="$.usage",
        state="$.session",
        handoffs="$.path[*].agent",
    )
    assert (given.state, given.handoffs) == ({"cart": [7]}, ("Triage", "Orders"))
    assert given.outcome == "It is\nsent."
    assert given.topic == "Orders"
    assert given.actions == (
        Action("Greet"),
        Action("GetOrder", {"id": 7}, ["sent"]),
        Action("Log", {"level": 1}),
        Action("Ping"),
    )
    assert given.tokens == Tokens(9, None)
    assert given.trace == {"in": 9}
    assert given.session_id is None


@pytest.mark.parametrize(
    ("reply", "path", "names"),
    [
        ({"answer": "Yes.", "actions": []}, "$.actions", []),
        ({"answer": "Yes.", "steps": []}, "$.steps[*].do", []),
        ({"answer": "Yes.", "steps": [{"do": "A"}]}, "$.steps[?(@.kind == 'tool')].do", []),
        ({"answer": "Yes.", "actions": ["A"]}, "$.actions[*]", ["A"]),
        ({"answer": "Yes.", "steps": [{"do": "A"}, {"do": "B"}]}, "$.steps[*].do", ["A", "B"]),
    ],
)
def test_actions_are_a_list_or_each_match_of_the_path(reply: JsonValue, path: str, names: list[str]) -> None:
    assert [action.name for action in answer(reply, actions=path).actions or ()] == names
    assert answer(reply, actions=path).actions is not None


def test_an_endpoint_that_omits_empty_values_reports_them_by_omission() -> None:
    given = answer({"answer": "Yes."}, actions="$.steps", topic="$.topic", omits_empty=True)
    assert (given.topic, given.actions) == ("", ())
    given = answer({"answer": "Yes."}, omits_empty=True)
    assert (given.topic, given.actions) == (None, None)


@pytest.mark.parametrize(
    ("reply", "path"),
    [
        ({"answer": "Yes."}, ""),
        ({"answer": "Yes."}, "$.actions"),
        ({"answer": "Yes.", "actions": None}, "$.actions"),
        ({"answer": "Yes."}, "$.steps[*].do"),
        ({"answer": "Yes.", "turns": [{}]}, "$.turns[0].actions"),
    ],
)
def test_actions_that_the_reply_does_not_have_are_unknown(reply: JsonValue, path: str) -> None:
    assert answer(reply, actions=path).actions is None


def test_a_state_and_handoffs_that_the_reply_does_not_have_are_unknown() -> None:
    given = answer({"answer": "Yes."}, state="$.state", handoffs="$.path[*].agent", omits_empty=True)
    assert (given.state, given.handoffs) == (None, None)
    given = answer({"answer": "Yes.", "state": {}, "path": []}, state="$.state", handoffs="$.path[*].agent")
    assert (given.state, given.handoffs) == ({}, ())


@pytest.mark.parametrize(
    ("reply", "path"), [([{"text": "Yes."}], "$[0].text"), ("Yes.", "$"), ({"a": {"text": "Yes."}}, "$.a.text")]
)
def test_a_reply_may_be_any_json(reply: JsonValue, path: str) -> None:
    assert answer(reply, answer=path).outcome == "Yes."


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"text": "Yes.", "id": 1}, r"\$\.answer of answer matches nothing .*, an object with 'text', 'id'; correct"),
        ({}, "an object with no keys"),
        ({str(number): 1 for number in range(30)}, "'19', …;"),
        ([], "a list of 0"),
        ([{"text": 1}], "a list of 1 whose first item is an object with 'text'"),
        (None, "null"),
        (7, "a int"),
        ({"answer": None}, "the agent's answer is null"),
        ({"answer": {"text": "Yes."}}, "the agent's answer is an object with 'text'"),
        ({"answer": "Yes.", "topic": 7}, "topic"),
        ({"answer": "Yes.", "actions": "A B"}, ""),
        ({"answer": "Yes.", "actions": [{"tool": "A"}]}, r"\$\.name of action_name matches nothing .*'tool'"),
        ({"answer": "Yes.", "actions": [7]}, "actions hold"),
        ({"answer": "Yes.", "actions": [{"name": "A", "input": [1]}]}, "input of A"),
        ({"answer": "Yes.", "session": {}}, "session_id"),
        ({"answer": "Yes.", "tokens": "many"}, "tokens"),
        ({"answer": "x" * 1_000_001}, "1000001 characters"),
    ],
)
def test_a_reply_of_the_wrong_form_is_described(reply: JsonValue, words: str) -> None:
    paths = {"topic": "$.topic", "actions": "$.actions", "session": "$.session", "input_tokens": "$.tokens"}
    if not words:
        assert answer(reply, **paths).actions == (Action("A B"),)
        return
    with pytest.raises(SubjectError, match=words):
        answer(reply, **paths)


def test_a_reply_with_too_many_matches_is_an_error() -> None:
    with pytest.raises(SubjectError, match="too large for the path"):
        answer({"answer": "Yes.", "actions": ["A"] * 10_001}, actions="$.actions[*]")


def test_what_the_environment_holds_is_sent_and_shows_up_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", KEY)
    reply = says({"answer": f"Your key is {KEY}", "trace": [KEY]})
    with replying_with(http_reply(500, KEY.encode()), reply) as server:
        headers = {"X-Desk": "desk ${DESK_KEY}"}
        results = run(agent(server.url, headers=headers, trace="$.trace"), evaluation(2, expectations=()))
    assert f"x-desk: desk {KEY}\r\n" in server.requests[0].decode().lower()
    assert sorted(result.verdict is Verdict.ERROR for result in results) == [False, True]
    assert KEY not in repr(results)
    assert "[secret]" in repr(results)


def test_an_incomplete_answer_is_transient() -> None:
    half = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"answer": '
    with replying_with(half) as server, pytest.raises(SubjectUnreachable):
        talk(agent(server.url), "And now?")


def test_nonsense_makes_its_case_an_error_and_spoils_no_other() -> None:
    with replying_with(http_reply(200, b"<p>Welcome</p>"), says({"answer": "Yes."})) as server:
        results = run(agent(server.url), evaluation(3, expectations=()), concurrency=1)
    assert [result.verdict is Verdict.ERROR for result in results] == [True, False, False]
    assert "is not valid JSON" in (results[0].error or "")


@pytest.mark.parametrize(
    ("settings", "words", "action"),
    [
        ({"request": {"a": ["{{utterence}}"]}}, "{{utterence}}", "Did you mean {{utterance}}?"),
        ({"request": {"a": "{{}}"}}, "{{}}", "Known: {{utterance}}"),
        ({"request": {"a": "{{context.}}"}}, "{{context.}}", "{{context.NAME}}"),
        (
            {"request": {"a": "{utterance}", "b": "{{session}}"}},
            "every question is the same",
            "Write {{utterance}} where",
        ),
        ({"answer": "answer"}, "answer 'answer' is not a valid JSONPath", "$.reply.answer"),
        ({"topic": "$.topic.max()"}, "topic", "$.reply.topic"),
        ({"answer": ""}, "answer is empty", "$.answer"),
        ({"action_name": ""}, "action_name is empty", "$.action_name"),
        ({"headers": {"Authorization": "Bearer ${NOT_SET_ANYWHERE}"}}, "NOT_SET_ANYWHERE", "Set NOT_SET_ANYWHERE"),
        ({"url": "http://agents.example.com", "headers": {"X-Api-Key": "abc"}}, "sent unencrypted", "https"),
    ],
)
def test_invalid_settings_are_reported_before_the_run(settings: dict[str, object], words: str, action: str) -> None:
    with pytest.raises(SettingsError) as caught:
        agent(**({"url": "http://127.0.0.1:1"} | settings))  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert action in caught.value.actions[0]
