"""An agent in a Salesforce org, asked through the Agent API.

Tokens for APIs of an org's: one sign-in for all sessions, exchanged where the API wants it, renewed when it ends.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from evalmeta.engine.http_endpoint import open_endpoint
from evalmeta.engine.subjects.conversation import plain_text
from evalmeta.errors import (
    MessageUnreadable,
    OrgUnreachable,
    SettingsError,
    SubjectBusy,
    SubjectError,
    SubjectRefused,
    SubjectUnreachable,
    UsageError,
)
from evalmeta.model.definition import ContextVariable
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.redaction import child_environment
from evalmeta.protocol import agent_api
from evalmeta.protocol.agent_api import NAMED_USER_PATH, read_token
from evalmeta.protocol.json_fields import org_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from evalmeta.engine.http_endpoint import Endpoint, Reply
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.login import SignedIn, SignIn
    from evalmeta.model.settings import AgentforceSubject
    from evalmeta.protocol.agent_api import AgentReply, Plan


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
    root = settings.url.rstrip("/").removesuffix(agent_api.VERSION)
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
        body = agent_api.start_body(
            key=str(uuid.uuid4()),
            instance_url=(await self._tokens.get()).url,
            bypass_user=self.settings.bypass_user,
            variables=_variables(case, self.settings.variable_types),
        )
        reply = await self.call("POST", agent_api.start_path(self.settings.agent_id), body)
        try:
            session_id = agent_api.read_session_id(_object(reply))
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
        await self._agent.call("DELETE", agent_api.end_path(self._id), headers=agent_api.END_HEADERS)

    async def _say(self, utterance: str) -> tuple[AgentReply, float]:
        """Gives the answer and how long it took, in milliseconds."""
        self._sequence += 1
        body, asked = agent_api.text_body(self._sequence, utterance), time.perf_counter()
        reply = await self._agent.call("POST", agent_api.messages_path(self._id), body)
        latency_ms = round((time.perf_counter() - asked) * 1000, 1)
        try:
            answer = agent_api.read_reply(_object(reply))
        except MessageUnreadable as error:
            raise _unreadable(error) from None
        if answer.failure is not None:
            raise SubjectError(f"the agent failed: {answer.failure}")
        return answer, latency_ms

    async def _plan(self, plan_id: str) -> Plan:
        if not plan_id or not self._agent.settings.traces:
            return agent_api.read_plan({})
        try:
            reply = await self._agent.call("GET", agent_api.plan_path(self._id, plan_id))
        except SubjectRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return agent_api.read_plan({})
            raise
        return agent_api.read_plan(_object(reply))


def _variables(case: Case, types: Mapping[str, str]) -> list[JsonObject]:
    """Gives the plain values of the session's state and the context variables; of one name the variable counts."""
    given = {each.name for each in case.context_variables}
    state = {name: value for name, value in case.state.items() if name not in given and _type_of(value)}
    held = [ContextVariable(name, plain_text(value)) for name, value in state.items()]
    types = {**{name: _type_of(value) for name, value in state.items()}, **types}
    try:
        return agent_api.variables([*held, *case.context_variables], types)
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


_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Pass:
    """What opens an API: a token, the session of the org that it was had for, and the org's address."""

    url: str
    token: str = field(repr=False)
    session: str = field(repr=False)


class Passes(Protocol):
    """Where passes come from."""

    async def __call__(self, ended: Pass | None) -> Pass:
        """Gives a pass, a new one in place of one that the API takes no longer."""
        ...


class ApiTokens:
    """The pass that the sessions of a subject share."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._lock = asyncio.Lock()
        self._pass: Pass | None = None
        self._is_untried = False

    async def get(self) -> Pass:
        """Gives the pass; the first who asks signs in."""
        async with self._lock:
            if self._pass is None:
                self._pass = await self._passes(None)
            return self._pass

    async def renew(self, ended: Pass) -> Pass:
        """Gives another pass for one that the API refused; sessions that come together get the same.

        Raises:
            SubjectError: the refused one was new, so that another would be refused too.
        """
        async with self._lock:
            if self._pass is not ended and self._pass is not None:
                return self._pass
            if self._is_untried:
                raise refused(ended)
            self._pass, self._is_untried = await self._passes(ended), True
            return self._pass

    def accept(self) -> None:
        """Notes that the API took the pass."""
        self._is_untried = False


def refused(new: Pass) -> SubjectError:
    """Gives the error for a pass that is new and not taken."""
    return SubjectError(
        f"the Agent API does not take a new session of {new.url}; its app needs the scopes chatbot_api and sfap_api, "
        "and its user access to the agent"
    )


def passes_of_environment(name: str, url: str) -> Passes:
    """Gives the token in an environment variable, which nothing can renew.

    Raises:
        SettingsError: the variable is not set, holds no token, or is not given to the programs that run tests.
    """
    token = child_environment().get(name, "").strip()
    if not _TOKEN.fullmatch(token):
        raise _no_variable(name, is_set=bool(token))

    async def passes(ended: Pass | None) -> Pass:
        if ended:
            raise SubjectError(f"the Agent API does not take the access token in {name}; set it to a new one")
        return Pass(url, token, token)

    return passes


def passes_of_org(org: str, sign_in: SignIn, *, transport: httpx.AsyncBaseTransport | None = None) -> Passes:
    """Gives sessions of a login, exchanged for the API's token; if the org exchanges none, the session itself."""

    async def passes(ended: Pass | None) -> Pass:
        try:
            signed_in = await sign_in(org, instead_of=ended.session if ended else "")
        except OrgUnreachable as error:
            raise SubjectUnreachable(str(error)) from error
        token = await _exchanged(signed_in, transport)
        return Pass(signed_in.url, token or signed_in.access_token, signed_in.access_token)

    return passes


async def _exchanged(signed_in: SignedIn, transport: httpx.AsyncBaseTransport | None) -> str:
    """Gets the named user's JWT, as the sf CLI does; empty when the org gives none for this session."""
    session = signed_in.access_token
    endpoint = open_endpoint(
        signed_in.url, headers={"Cookie": f"sid={session}"}, secrets=(session,), transport=transport
    )
    try:
        reply = await endpoint.send(None, NAMED_USER_PATH, method="GET")
    except (SubjectBusy, SubjectUnreachable):
        raise
    except SubjectError:
        return ""
    finally:
        await endpoint.close()
    return read_token(reply.value) if isinstance(reply.value, dict) else ""


def _no_variable(name: str, *, is_set: bool) -> SettingsError:
    if is_set:
        return SettingsError(
            f"the environment variable {name} holds no access token: it has blanks or characters that no token has",
            actions=(f"Set {name} to the token alone.",),
        )
    if name in os.environ:
        return SettingsError(
            f"the environment variable {name} is kept from the programs that run tests",
            actions=("Give the token in a variable of another name, such as AGENT_TOKEN, and name it in token_env.",),
        )
    return SettingsError(
        f"the environment variable {name} is not set, which token_env in evalmeta.toml names",
        actions=(f"Set {name} to an access token with the scopes chatbot_api and sfap_api.",),
    )
