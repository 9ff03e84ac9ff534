from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

import pytest

from canaries import MARK, canary
from engine.subjects.agent_api import AGENT_ID, API, ORG, AgentApi, error, jwt, say, served
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.agentforce import AgentforceSubject, bind_agentforce
from evalmeta.errors import EvalmetaError, OrgUnreachable, SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.definition import ContextVariable, HistoryMessage
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.generated_data import Action, GeneratedData

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import SignedIn

T = TypeVar("T")
TOKEN = "good.token.of.the.api"  # noqa: S105 - of no API
TRACE = {
    "type": "PlanSuccessResponse",
    "topic": "Weather",
    "plan": [
        {"type": "UpdateTopicStep", "topic": "Weather"},
        {
            "type": "FunctionStep",
            "function": {"name": "Check_Weather", "input": {"day": "today"}, "output": {"max": 9}},
            "executionLatency": 781,
        },
    ],
}
CASE = Case(1, (Turn("Rain?"),))
HISTORY = (HistoryMessage("user", "Hi", None, 0), HistoryMessage("agent", "Hello.", "Small_Talk", 1))


@pytest.fixture
def api() -> AgentApi:
    return AgentApi()


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN", TOKEN)


def settings(**given: object) -> AgentforceSubject:
    chosen = {"instance_url": ORG, "token_env": "AGENT_TOKEN"} | given
    return AgentforceSubject(adapter="agentforce", agent_id=AGENT_ID, **chosen)


def test_plan_traces_are_requested_and_not_received() -> None:
    assert settings().traces
    assert not settings().reads_traces


def of_org(**given: object) -> AgentforceSubject:
    return settings(org="dev", token_env="", instance_url="", **given)


def bound(api: AgentApi, table: AgentforceSubject | None = None) -> Subject:
    return bind_agentforce(table or settings(), sign_in=api.sign_in, transport=api.transport)


def talk(subject: Subject, do: Callable[[Session], Awaitable[T]], about: Case | None = None) -> T:
    """Opens a session, does something in it, closes it, and gives what came of it."""

    async def go() -> T:
        try:
            session = await subject.open(about or CASE)
            try:
                return await do(session)
            finally:
                await session.close()
        finally:
            await subject.close()

    return asyncio.run(go())


def ask(api: AgentApi, table: AgentforceSubject | None = None, about: Case | None = None) -> GeneratedData:
    return talk(bound(api, table), lambda session: session.ask("Rain?"), about)


def test_an_answer_has_the_plans_topic_actions_and_trace(api: AgentApi) -> None:
    api.traces["Rain?"] = TRACE
    answer = ask(api)
    assert (answer.outcome, answer.topic, answer.trace) == ("You said Rain?", "Weather", TRACE)
    assert answer.actions == (Action("Check_Weather", {"day": "today"}, {"max": 9}, 781.0),)
    assert answer.session_id
    assert answer.latency_ms is not None
    assert api.ended == ["UserRequest"]


@pytest.mark.parametrize("trace", [None, {}])
def test_without_a_plan_trace_topic_and_actions_stay_unknown(api: AgentApi, trace: object) -> None:
    api.traces["Rain?"] = trace
    answer = ask(api)
    assert (answer.outcome, answer.topic, answer.actions, answer.trace) == ("You said Rain?", None, None, None)


def test_plan_traces_are_not_asked_for_when_the_settings_say_so(api: AgentApi) -> None:
    api.traces["Rain?"] = TRACE
    assert ask(api, settings(traces=False)).topic is None
    assert [method for method, _ in api.requests] == ["POST", "POST", "DELETE"]


def test_a_session_starts_with_variables_and_the_agents_user(api: AgentApi) -> None:
    variables = (
        ContextVariable("RoutableId", "0Mw1"),
        ContextVariable("Is_VIP", "true"),
        ContextVariable("Count", "3"),
    )
    ask(api, settings(variable_types={"Count": "Number"}), Case(1, CASE.turns, context_variables=variables))
    started = api.started[0]
    assert (started["instanceConfig"], started["bypassUser"]) == ({"endpoint": ORG}, True)
    assert started["variables"] == [
        {"name": "$Context.RoutableId", "type": "Text", "value": "0Mw1"},
        {"name": "Is_VIP", "type": "Boolean", "value": True},
        {"name": "Count", "type": "Number", "value": 3},
    ]


