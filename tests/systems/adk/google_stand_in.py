"""Events and a Runner with the members of google-adk's; tests/journeys use the real library."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest


@dataclass
class Part:
    text: str | None = None
    thought: bool | None = None
    function_call: dict[str, object] | None = None
    function_response: dict[str, object] | None = None


@dataclass
class Content:
    role: str
    parts: list[Part]


@dataclass
class Event:
    author: str = "desk"
    content: Content | None = None
    invocation_id: str = ""
    partial: bool | None = None
    error_code: str | None = None
    error_message: str | None = None
    usage_metadata: dict[str, int | None] | None = None
    actions: dict[str, str | None] = field(default_factory=dict)

    def model_dump(self) -> dict[str, object]:
        return asdict(self)


def said(text: str, *thoughts: str, **more: object) -> Event:
    parts = [*(Part(thought, thought=True) for thought in thoughts), Part(text)]
    return Event(content=Content("model", parts), **more)  # type: ignore[arg-type]


def called(name: str, response: object = None, **args: object) -> list[Event]:
    """Return the events of a call of a tool and of its response."""
    call = {"id": f"{name}-{args}", "name": name}
    events = [Event(content=Content("model", [Part(function_call={**call, "args": args})]))]
    if response is not None:
        events.append(Event(content=Content("user", [Part(function_response={**call, "response": response})])))
    return events


class Sessions:
    def __init__(self) -> None:
        self.all: dict[tuple[str, str, str], SimpleNamespace] = {}
        self.events: list[Event] = []

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, object], session_id: str | None
    ) -> SimpleNamespace:
        session = SimpleNamespace(id=session_id or f"session-{len(self.all) + 1}", state={**state})
        self.all[app_name, user_id, session.id] = session
        return session

    async def get_session(self, *, app_name: str, user_id: str, session_id: str) -> SimpleNamespace | None:
        return self.all.get((app_name, user_id, session_id))

    async def append_event(self, _session: object, event: Event) -> None:
        self.events.append(event)


class Runner:
    """A Runner that returns the events of one turn after the other, and keeps what it was asked."""

    def __init__(self, *turns: list[Event]) -> None:
        self.app_name = "shop"
        self.agent = SimpleNamespace(name="desk")
        self.session_service = Sessions()
        self.asked: list[str | None] = []
        self.is_closed = False
        self._turns = list(turns)

    async def run_async(self, *, user_id: str, session_id: str, new_message: Content) -> AsyncIterator[Event]:
        assert (self.app_name, user_id, session_id) in self.session_service.all
        self.asked.append(new_message.parts[0].text)
        for event in self._turns.pop(0):
            yield event

    async def close(self) -> None:
        self.is_closed = True


Runner.__module__ = "google.adk.runners"


class BaseAgent:
    """An agent with sub-agents."""

    def __init__(self, name: str, *sub_agents: BaseAgent) -> None:
        self.name = name
        self.sub_agents = sub_agents

    def find_agent(self, name: str) -> BaseAgent | None:
        if self.name == name:
            return self
        return next((found for agent in self.sub_agents if (found := agent.find_agent(name))), None)


BaseAgent.__module__ = "google.adk.agents.base_agent"


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the modules that an agent of google-adk brings be found."""
    for name, members in (
        ("google.genai.types", {"Part": Part, "Content": Content}),
        ("google.adk.events.event", {"Event": Event}),
    ):
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)


AGENT = """
import sys, types
from systems.adk.google_stand_in import BaseAgent, Content, Event, Part, Runner, said

for name, members in (("google.genai.types", (Part, Content)), ("google.adk.events.event", (Event,))):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update({member.__name__: member for member in members})

root_agent = Runner(*[[said("Hello! How can I help you today?")]] * 9)
"""
"""A module of a project with an agent that answers nine times."""
