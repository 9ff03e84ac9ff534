"""An agent in a Salesforce org, asked through the Agent API."""

from __future__ import annotations

import time
import uuid
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from evalmeta.engine.endpoints import open_endpoint
from evalmeta.engine.subjects.apitokens import ApiTokens, passes_of_environment, passes_of_org, refused
from evalmeta.engine.subjects.messages import plain_text
from evalmeta.errors import MessageUnreadable, SettingsError, SubjectBusy, SubjectError, SubjectRefused, UsageError
from evalmeta.model.definition import ContextVariable
from evalmeta.model.generated import GeneratedData
from evalmeta.wire import agentapi
from evalmeta.wire.addresses import org_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from evalmeta.engine.endpoints import Endpoint, Reply
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.engine.subjects.apitokens import Pass, Passes
    from evalmeta.model.evaluation import Case
    from evalmeta.model.jsonvalue import JsonObject, JsonValue
    from evalmeta.model.login import SignIn
    from evalmeta.model.settings import AgentforceSubject
    from evalmeta.wire.agentapi import AgentReply, Plan

__all__ = ["bind_agentforce"]

_Method: TypeAlias = Literal["DELETE", "GET", "POST"]
_HEADERS: Final = {"x-client-name": "evalmeta"}


def bind_agentforce(
    settings: AgentforceSubject, *, sign_in: SignIn | None = None, transport: httpx.AsyncBaseTransport | None = None
) -> Subject:
    """Makes a subject of an agent in an org; nothing is sent yet.

    The user's turns of a case's history are really sent, because the Agent API (v1)
    has no other way to put them into a session: the agent's answers to them are its own.

    Args:
        settings: which agent, and as whom it is asked.
        sign_in: gives sessions for `org`.
        transport: what carries requests instead of the network.

    Raises:
        SettingsError: there is no token, or an address cannot be used.
    """
    passes = _passes(settings, sign_in, transport)
    root = settings.url.rstrip("/").removesuffix(agentapi.VERSION)
    return _Agent(settings, open_endpoint(root, headers=_HEADERS, transport=transport), ApiTokens(passes))


def _passes(settings: AgentforceSubject, sign_in: SignIn | None, transport: httpx.AsyncBaseTransport | None) -> Passes:
    if bool(settings.org) == bool(settings.token_env):
        raise _incomplete(settings, "it has both org and token_env" if settings.org else "nothing says as whom")
    if settings.org:
        if sign_in is None:
            raise _incomplete(settings, f"there are no logins here, so {settings.org} is not known")
        return passes_of_org(settings.org, sign_in, transport=transport)
    if not settings.instance_url:
        raise _incomplete(settings, "token_env says no org, and instance_url is missing")
    return passes_of_environment(settings.token_env, _instance(settings.instance_url))


def _instance(url: str) -> str:
    try:
        return org_url(url)
    except UsageError as error:
        raise SettingsError(f"the agent's instance_url cannot be used: {error}", actions=error.actions) from None


def _incomplete(settings: AgentforceSubject, reason: str) -> SettingsError:
    table = f'adapter = "agentforce"\nagent_id = "{settings.agent_id}"'
    url = settings.instance_url or "https://mycompany.my.salesforce.com"
    token = f'token_env = "{settings.token_env or "AGENT_TOKEN"}"\ninstance_url = "{url}"'
    return SettingsError(
        f"the agent {settings.agent_id} cannot be asked: {reason}",
        actions=(
            f'Name a login of evalmeta org list in the subject\'s table:\n\n{table}\norg = "my-org"',
            f"Or an environment variable with an access token, and the org's address:\n\n{table}\n{token}",
        ),
    )


