"""The agent that a name stands for, as ADK's `agent_module` does."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Final

from evalmeta.errors import ProjectError, UsageError
from evalmeta.package.project import find_project

__all__ = ["agent_named"]

__tracebackhide__ = True  # pytest's tracebacks end where the test calls

_AGENTS: Final = ("answer", "root_agent", "agent")


def agent_named(name: str, root: Path | None) -> object:
    """Gives the agent in a module of this name; None for an agent that evalmeta.toml binds.

    It is the module's `answer`, `root_agent` or `agent`; a package may have it in its module `agent`.

    Raises:
        UsageError: there is no such module, it cannot be imported, or it has no agent.
    """
    if _is_bound(name, root):
        return None
    ways_out = ["Give a function, or its place: my_agent:answer.", f"Or bind {name!r} in evalmeta.toml."]
    try:
        module = importlib.import_module(name)
    except (ImportError, ValueError) as error:
        message = f"{name!r} is neither an agent that evalmeta.toml binds nor a module that can be imported: {error}"
        raise UsageError(message, actions=ways_out) from None
    inner = getattr(module, "agent", None)
    for place in (module, inner) if isinstance(inner, ModuleType) else (module,):
        for each in _AGENTS:
            found: object = getattr(place, each, None)
            if found is not None and not isinstance(found, ModuleType):
                return found
    raise UsageError(f"the module {name!r} has no {', '.join(_AGENTS[:-1])} or {_AGENTS[-1]}", actions=ways_out)


def _is_bound(name: str, root: Path | None) -> bool:
    try:
        return name in find_project(root or Path.cwd()).settings.subjects
    except ProjectError:
        return False
