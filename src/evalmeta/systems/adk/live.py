"""Agents of google-adk, asked through its own Runner: a session for each case, whose events say what was answered.

Source: google-adk 2.13, evaluation_generator.py: how the session of a case begins, which event is the answer, and which
tool calls count. Nothing is imported that the agent did not bring.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.engine.answer_shapes import answer_of
from evalmeta.engine.answers import chat_messages, context_of, generated_data, plain_text
from evalmeta.engine.subjects.calls import Calls
from evalmeta.engine.subjects.kinds import AgentKind, framework_member
from evalmeta.model.evaluation import SessionIds
from evalmeta.model.json_value import plain_value
from evalmeta.systems.adk.parts import read_parts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.engine.project_code import Function
    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue


CLASSES: Final = frozenset({"App", "BaseAgent", "BaseNode", "Runner"})
"""The classes of google-adk whose objects are asked: apps, agents, workflows and runners."""

_REQUIRES: Final = "google-adk>=1.0"
_APP_NAME: Final = "evalmeta"
_USER: Final = "user"


class _Session(Protocol):
    id: str
    state: Mapping[str, object]


class _SessionService(Protocol):
    async def create_session(
        self, *, app_name: str, user_id: str, state: Mapping[str, object], session_id: str | None
    ) -> _Session: ...
    async def get_session(self, *, app_name: str, user_id: str, session_id: str) -> _Session | None: ...
    async def append_event(self, session: _Session, event: object) -> object: ...


class _Named(Protocol):
    name: str


class _Runner(Protocol):
    app_name: str
    agent: _Named
    session_service: _SessionService

    def run_async(self, *, user_id: str, session_id: str, new_message: object) -> AsyncIterator[object]: ...
    async def close(self) -> None: ...


def is_adk(agent: object) -> bool:
    """Return whether an object is an agent, an App, a Runner or a workflow of google-adk."""
    return bool(_kinds(agent))


def is_app(agent: object) -> bool:
    """Return whether an object is an App, which configures the Runner of its root agent."""
    return "App" in _kinds(agent)


async def open_conversation(agent: object, case: Case, *, artifacts: object = None) -> Conversation:
    """Start the session of a case, with its state, its ids, and its history as earlier events.

    An agent or App gets a Runner of its own, with services in memory unless it gets an artifact service.
    """
    ids = case.session or SessionIds()
    is_own = "Runner" not in _kinds(agent)
    runner = _new_runner(agent, ids.app_name, artifacts) if is_own else cast("_Runner", agent)
    user_id, service = ids.user_id or _USER, runner.session_service
    session = None
    if ids.session_id:
        session = await service.get_session(app_name=runner.app_name, user_id=user_id, session_id=ids.session_id)
    if session is None:
        session = await service.create_session(
            app_name=runner.app_name, user_id=user_id, state=context_of(case), session_id=ids.session_id or None
        )
    for event in _earlier_events(case, runner.agent.name):
        await service.append_event(session, event)
    return Conversation(runner, user_id, session.id, closes_runner=is_own)


AGENTS: Final = AgentKind(classes=CLASSES, open=open_conversation, requires=_REQUIRES, parts=read_parts)
"""How evalmeta recognises, asks and reads these objects wherever it takes an agent."""


class LiveAgent:
    """An agent under test that is loaded once, by the first case: `load` may be a coroutine function."""

    def __init__(self, load: Callable[[], object], *, root: Path, artifacts: object = None) -> None:
        self.load = load
        self._calls = Calls(root)
        self._artifacts = artifacts
        self._loading: asyncio.Task[object] | None = None

    async def open(self, case: Case) -> _LiveSession:
        """Start the session of a case."""
        agent = await self._agent()
        conversation = await self._calls.call(
            cast("Function", open_conversation), agent, case, artifacts=self._artifacts
        )
        return _LiveSession(cast("Conversation", conversation), self._calls)

    async def inventory(self) -> Inventory:
        """Return the agent's topics and tools."""
        agent = await self._agent()
        return cast("Inventory", await self._calls.call(cast("Function", read_parts), agent))

    async def _agent(self) -> object:
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._calls.call(cast("Function", self.load)))
        return await asyncio.shield(self._loading)

    async def close(self) -> None:
        """End the threads of the agent's functions."""
        self._calls.close()