class _Agent:
    """One agent; its sessions share connections and the token."""

    def __init__(self, settings: AgentforceSubject, endpoint: Endpoint, tokens: ApiTokens) -> None:
        self.settings = settings
        self._endpoint = endpoint
        self._tokens = tokens

    async def open(self, case: Case) -> Session:
        body = agentapi.start_body(
            key=str(uuid.uuid4()),
            instance_url=(await self._tokens.get()).url,
            bypass_user=self.settings.bypass_user,
            variables=_variables(case, self.settings.variable_types),
        )
        reply = await self.call("POST", agentapi.start_path(self.settings.agent_id), body)
        try:
            session_id = agentapi.read_session_id(_object(reply))
        except MessageUnreadable as error:
            raise _unreadable(error) from None
        history = (each.message or "" for each in case.history if each.role == "user")
        return _Session(self, session_id, deque(history))

    async def close(self) -> None:
        await self._endpoint.close()

    async def call(
        self, method: _Method, path: str, body: JsonObject | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Sends a request with the token, once more with a new one when the API takes it no longer.

        Raises:
            SubjectBusy: the session is still answering another request, or as `Endpoint.send`.
            SubjectError: as `Endpoint.send`, or there is no token that the API takes.
        """
        opened = await self._tokens.get()
        try:
            return await self._send(opened, method, path, body, headers=headers)
        except SubjectRefused as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
        opened = await self._tokens.renew(opened)
        try:
            return await self._send(opened, method, path, body, headers=headers)
        except SubjectRefused as error:
            raise error if error.status != HTTPStatus.UNAUTHORIZED else refused(opened) from None

    async def _send(
        self, opened: Pass, method: _Method, path: str, body: JsonObject | None, *, headers: Mapping[str, str] | None
    ) -> Reply:
        headers = {"Authorization": f"Bearer {opened.token}", **(headers or {})}
        secrets = (opened.token, opened.session)
        try:
            reply = await self._endpoint.send(body, path, method=method, headers=headers, secrets=secrets)
        except SubjectRefused as error:
            if error.status == HTTPStatus.LOCKED:
                raise SubjectBusy(str(error)) from None
            raise
        self._tokens.accept()
        return reply


class _Session:
    """One conversation. What was done stays done when a call is repeated because the agent was busy."""

    def __init__(self, agent: _Agent, session_id: str, history: deque[str]) -> None:
        self._agent = agent
        self._id = session_id
        self._history = history
        self._sequence = 0
        self._answer: tuple[AgentReply, float] | None = None

    async def ask(self, utterance: str) -> GeneratedData:
        while self._history:
            await self._say(self._history[0])
            self._history.popleft()
        if self._answer is None:
            self._answer = await self._say(utterance)
        reply, latency_ms = self._answer
        plan = await self._plan(reply.plan_id)
        self._answer = None
        return GeneratedData(
            reply.text, plan.topic, plan.actions, latency_ms=latency_ms, session_id=self._id, trace=plan.trace
        )

    async def close(self) -> None:
        await self._agent.call("DELETE", agentapi.end_path(self._id), headers=agentapi.END_HEADERS)

    async def _say(self, utterance: str) -> tuple[AgentReply, float]:
        """Gives the answer and how long it took, in milliseconds."""
        self._sequence += 1
        body, asked = agentapi.text_body(self._sequence, utterance), time.perf_counter()
        reply = await self._agent.call("POST", agentapi.messages_path(self._id), body)
        latency_ms = round((time.perf_counter() - asked) * 1000, 1)
        try:
            answer = agentapi.read_reply(_object(reply))
        except MessageUnreadable as error:
            raise _unreadable(error) from None
        if answer.failure is not None:
            raise SubjectError(f"the agent failed: {answer.failure}")
        return answer, latency_ms

    async def _plan(self, plan_id: str) -> Plan:
        if not plan_id or not self._agent.settings.traces:
            return agentapi.read_plan({})
        try:
            reply = await self._agent.call("GET", agentapi.plan_path(self._id, plan_id))
        except SubjectRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return agentapi.read_plan({})
            raise
        return agentapi.read_plan(_object(reply))


def _variables(case: Case, types: Mapping[str, str]) -> list[JsonObject]:
    """Gives the plain values of the session's state and the context variables; of one name the variable counts."""
    given = {each.name for each in case.context_variables}
    state = {name: value for name, value in case.state.items() if name not in given and _type_of(value)}
    held = [ContextVariable(name, plain_text(value)) for name, value in state.items()]
    types = {**{name: _type_of(value) for name, value in state.items()}, **types}
    try:
        return agentapi.variables([*held, *case.context_variables], types)
    except ValueError as error:
        raise SubjectError(f"{error}; evalmeta.toml says so in variable_types") from None


def _type_of(value: JsonValue) -> str:
    """Gives the Agent API's type of a value; an empty one for what it has none for."""
    match value:
        case bool():
            return "Boolean"
        case int() | float():
            return "Number"
        case str():
            return "Text"
        case _:
            return ""


def _object(reply: Reply) -> JsonObject:
    if isinstance(reply.value, dict):
        return reply.value
    raise SubjectError(f"the Agent API answered with {type(reply.value).__name__}; expected a JSON object")


def _unreadable(error: MessageUnreadable) -> SubjectError:
    return SubjectError(f"the Agent API answered as it never does: {error}")