def test_plain_values_of_the_state_are_variables_too(api: AgentApi) -> None:
    state: JsonObject = {"vip": True, "orders": 3, "sum": 1.5, "answer": "true", "id": "x", "none": None, "cart": ["a"]}
    case = Case(1, CASE.turns, context_variables=(ContextVariable("id", "y"),), state=state)
    ask(api, settings(variable_types={"sum": "Text"}), case)
    assert api.started[0]["variables"] == [
        {"name": "vip", "type": "Boolean", "value": True},
        {"name": "orders", "type": "Number", "value": 3},
        {"name": "sum", "type": "Text", "value": "1.5"},
        {"name": "answer", "type": "Text", "value": "true"},
        {"name": "id", "type": "Text", "value": "y"},
    ]


def test_a_variable_of_another_type_than_the_settings_say_is_an_error(api: AgentApi) -> None:
    about = Case(1, CASE.turns, context_variables=(ContextVariable("Count", "three"),))
    with pytest.raises(SubjectError, match=r"Count is 'three', which is not a valid Number; .* variable_types"):
        ask(api, settings(variable_types={"Count": "Number"}), about)


def test_an_agent_without_a_user_of_its_own_is_asked_as_the_tokens(api: AgentApi) -> None:
    api.has_user = False
    with pytest.raises(SubjectError, match="Invalid user ID"):
        ask(api)
    assert ask(api, settings(bypass_user=False)).outcome == "You said Rain?"


def test_the_users_turns_of_the_history_are_really_said_and_the_answers_dropped(api: AgentApi) -> None:
    assert ask(api, about=Case(1, CASE.turns, HISTORY)).outcome == "You said Rain?"
    assert api.said == ["Hi", "Rain?"]


def test_later_turns_go_into_the_same_session(api: AgentApi) -> None:
    async def twice(session: Session) -> set[str | None]:
        return {(await session.ask(utterance)).session_id for utterance in ("One", "Two")}

    assert len(talk(bound(api), twice, Case(1, CASE.turns, HISTORY))) == 1
    assert api.said == ["Hi", "One", "Two"]


@pytest.mark.parametrize("kind", ["Failure", "Error"])
def test_a_failure_of_the_agent_is_an_error(api: AgentApi, kind: str) -> None:
    api.answer = lambda _: [say(kind, "The flow broke.")]
    with pytest.raises(SubjectError, match=r"the agent failed: The flow broke\."):
        ask(api)


def test_an_escalation_is_an_answer(api: AgentApi) -> None:
    api.answer = lambda _: [say("Inform", "One moment."), say("Escalate", "I pass you on.")]
    answer = ask(api)
    assert answer.outcome == "One moment.\nI pass you on."


def test_a_session_answers_one_request_at_a_time(api: AgentApi) -> None:
    async def together(session: Session) -> list[GeneratedData | BaseException]:
        return await asyncio.gather(session.ask("One"), session.ask("Two"), return_exceptions=True)

    first, second = talk(bound(api), together)
    assert isinstance(first, GeneratedData)
    assert isinstance(second, SubjectBusy)


@pytest.mark.parametrize(
    ("method", "end", "status"),
    [("POST", "/messages", 429), ("POST", "/messages", 423), ("POST", "/messages", 503), ("GET", "Rain?", 429)],
)
def test_a_repeated_call_continues_where_the_agent_was_busy(api: AgentApi, method: str, end: str, status: int) -> None:
    async def again(session: Session) -> GeneratedData:
        with pytest.raises(SubjectBusy):
            await session.ask("Rain?")
        return await session.ask("Rain?")

    api.traces["Rain?"] = TRACE
    api.break_next(method, end, status)
    assert talk(bound(api), again, Case(1, CASE.turns, HISTORY)).topic == "Weather"
    assert api.said == ["Hi", "Rain?"]


def test_a_gateway_error_is_transient(api: AgentApi) -> None:
    api.break_next("POST", "/messages", 502)
    with pytest.raises(SubjectUnreachable):
        ask(api)


