"""Kinds of agents that are objects of a framework, such as a graph of LangGraph: how they are recognised, asked, read.

Each kind is an entry point of the group `evalmeta.agents`, named after the package that defines its classes. An object
is recognised by the names of its classes, so only the module of its own kind is loaded, and nothing is imported that
the object did not bring.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.plugins import load_plugin, plugin_names, unusable_plugin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from evalmeta.engine.project_code import Function
    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case

OpenSession: TypeAlias = "Callable[[object, Case], object | Awaitable[object]]"
ReadParts: TypeAlias = "Callable[[object], Inventory | Awaitable[Inventory]]"
_DECLARE: Final = "Declare it as AgentKind(...) of evalmeta.engine.subjects.kinds."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentKind:
    """A kind of agents, which evalmeta asks as they are.

    Attributes:
        classes: The names of the classes, with or without their modules; subclasses are recognised too.
        open: Starts the conversation of a case. It returns an object with `ask(utterance)`, which returns anything that
            evalmeta reads as an answer, and perhaps `close()`; all of them may be coroutine functions.
        needs: The attributes that objects of all supported versions have.
        requires: The oldest version that has them, such as `langgraph>=1.0`.
        factory: The line that a user writes if an object holds only one conversation, so that every case needs its own;
            empty if cases can share one.
        parts: Returns the topics and tools of an agent, which `evalmeta coverage` compares with tests (`inventories`);
            None if these agents do not list them.
    """

    classes: frozenset[str]
    open: OpenSession
    needs: tuple[str, ...] = ()
    requires: str = ""
    factory: str = ""
    parts: ReadParts | None = None

    def check(self, agent: object, *, called: str) -> None:
        """Raise SettingsError if the object comes from a version of the framework that is not supported."""
        if missing := [name for name in self.needs if not hasattr(agent, name)]:
            raise SettingsError(
                f"{called} is {class_name(type(agent))} without {', '.join(missing)}: its version is not supported",
                actions=(f"Install {self.requires}.",),
            )


def known_packages() -> list[str]:
    """Return the sorted names of the packages whose agents are recognised."""
    return sorted({*ENTRY_POINTS["agents"], *plugin_names("agents")})


def kind_of(defined: type) -> AgentKind | None:
    """Return the kind of the agents of a class; None if no kind has it."""
    packages = {*ENTRY_POINTS["agents"], *plugin_names("agents")}
    for ancestor in defined.__mro__:
        for package in _parents(ancestor.__module__):
            if package in packages and not {ancestor.__name__, class_name(ancestor)}.isdisjoint(_load(package).classes):
                return _load(package)
    return None


def framework_member(module: str, name: str, *, requires: str) -> Function:
    """Return a function or class of the framework of an agent; raise SubjectError if its version has none.

    Only called for objects of the framework, so that evalmeta imports no framework that is not used.
    """
    try:
        return cast("Function", getattr(import_module(module), name))
    except (ImportError, AttributeError) as error:
        raise SubjectError(
            f"the installed version has no {module}.{name}: it is not supported", actions=(f"Install {requires}.",)
        ) from error


def class_name(defined: type) -> str:
    """Return the name of a class with its module."""
    return f"{defined.__module__}.{defined.__qualname__}"


def _parents(module: str) -> Iterator[str]:
    """Yield the names of a module and of the packages that contain it."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def _load(package: str) -> AgentKind:
    kind = load_plugin("agents", package)
    if not isinstance(kind, AgentKind):
        raise unusable_plugin("agents", package, f"is {type(kind).__name__}, not a kind of agents", action=_DECLARE)
    return kind