class _LiveSession:
    """A conversation whose exceptions are errors of the subject, with their line in the project."""

    def __init__(self, conversation: Conversation, calls: Calls) -> None:
        self._conversation = conversation
        self._calls = calls

    async def ask(self, utterance: str) -> GeneratedData:
        return await self.ask_value(utterance)

    async def ask_value(self, inputs: JsonValue) -> GeneratedData:
        return cast("GeneratedData", await self._calls.call(cast("Function", self._conversation.ask), inputs))

    async def close(self) -> None:
        await self._calls.call(cast("Function", self._conversation.close))


class Conversation:
    """One session of an agent; it closes the Runner that was made for it."""

    checks_answers = True

    def __init__(self, runner: _Runner, user_id: str, session_id: str, *, closes_runner: bool) -> None:
        self._runner = runner
        self._user_id = user_id
        self._session_id = session_id
        self._closes_runner = closes_runner

    async def ask(self, utterance: JsonValue) -> GeneratedData:
        """Send a message, with any other value as its JSON text, and return what the agent did until its answer."""
        message = _content(_USER, plain_text(utterance))
        # The generator is exhausted: the Runner saves the session's events as it goes.
        events = self._runner.run_async(user_id=self._user_id, session_id=self._session_id, new_message=message)
        reply = answer_of([event async for event in events]) or {"outcome": "", "actions": ()}
        session = await self._runner.session_service.get_session(
            app_name=self._runner.app_name, user_id=self._user_id, session_id=self._session_id
        )
        state = None if session is None else {name: plain_value(value) for name, value in session.state.items()}
        return generated_data({**reply, "session_id": self._session_id, "state": state})

    async def close(self) -> None:
        """Close the Runner, and with it the toolsets of its agents, unless it is the user's."""
        if self._closes_runner:
            await self._runner.close()


def _kinds(agent: object) -> set[str]:
    """Return which of ADK's kinds an object is; no agent is more than one."""
    return {
        ancestor.__name__
        for ancestor in type(agent).__mro__
        if ancestor.__module__.startswith("google.adk.") and ancestor.__name__ in CLASSES
    }


def _new_runner(agent: object, app_name: str, artifacts: object) -> _Runner:
    services = {
        "session_service": framework_member(
            "google.adk.sessions.in_memory_session_service", "InMemorySessionService", requires=_REQUIRES
        )(),
        "memory_service": framework_member(
            "google.adk.memory.in_memory_memory_service", "InMemoryMemoryService", requires=_REQUIRES
        )(),
        "artifact_service": artifacts
        or framework_member(
            "google.adk.artifacts.in_memory_artifact_service", "InMemoryArtifactService", requires=_REQUIRES
        )(),
    }
    runner = framework_member("google.adk.runners", "Runner", requires=_REQUIRES)
    if is_app(agent):
        name = app_name or cast("_Named", agent).name
        return cast("_Runner", runner(app=agent, app_name=name, **services))
    return cast("_Runner", runner(agent=agent, app_name=app_name or _APP_NAME, **services))


def _earlier_events(case: Case, agent_name: str) -> Iterator[object]:
    for number, (message, entry) in enumerate(zip(chat_messages(case), case.history, strict=True), 1):
        is_agent = message["role"] == "assistant"
        author = (entry.topic or agent_name) if is_agent else _USER
        content = _content("model" if is_agent else _USER, message["content"])
        event = framework_member("google.adk.events.event", "Event", requires=_REQUIRES)
        yield event(invocation_id=f"history-{number}", author=author, content=content)


def _content(role: str, text: str) -> object:
    part = framework_member("google.genai.types", "Part", requires=_REQUIRES)
    return framework_member("google.genai.types", "Content", requires=_REQUIRES)(role=role, parts=[part(text=text)])