@pytest.mark.parametrize("status", [500, 404, 403])
def test_other_statuses_are_errors_with_the_message_of_the_api(api: AgentApi, status: int) -> None:
    api.break_next("POST", "/sessions", status, error(status))
    with pytest.raises(SubjectError, match="It is late"):
        ask(api)


def test_a_plan_trace_that_is_refused_is_an_error(api: AgentApi) -> None:
    api.break_next("GET", "/Rain?", 403)
    with pytest.raises(SubjectError, match="status 403: It is late"):
        ask(api)


@pytest.mark.parametrize(
    ("end", "body", "complaint"),
    [
        ("/sessions", {"messages": []}, "the reply has no sessionId"),
        ("/sessions", [1], "answered with list; expected a JSON object"),
        ("/messages", {"answers": []}, "the reply has no list of messages"),
    ],
)
def test_invalid_replies_are_errors(api: AgentApi, end: str, body: object, complaint: str) -> None:
    api.break_next("POST", end, 200, body)
    with pytest.raises(SubjectError, match=complaint):
        ask(api)


def test_a_login_is_exchanged_for_the_apis_token_once_for_all_sessions(api: AgentApi) -> None:
    api.sessions, api.tokens = {"00D1!session": jwt()}, {jwt()}

    async def many() -> list[GeneratedData]:
        subject = bound(api, of_org())
        sessions = await asyncio.gather(*(subject.open(CASE) for _ in range(5)))
        answers = await asyncio.gather(*(session.ask("Rain?") for session in sessions))
        await subject.close()
        return answers

    assert [answer.outcome for answer in asyncio.run(many())] == ["You said Rain?"] * 5
    assert (api.signed_in, api.exchanged) == ([""], 1)
    assert api.started[0]["instanceConfig"] == {"endpoint": ORG}


def test_a_session_that_the_org_does_not_exchange_is_used_as_it_is(api: AgentApi) -> None:
    api.sessions, api.tokens = {"00D1!session": ""}, {"00D1!session"}
    assert ask(api, of_org()).outcome == "You said Rain?"


@pytest.mark.parametrize(("status", "expected"), [(503, SubjectBusy), (504, SubjectUnreachable)])
def test_an_exchange_that_fails_in_passing_is_tried_again(
    api: AgentApi, status: int, expected: type[SubjectError]
) -> None:
    api.sessions, api.tokens = {"00D1!session": jwt()}, {jwt()}
    api.break_next("GET", "/nameduser", status)
    with pytest.raises(expected):
        ask(api, of_org())
    assert ask(api, of_org()).outcome == "You said Rain?"


def test_a_token_that_ends_on_the_way_is_renewed_once_for_all_sessions(api: AgentApi) -> None:
    api.sessions, api.tokens = {"00D1!old": jwt(1)}, {jwt(1)}

    async def go() -> list[GeneratedData]:
        subject = bound(api, of_org())
        sessions = [await subject.open(CASE) for _ in range(3)]
        api.sessions["00D1!new"] = jwt(2)
        api.tokens = {jwt(2)}
        answers = await asyncio.gather(*(session.ask("Rain?") for session in sessions))
        await subject.close()
        return answers

    assert len(asyncio.run(go())) == 3
    assert api.signed_in == ["", "00D1!old"]


def test_a_new_token_that_is_refused_too_is_not_renewed_again(api: AgentApi) -> None:
    api.sessions, api.tokens = {"00D1!session": jwt()}, set()

    async def go() -> list[str]:
        subject, said = bound(api, of_org()), []
        for _ in range(3):
            with pytest.raises(SubjectError) as caught:
                await subject.open(CASE)
            said.append(str(caught.value))
        await subject.close()
        return said

    assert all("rejects a new session of " + ORG in each and "sfap_api" in each for each in asyncio.run(go()))
    assert len(api.signed_in) == 2


def test_a_token_of_the_environment_that_has_ended_is_named(api: AgentApi) -> None:
    api.tokens = set()
    with pytest.raises(SubjectError, match="rejects the access token in AGENT_TOKEN"):
        ask(api)


