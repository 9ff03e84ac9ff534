"""Where the agent of a module is found, as google-adk finds it."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import EvalmetaError, UsageError
from evalmeta.systems.adk.modules import agent_in, live_agent, module_named, sub_agent
from systems.adk.google_stand_in import BaseAgent

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.systems.adk.live import LiveAgent

ORDERS = BaseAgent("orders")
DESK = BaseAgent("desk", ORDERS)


class App:
    def __init__(self, root_agent: BaseAgent) -> None:
        self.root_agent = root_agent

    def model_copy(self, *, update: dict[str, BaseAgent]) -> App:
        return App(**update)


App.__module__ = "google.adk.apps.app"


def module(**members: object) -> ModuleType:
    made = ModuleType("desk")
    made.__dict__.update(members)
    return made


def loaded(live: LiveAgent | None) -> object:
    assert live is not None

    async def load() -> object:
        found = live.load()
        return await found if asyncio.iscoroutine(found) else found

    return asyncio.run(load())


def test_the_agent_is_in_the_module_agent_of_a_package(tmp_path: Path) -> None:
    assert loaded(live_agent(module(agent=module(root_agent=DESK)), root=tmp_path)) is DESK
    assert loaded(live_agent(module(root_agent=DESK), root=tmp_path)) is DESK


def test_a_sub_agent_is_found_by_its_name(tmp_path: Path) -> None:
    assert loaded(live_agent(module(root_agent=DESK), root=tmp_path, agent_name="orders")) is ORDERS
    with pytest.raises(EvalmetaError, match="the agent has no sub-agent 'billing'") as caught:
        sub_agent(DESK, "billing")
    assert caught.value.actions == ("Use one of desk, orders.",)


def test_a_coroutine_function_makes_the_agent(tmp_path: Path) -> None:
    async def make() -> tuple[BaseAgent, object]:
        return DESK, object()

    assert loaded(live_agent(module(get_agent_async=make), root=tmp_path)) is DESK
    assert loaded(live_agent(module(get_agent_async=lambda: DESK), root=tmp_path, agent_name="orders")) is ORDERS
    with pytest.raises(EvalmetaError, match="get_agent_async returned str, which is not an agent of google-adk"):
        loaded(live_agent(module(get_agent_async=lambda: "desk"), root=tmp_path))


def test_an_app_configures_the_agent_that_is_asked(tmp_path: Path) -> None:
    app = App(DESK)

    assert loaded(live_agent(module(root_agent=DESK, app=app), root=tmp_path)) is app
    assert loaded(live_agent(module(app=app), root=tmp_path)) is app
    below = loaded(live_agent(module(root_agent=DESK, app=app), root=tmp_path, agent_name="orders"))
    assert isinstance(below, App)
    assert below.root_agent is ORDERS


def test_another_kind_of_agent_is_not_asked_live(tmp_path: Path) -> None:
    def answer(utterance: str) -> str:
        return utterance

    # An app of a web framework is not an agent.
    other = module(answer=answer, app=SimpleNamespace())

    assert live_agent(other, root=tmp_path) is None
    assert agent_in(other) is answer


def test_a_package_need_not_import_its_module_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "plain_desk").mkdir()
    (tmp_path / "plain_desk/agent.py").write_text("def root_agent(utterance):\n    return 'Hi'\n")
    found = module_named("plain_desk", tmp_path)

    assert found is sys.modules["plain_desk"]
    assert callable(agent_in(found))
    with pytest.raises(UsageError, match="nor a module that can be imported: No module named 'missing_desk'"):
        module_named("missing_desk", tmp_path)
