"""An agent in a Salesforce org, called through the Agent API; all sessions share one token."""

from __future__ import annotations

import time
import uuid
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from evalmeta.engine.answers import plain_text
from evalmeta.engine.subjects.agentforce_drafts import Bundle, Draft, read_bundle
from evalmeta.engine.subjects.agentforce_tokens import Tokens, new_token_rejected, token_of_environment, tokens_of_org
from evalmeta.errors import MessageUnreadable, SettingsError, SubjectError, SubjectRefused
from evalmeta.model.agent_parts import HUMAN
from evalmeta.model.definition import ContextVariable
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.redaction import address_in_words
from evalmeta.model.settings import SubjectSettings
from evalmeta.protocol import agent_api, agent_preview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import httpx

    from evalmeta.engine.http_endpoint import Endpoint, Reply
    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import SignIn
    from evalmeta.protocol.agent_api import AgentReply, Plan


VariableType = Literal["Text", "Number", "Boolean", "Date", "DateTime", "Money", "Ref", "Object", "List", "Json"]
_Method: TypeAlias = Literal["DELETE", "GET", "POST"]
_T = TypeVar("_T")
_HEADERS: Final = {"x-client-name": "evalmeta"}
# The status of a session that is still answering another request.
_BUSY_STATUSES: Final = frozenset({HTTPStatus.LOCKED})
_TYPES: Final[Mapping[type, str]] = {bool: "Boolean", int: "Number", float: "Number", str: "Text"}


class AgentforceSubject(SubjectSettings):
    """An agent in a Salesforce org, reached through the Agent API, or a draft that is previewed there.

    `agent_id` is the BotDefinition's id. Instead, `authoring_bundle` can be the name of a bundle in the project, as in
    `aiAuthoringBundles/NAME`: the org compiles its script as it is now, and its `actions` are simulated or live. `org`
    is an alias or username of a login. Instead, `token_env` can be an environment variable with an access token, with
    `instance_url` as the org's My Domain. `bypass_user` lets the agent act as its own user. `variable_types` are the
    types of context variables. With `traces = false`, no plan traces are requested, and topics and actions are unknown.
    """

    agent = "an agent in a Salesforce org"

    adapter: Literal["agentforce"]
    agent_id: Annotated[str, Field(pattern=r"^(?:0Xx[0-9A-Za-z]{12}(?:[0-9A-Za-z]{3})?)?$")] = ""
    authoring_bundle: Annotated[str, Field(pattern=r"^(?:[A-Za-z]\w*)?$")] = ""
    actions: Literal["simulated", "live"] = "simulated"
    org: str = ""
    token_env: str = ""
    instance_url: str = ""
    url: Annotated[str, Field(pattern=r"/v1/?$")] = "https://api.salesforce.com/einstein/ai-agent/v1"
    bypass_user: bool = True
    variable_types: dict[str, VariableType] = Field(default_factory=dict)
    traces: bool = True

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for the agent."""
        bundle = read_bundle(root, self.authoring_bundle) if self.authoring_bundle else None
        return bind_agentforce(self, bundle, sign_in=sign_in)

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the agent and its org, and the script of a draft."""
        from evalmeta.package.agent_files import project_script

        script = project_script(root, self.authoring_bundle) if self.authoring_bundle else None
        named = f"draft {self.authoring_bundle} with {self.actions} actions" if self.authoring_bundle else self.agent_id
        return f"agentforce {named} in {self.org or address_in_words(self.instance_url)}", [script] if script else []

    @model_validator(mode="after")
    def _check(self) -> Self:
        if fault := self._fault():
            raise PydanticCustomError("agentforce", "{fault}", {"fault": fault})
        return self

    def _fault(self) -> str:
        if bool(self.agent_id) == bool(self.authoring_bundle):
            return "needs either agent_id or authoring_bundle" if self.agent_id else "the key 'agent_id' is missing"
        return "actions is only for an authoring_bundle" if self.agent_id and "actions" in self.model_fields_set else ""

    @property
    def login(self) -> str:
        """Return the login whose org has the agent."""
        return self.org