def test_an_org_that_does_not_answer_a_sign_in_is_transient(api: AgentApi) -> None:
    async def sign_in(org: str, *, instead_of: str = "") -> SignedIn:
        raise OrgUnreachable(f"{org} does not answer{instead_of}")

    subject = bind_agentforce(of_org(), sign_in=sign_in, transport=api.transport)
    with pytest.raises(SubjectUnreachable, match="dev does not answer"):
        talk(subject, lambda session: session.ask("Rain?"))


def test_a_login_that_has_ended_says_so(api: AgentApi) -> None:
    with pytest.raises(EvalmetaError, match="the session with dev has ended"):
        ask(api, of_org())


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"token_env": ""}, "neither org nor token_env is set"),
        ({"org": "dev"}, "both org and token_env are set"),
        ({"instance_url": ""}, "instance_url is missing"),
    ],
)
def test_incomplete_settings_are_reported_with_the_lines_to_add(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint) as caught:
        bind_agentforce(settings(**given), sign_in=AgentApi().sign_in)
    assert f'agent_id = "{AGENT_ID}"\norg = "my-org"' in caught.value.actions[0]
    assert 'token_env = "AGENT_TOKEN"\ninstance_url = "https' in caught.value.actions[1]


def test_a_login_needs_stored_logins(tmp_path: Path) -> None:
    assert bind(of_org(), root=tmp_path, sign_in=AgentApi().sign_in)
    with pytest.raises(SettingsError, match="stored logins are not available here, so dev"):
        bind(of_org(), root=tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("NO_TOKEN", "", "NO_TOKEN is not set"),
        ("AGENT_TOKEN", "two words", "does not hold an access token"),
        ("SF_ACCESS_TOKEN", "00D000000000001!a", "is hidden from the programs that run tests"),
    ],
)
def test_a_variable_without_a_token_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str
) -> None:
    if value:
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=complaint) as caught:
        bind_agentforce(settings(token_env=name))
    assert caught.value.actions
    assert value not in str(caught.value) or not value


@pytest.mark.parametrize(("field", "url"), [("instance_url", "http://desk.example.com"), ("url", "ftp://a.b/v1")])
def test_addresses_that_must_not_receive_tokens_are_rejected(field: str, url: str) -> None:
    with pytest.raises(SettingsError):
        bind_agentforce(settings(**{field: url}))


def test_no_token_is_sent_over_http(api: AgentApi) -> None:
    with pytest.raises(SettingsError, match="sent unencrypted"):
        ask(api, settings(url="http://api.example.com/einstein/ai-agent/v1"))
    assert api.requests == []


def test_over_a_real_socket_it_is_the_same(api: AgentApi) -> None:
    api.traces["Rain?"] = TRACE

    async def go() -> GeneratedData:
        async with served(api) as url:
            subject = bind_agentforce(settings(url=url + API.removeprefix("https://api.salesforce.com")))
            session = await subject.open(CASE)
            answer = await session.ask("Rain?")
            await session.close()
            await subject.close()
            return answer

    assert asyncio.run(go()).topic == "Weather"
    assert api.ended == ["UserRequest"]


def test_no_token_is_in_answers_errors_or_logs(api: AgentApi, caplog: pytest.LogCaptureFixture) -> None:
    session = "00D000000000001!" + canary("session")
    token = f"eyJh.{canary('claims')}.{canary('signature')}"
    api.sessions, api.tokens = {session: token}, {token}
    api.answer = lambda _: [say("Inform", f"Bearer {token} {session}", "plan")]
    api.traces["plan"] = {"topic": token, "plan": [{"type": "FunctionStep", "function": {"name": session}}]}
    caplog.set_level(logging.DEBUG)
    answer = ask(api, of_org())
    texts = [repr(answer)]
    for status in (400, 401, 403, 404, 423, 429, 500, 502):
        api.break_next("POST", "/messages", status, error(status, token, f"Bearer {token} and {session}"))
        try:
            texts.append(repr(ask(api, of_org())))
        except EvalmetaError as caught:
            texts += [str(caught), repr(caught), *caught.actions]
    assert len(texts) > 8
    assert [text for text in (*texts, caplog.text) if MARK in text] == []
