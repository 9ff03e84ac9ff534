"""The agent in a Python module, as google-adk looks for it: `root_agent`, `get_agent_async` or `app` in `agent`.

Source: google-adk 2.13, agent_evaluator.py and cli_eval.py.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.errors import ProjectError, SettingsError, UsageError
from evalmeta.package.project import find_project
from evalmeta.systems.adk.live import LiveAgent, is_adk, is_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


FACTORY: Final = "get_agent_async"
"""The coroutine function of a module that returns its agent and what closes it."""

_AGENTS: Final = ("root_agent", FACTORY, "app", "answer", "agent")


class _Agent(Protocol):
    name: str
    sub_agents: Sequence[_Agent]

    def find_agent(self, name: str) -> _Agent | None: ...


class _App(Protocol):
    root_agent: _Agent

    def model_copy(self, *, update: Mapping[str, object]) -> object: ...


def module_named(name: str, root: Path | None) -> ModuleType | None:
    """Return the module of an agent, imported as google-adk does it; None if evalmeta.toml binds the name."""
    with suppress(ProjectError):
        if name in find_project(root or Path.cwd()).settings.subjects:
            return None
    actions = ["Pass a function, or a reference such as my_agent:answer.", f"Or bind {name!r} in evalmeta.toml."]
    try:
        module = importlib.import_module(name)
        # A package need not import its module `agent`.
        if _find(module) is None and hasattr(module, "__path__") and importlib.util.find_spec(f"{name}.agent"):
            importlib.import_module(f"{name}.agent")
    except (ImportError, ValueError) as error:
        message = f"{name!r} is neither an agent that evalmeta.toml binds nor a module that can be imported: {error}"
        raise UsageError(message, actions=actions) from None
    if _find(module) is None:
        raise UsageError(f"the module {name!r} has no {', '.join(_AGENTS[:-1])} or {_AGENTS[-1]}", actions=actions)
    return module


def agent_in(module: ModuleType) -> object:
    """Return the agent in a module or in its module `agent`."""
    holder, name = _agent_place(module)
    return getattr(holder, name)


def _agent_place(module: ModuleType) -> tuple[ModuleType, str]:
    place = _find(module)
    if place is None:
        raise UsageError(
            f"the module {module.__name__!r} has no {', '.join(_AGENTS[:-1])} or {_AGENTS[-1]}",
            actions=["Assign the agent to root_agent in it."],
        )
    return place


def _find(module: ModuleType) -> tuple[ModuleType, str] | None:
    """Return the module that has the agent, and its name there; None if neither has one."""
    inner = getattr(module, "agent", None)
    for holder in (inner, module) if isinstance(inner, ModuleType) else (module,):
        for name in _AGENTS:
            agent = getattr(holder, name, None)
            is_other_app = name == "app" and not is_adk(agent)
            if agent is not None and not (isinstance(agent, ModuleType) or is_other_app):
                return holder, name
    return None


def live_agent(module: ModuleType, *, root: Path, agent_name: str = "", artifacts: object = None) -> LiveAgent | None:
    """Return the agent of ADK in a module, or its sub-agent `agent_name`; None if it is another kind of agent.

    An App of the module configures the Runner. Raise SettingsError if there is no such sub-agent.
    """
    holder, name = _agent_place(module)
    agent = getattr(holder, name)
    app = next((value for value in (agent, getattr(holder, "app", None)) if is_app(value)), None)
    if name == FACTORY and callable(agent):
        factory = cast("Callable[[], object]", agent)

        async def load() -> object:
            made = factory()
            made = await made if inspect.isawaitable(made) else made
            # It returns the agent with an exit stack, which ADK does not close either.
            first = made[0] if isinstance(made, tuple) else made
            return _chosen(first, app, agent_name)

        return LiveAgent(load, root=root, artifacts=artifacts)
    if not is_adk(agent):
        return None
    chosen = _chosen(agent, app, agent_name)
    return LiveAgent(lambda: chosen, root=root, artifacts=artifacts)


def sub_agent(agent: object, agent_name: str) -> object:
    """Return the agent of this name among an agent and those below it; raise SettingsError if there is none."""
    root = cast("_App", agent).root_agent if is_app(agent) else cast("_Agent", agent)
    chosen = root.find_agent(agent_name) if callable(getattr(root, "find_agent", None)) else None
    if chosen is None:
        names = ", ".join(_names(root))
        raise SettingsError(f"the agent has no sub-agent {agent_name!r}", actions=(f"Use one of {names}.",))
    return chosen


def _chosen(agent: object, app: object, agent_name: str) -> object:
    if not is_adk(agent):
        raise SettingsError(
            f"{FACTORY} returned {type(agent).__name__}, which is not an agent of google-adk",
            actions=("Return the agent, or a tuple of the agent and its exit stack.",),
        )
    if app is None:
        return sub_agent(agent, agent_name) if agent_name else agent
    configured = cast("_App", app)
    root = configured.root_agent if agent is app else agent
    asked = sub_agent(root, agent_name) if agent_name else root
    return app if asked is configured.root_agent else configured.model_copy(update={"root_agent": asked})


def _names(agent: _Agent) -> Iterator[str]:
    yield agent.name
    for inner in getattr(agent, "sub_agents", ()):
        yield from _names(inner)
