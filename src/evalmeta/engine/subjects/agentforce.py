"""An agent in a Salesforce org, called through the Agent API; all sessions share one token."""

from __future__ import annotations

import asyncio
import os
import re
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import Field

from evalmeta.engine.answers import plain_text
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
from evalmeta.model.redaction import address_in_words, child_environment
from evalmeta.model.settings import SubjectSettings
from evalmeta.protocol import agent_api
from evalmeta.protocol.agent_api import NAMED_USER_PATH, AgentReply, Plan, read_token
from evalmeta.protocol.json_fields import org_url

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from evalmeta.engine.http_endpoint import Endpoint, Reply
    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import SignedIn, SignIn


VariableType = Literal["Text", "Number", "Boolean", "Date", "DateTime", "Money", "Ref", "Object", "List", "Json"]
_Method: TypeAlias = Literal["DELETE", "GET", "POST"]
_T = TypeVar("_T")
_HEADERS: Final = {"x-client-name": "evalmeta"}
# The status of a session that is still answering another request.
_BUSY_STATUSES: Final = frozenset({HTTPStatus.LOCKED})
_TYPES: Final[Mapping[type, str]] = {bool: "Boolean", int: "Number", float: "Number", str: "Text"}
_TOKEN: Final = re.compile(r"[!-~]+")


class AgentforceSubject(SubjectSettings):
    """An agent in a Salesforce org, reached through the Agent API.

    `agent_id` is the BotDefinition's id. `org` is an alias or username of a login. Instead, `token_env` can be an
    environment variable with an access token, with `instance_url` as the org's My Domain. `bypass_user` lets the agent
    act as its own user. `variable_types` are the types of context variables. With `traces = false`, no plan traces are
    requested, and topics and actions are unknown.
    """

    agent = "an agent in a Salesforce org"

    adapter: Literal["agentforce"]
    agent_id: Annotated[str, Field(pattern=r"^0Xx[0-9A-Za-z]{12}(?:[0-9A-Za-z]{3})?$")]
    org: str = ""
    token_env: str = ""
    instance_url: str = ""
    url: Annotated[str, Field(pattern=r"/v1/?$")] = "https://api.salesforce.com/einstein/ai-agent/v1"
    bypass_user: bool = True
    variable_types: dict[str, VariableType] = Field(default_factory=dict)
    traces: bool = True

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for the agent."""
        return bind_agentforce(self, sign_in=sign_in)

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the agent and its org."""
        return f"agentforce {self.agent_id} in {self.org or address_in_words(self.instance_url)}", []

    @property
    def login(self) -> str:
        """Return the login whose org has the agent."""
        return self.org


def bind_agentforce(
    settings: AgentforceSubject, *, sign_in: SignIn | None = None, transport: httpx.AsyncBaseTransport | None = None
) -> Subject:
    """Return a subject for an agent in an org; raise SettingsError if there is no token or an address is not valid.

    The user's messages of a case's history are really sent, and the agent's own answers to them are used: the Agent
    API (v1) has no other way to give a session a history. `sign_in` returns sessions for the setting `org`.
    """
    if bool(settings.org) == bool(settings.token_env):
        which = "both org and token_env are set" if settings.org else "neither org nor token_env is set"
        raise _incomplete(settings, which)
    if settings.org:
        if sign_in is None:
            raise _incomplete(settings, f"stored logins are not available here, so {settings.org} is not known")
        source = _tokens_of_org(settings.org, sign_in, transport)
    elif settings.instance_url:
        source = _token_of_environment(settings.token_env, settings.instance_url)
    else:
        raise _incomplete(settings, "token_env needs the org's address, and instance_url is missing")
    root = settings.url.rstrip("/").removesuffix(agent_api.VERSION)
    credential = f"the login {settings.org}" if settings.org else f"the access token in {settings.token_env}"
    from evalmeta.engine.http_endpoint import Endpoint

    endpoint = Endpoint(
        root, headers=_HEADERS, credential=credential, busy_statuses=_BUSY_STATUSES, transport=transport
    )
    return _Agent(settings, endpoint, _Tokens(source))