def bind_agentforce(
    settings: AgentforceSubject,
    bundle: Bundle | None = None,
    *,
    sign_in: SignIn | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Subject:
    """Return a subject for an agent in an org; raise SettingsError if there is no token or an address is not valid.

    With a bundle, it is the draft in the bundle.

    The user's messages of a case's history are really sent, and the agent's own answers to them are used: the Agent
    API (v1) has no other way to give a session a history, and what the preview API takes is not known. `sign_in`
    returns sessions for the setting `org`.
    """
    if bool(settings.org) == bool(settings.token_env):
        which = "both org and token_env are set" if settings.org else "neither org nor token_env is set"
        raise _incomplete(settings, which)
    if settings.org:
        if sign_in is None:
            raise _incomplete(settings, f"stored logins are not available here, so {settings.org} is not known")
        source = tokens_of_org(settings.org, sign_in, transport)
    elif settings.instance_url:
        source = token_of_environment(settings.token_env, settings.instance_url)
    else:
        raise _incomplete(settings, "token_env needs the org's address, and instance_url is missing")
    root = settings.url.rstrip("/").removesuffix(agent_api.VERSION)
    credential = f"the login {settings.org}" if settings.org else f"the access token in {settings.token_env}"
    from evalmeta.engine.http_endpoint import Endpoint

    endpoint = Endpoint(
        root, headers=_HEADERS, credential=credential, busy_statuses=_BUSY_STATUSES, transport=transport
    )
    if bundle is not None:
        return _DraftAgent(settings, endpoint, Tokens(source), bundle)
    return _Agent(settings, endpoint, Tokens(source))


def _incomplete(settings: AgentforceSubject, reason: str) -> SettingsError:
    key = "agent_id" if settings.agent_id else "authoring_bundle"
    name = settings.agent_id or settings.authoring_bundle
    table = f'adapter = "agentforce"\n{key} = "{name}"'
    url = settings.instance_url or "https://mycompany.my.salesforce.com"
    token = f'token_env = "{settings.token_env or "AGENT_TOKEN"}"\ninstance_url = "{url}"'
    return SettingsError(
        f"the agent {name} cannot be called: {reason}",
        actions=(
            f'Name a login of evalmeta org list in the subject\'s table:\n\n{table}\norg = "my-org"',
            f"Or name an environment variable with an access token, and the org's address:\n\n{table}\n{token}",
        ),
    )


class _Agent:
    sessions: str = agent_api.SESSIONS_PATH
    has_transitions: bool = False

    def __init__(self, settings: AgentforceSubject, endpoint: Endpoint, tokens: Tokens) -> None:
        self.settings = settings
        self._endpoint = endpoint
        self.tokens = tokens

    async def open(self, case: Case) -> Session:
        return await self.start(agent_api.start_path(self.settings.agent_id), await self.body(case), case)

    async def body(self, case: Case) -> JsonObject:
        """Return the request for a session."""
        return agent_api.start_body(
            key=str(uuid.uuid4()),
            instance_url=(await self.tokens.get()).url,
            bypass_user=self.settings.bypass_user,
            variables=_variables(case, self.settings.variable_types),
        )

    async def start(self, path: str, body: JsonObject, case: Case) -> Session:
        """Start a session."""
        session_id = _read(await self.call("POST", path, body), agent_api.read_session_id)
        history = (message.message or "" for message in case.history if message.role == "user")
        return _Session(self, session_id, deque(history))

    async def close(self) -> None:
        await self._endpoint.close()

    async def call(
        self, method: _Method, path: str, body: JsonObject | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request with the token, and again with a new one if the API rejects it; errors as `Endpoint.send`."""
        token, is_renewed = await self.tokens.get(), False
        while True:
            sent = {"Authorization": f"Bearer {token.value}", **(headers or {})}
            secrets = (token.value, token.session)
            try:
                reply = await self._endpoint.send(body, path, method=method, headers=sent, secrets=secrets)
            except SubjectRefused as error:
                if error.status != HTTPStatus.UNAUTHORIZED:
                    raise
                if is_renewed:
                    raise new_token_rejected(token) from None
            else:
                self.tokens.mark_accepted()
                return reply
            token, is_renewed = await self.tokens.renew(token), True


class _DraftAgent(_Agent):
    """A draft, which the org compiles before the first session."""

    sessions = agent_api.PREVIEWS_PATH
    has_transitions = True

    def __init__(self, settings: AgentforceSubject, endpoint: Endpoint, tokens: Tokens, bundle: Bundle) -> None:
        super().__init__(settings, endpoint, tokens)
        self._draft = Draft(bundle, self._compile)

    async def prepare(self) -> None:
        """Compile the script; raise SubjectError with its errors, or if the org does not answer."""
        await self._draft.compile()

    async def open(self, case: Case) -> Session:
        return await self.start(agent_api.PREVIEWS_PATH, await self.body(case), case)

    async def body(self, case: Case) -> JsonObject:
        settings, definition = self.settings, await self._draft.compile()
        types = {**agent_preview.state_types(definition), **settings.variable_types}
        return agent_preview.preview_body(
            definition,
            version=self._draft.bundle.version,
            key=str(uuid.uuid4()),
            instance_url=(await self.tokens.get()).url,
            bypass_user=settings.bypass_user,
            simulates=settings.actions == "simulated",
            variables=_variables(case, types),
        )

    async def _compile(self, body: JsonObject) -> JsonObject:
        return _read(await self.call("POST", agent_preview.SCRIPTS_PATH, body), dict)


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
            *(reply.text, plan.topic, plan.actions),
            latency_ms=latency_ms,
            session_id=self._id,
            trace=plan.trace,
            handoffs=self._handoffs(reply, plan),
        )

    async def close(self) -> None:
        path = agent_api.end_path(self._id, sessions=self._agent.sessions)
        await self._agent.call("DELETE", path, headers=agent_api.END_HEADERS)

    def _handoffs(self, reply: AgentReply, plan: Plan) -> tuple[str, ...] | None:
        """Return the transitions of a draft, and a person after an escalation; None if they are not known."""
        if not self._agent.has_transitions or plan.actions is None:
            return None
        others = tuple(name for name in plan.transitions if name != HUMAN)
        is_handed_off = reply.is_handed_off or HUMAN in plan.transitions
        return (*others, HUMAN) if is_handed_off else others

    async def _send(self, utterance: str) -> tuple[AgentReply, float]:
        self._sequence += 1
        body, asked = agent_api.text_body(self._sequence, utterance), time.perf_counter()
        path = agent_api.messages_path(self._id, sessions=self._agent.sessions)
        reply = await self._agent.call("POST", path, body)
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