def _incomplete(settings: AgentforceSubject, reason: str) -> SettingsError:
    table = f'adapter = "agentforce"\nagent_id = "{settings.agent_id}"'
    url = settings.instance_url or "https://mycompany.my.salesforce.com"
    token = f'token_env = "{settings.token_env or "AGENT_TOKEN"}"\ninstance_url = "{url}"'
    return SettingsError(
        f"the agent {settings.agent_id} cannot be called: {reason}",
        actions=(
            f'Name a login of evalmeta org list in the subject\'s table:\n\n{table}\norg = "my-org"',
            f"Or name an environment variable with an access token, and the org's address:\n\n{table}\n{token}",
        ),
    )


class _Agent:
    def __init__(self, settings: AgentforceSubject, endpoint: Endpoint, tokens: _Tokens) -> None:
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
        session_id = _read(reply, agent_api.read_session_id)
        history = (message.message or "" for message in case.history if message.role == "user")
        return _Session(self, session_id, deque(history))

    async def close(self) -> None:
        await self._endpoint.close()

    async def call(
        self, method: _Method, path: str, body: JsonObject | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request with the token, and again with a new one if the API rejects it; errors as `Endpoint.send`."""
        token, is_renewed = await self._tokens.get(), False
        while True:
            sent = {"Authorization": f"Bearer {token.value}", **(headers or {})}
            secrets = (token.value, token.session)
            try:
                reply = await self._endpoint.send(body, path, method=method, headers=sent, secrets=secrets)
            except SubjectRefused as error:
                if error.status != HTTPStatus.UNAUTHORIZED:
                    raise
                if is_renewed:
                    raise _new_token_rejected(token) from None
            else:
                self._tokens.mark_accepted()
                return reply
            token, is_renewed = await self._tokens.renew(token), True


class _Session:
    """A conversation; when `ask` is repeated because the agent was busy, it continues where it stopped."""

    def __init__(self, agent: _Agent, session_id: str, history: deque[str]) -> None:
        self._agent = agent
        self._id = session_id
        self._history = history
        self._sequence = 0
        self._answer: tuple[AgentReply, float] | None = None

    async def ask(self, utterance: str) -> GeneratedData:
        while self._history:
            await self._send(self._history[0])
            self._history.popleft()
        if self._answer is None:
            self._answer = await self._send(utterance)
        reply, latency_ms = self._answer
        plan = await self._plan(reply.plan_id)
        self._answer = None
        return GeneratedData(
            reply.text, plan.topic, plan.actions, latency_ms=latency_ms, session_id=self._id, trace=plan.trace
        )

    async def close(self) -> None:
        await self._agent.call("DELETE", agent_api.end_path(self._id), headers=agent_api.END_HEADERS)

    async def _send(self, utterance: str) -> tuple[AgentReply, float]:
        self._sequence += 1
        body, asked = agent_api.text_body(self._sequence, utterance), time.perf_counter()
        reply = await self._agent.call("POST", agent_api.messages_path(self._id), body)
        latency_ms = round((time.perf_counter() - asked) * 1000, 1)
        answer = _read(reply, agent_api.read_reply)
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
        return _read(reply, agent_api.read_plan)


def _variables(case: Case, types: Mapping[str, str]) -> list[JsonObject]:
    """Return the context variables, and the values of the session's state that have a type of the Agent API."""
    names = {variable.name for variable in case.context_variables}
    state = {name: value for name, value in case.state.items() if name not in names and type(value) in _TYPES}
    variables = [ContextVariable(name, plain_text(value)) for name, value in state.items()]
    types = {**{name: _TYPES[type(value)] for name, value in state.items()}, **types}
    try:
        return agent_api.variables([*variables, *case.context_variables], types)
    except ValueError as error:
        raise SubjectError(f"{error}; correct variable_types in evalmeta.toml") from None


def _read(reply: Reply, read: Callable[[JsonObject], _T]) -> _T:
    if not isinstance(reply.value, dict):
        raise SubjectError(f"the Agent API answered with {type(reply.value).__name__}; expected a JSON object")
    try:
        return read(reply.value)
    except MessageUnreadable as error:
        raise SubjectError(f"the Agent API's answer is not valid: {error}") from None


@dataclass(frozen=True, slots=True)
class _Token:
    """A token for the API, the org's address, and the org's session that the token was exchanged for."""

    url: str
    value: str = field(repr=False)
    session: str = field(repr=False)


# Returns a token, or a new one if the API rejects the given one.
_TokenSource: TypeAlias = Callable[[_Token | None], Awaitable[_Token]]


class _Tokens:
    def __init__(self, source: _TokenSource) -> None:
        self._source = source
        self._lock = asyncio.Lock()
        self._token: _Token | None = None
        self._is_untested = False

    async def get(self) -> _Token:
        """Return the token; the first call signs in."""
        async with self._lock:
            if self._token is None:
                self._token = await self._source(None)
            return self._token

    async def renew(self, ended: _Token) -> _Token:
        """Return a new token for one that the API rejected; raise SubjectError if that one was new too.

        Concurrent sessions get the same one.
        """
        async with self._lock:
            if self._token is not ended and self._token is not None:
                return self._token
            if self._is_untested:
                raise _new_token_rejected(ended)
            self._token, self._is_untested = await self._source(ended), True
            return self._token

    def mark_accepted(self) -> None:
        """Note that the API accepted the token."""
        self._is_untested = False


def _new_token_rejected(token: _Token) -> SubjectError:
    return SubjectError(
        f"the Agent API rejects a new session of {token.url}; its app needs the scopes chatbot_api and sfap_api, "
        "and its user access to the agent"
    )


def _token_of_environment(name: str, instance_url: str) -> _TokenSource:
    """Return the token in an environment variable, which cannot be renewed."""
    try:
        url = org_url(instance_url)
    except UsageError as error:
        raise SettingsError(f"the agent's instance_url is not valid: {error}", actions=error.actions) from None
    token = child_environment().get(name, "").strip()
    if not _TOKEN.fullmatch(token):
        fault = "is not set, but token_env in evalmeta.toml names it"
        action = f"Set {name} to an access token with the scopes chatbot_api and sfap_api."
        if token:
            fault = "does not hold an access token: it has blanks or invalid characters"
            action = f"Set {name} to the token alone."
        elif name in os.environ:
            fault = "is hidden from the programs that run tests"
            action = "Pass the token in a variable with another name, such as AGENT_TOKEN, and name it in token_env."
        raise SettingsError(f"the environment variable {name} {fault}", actions=(action,))

    async def source(ended: _Token | None) -> _Token:
        if ended:
            raise SubjectError(f"the Agent API rejects the access token in {name}; set it to a new one")
        return _Token(url, token, token)

    return source


def _tokens_of_org(org: str, sign_in: SignIn, transport: httpx.AsyncBaseTransport | None) -> _TokenSource:
    """Return sessions of a login, exchanged for the API's token; if the org exchanges none, the session itself."""

    async def source(ended: _Token | None) -> _Token:
        try:
            signed_in = await sign_in(org, instead_of=ended.session if ended else "")
        except OrgUnreachable as error:
            raise SubjectUnreachable(str(error)) from error
        session = signed_in.access_token
        return _Token(signed_in.url, await _exchange(signed_in, transport) or session, session)

    return source


async def _exchange(signed_in: SignedIn, transport: httpx.AsyncBaseTransport | None) -> str:
    """Return the JWT of the named user, as the sf CLI does; empty if the org does not issue one."""
    session = signed_in.access_token
    from evalmeta.engine.http_endpoint import Endpoint

    endpoint = Endpoint(signed_in.url, headers={"Cookie": f"sid={session}"}, secrets=(session,), transport=transport)
    try:
        reply = await endpoint.send(None, NAMED_USER_PATH, method="GET")
    except (SubjectBusy, SubjectUnreachable):
        raise
    except SubjectError:
        return ""
    finally:
        await endpoint.close()
    return read_token(reply.value) if isinstance(reply.value, dict) else ""
