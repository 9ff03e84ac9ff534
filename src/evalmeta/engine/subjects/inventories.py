"""The parts of agents that are Python objects: their tools are actions, agents that they hand over to are topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.errors import NotFound, SubjectError
from evalmeta.model.agent_parts import AgentPart
from evalmeta.model.coverage import Inventory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Tool(NamedTuple):
    """A tool of an agent, under the name that answers call it."""

    name: str
    description: str = ""


class Member(NamedTuple):
    """An agent of an object, which may have several.

    Attributes:
        name: what answers call it.
        is_reached: whether a conversation can be handed over to it, so that tests can expect it as their topic.
        words: other names that answers and tests may use for it.
    """

    name: str
    tools: tuple[Tool, ...]
    is_reached: bool = True
    description: str = ""
    words: tuple[str, ...] = ()


def inventory_of(members: Sequence[Member]) -> Inventory:
    """Return the parts of an object whose conversations begin at its first member.

    An agent without others has actions only: it is the topic of every case. Raise SubjectError if there are too many.
    """
    is_team = len(members) > 1
    parts: dict[tuple[str, str, str], AgentPart] = {}
    for member in members:
        if is_team and member.is_reached:
            words = (member.name, *member.words)
            part = AgentPart("topic", member.name, description=_line(member.description), words=words)
            parts.setdefault(("topic", "", member.name), part)
    for member in members:
        topic = member.name if is_team else ""
        for tool in member.tools:
            part = AgentPart("action", tool.name, topic, description=_line(tool.description), words=(tool.name,))
            parts.setdefault(("action", topic, tool.name), part)
    if len(parts) > limits.MAX_AGENT_PARTS:
        raise SubjectError(f"the agent has more than {limits.MAX_AGENT_PARTS:,} topics and tools")
    return Inventory(tuple(parts.values()), members[0].name if is_team else "")


def members_from(first: object, next_of: Callable[[object], Iterable[object]]) -> list[object]:
    """Return an agent and all that can be reached from it, each once; raise SubjectError if there are too many."""
    found: dict[int, object] = {id(first): first}
    waiting = [first]
    while waiting:
        for agent in next_of(waiting.pop(0)):
            if id(agent) not in found:
                found[id(agent)] = agent
                waiting.append(agent)
        if len(found) > limits.MAX_AGENT_PARTS:
            raise SubjectError(f"more than {limits.MAX_AGENT_PARTS:,} agents can be reached from the agent")
    return [*found.values()]


def no_parts(agent: str) -> NotFound:
    """Return the error for an object that does not list its tools, which `agent` describes."""
    return NotFound(
        f"the topics and tools of the agent are not known: {agent} does not list its tools",
        actions=["Name an agent of a framework as the target; docs/coverage.md says which ones list their tools."],
    )


def tools_of(owner: str, tools: Iterable[object]) -> tuple[Tool, ...]:
    """Return the tools in a list of an agent: objects with a name, or functions; raise SubjectError for any other."""
    return tuple(_tool(owner, tool) for tool in tools)


def _tool(owner: str, tool: object) -> Tool:
    named: object = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not isinstance(named, str):
        raise SubjectError(f"the agent {owner} has a tool without a name: {type(tool).__name__}")
    said: object = getattr(tool, "description", None) or getattr(tool, "__doc__", None)
    return Tool(named, said if isinstance(said, str) else "")


def _line(text: str) -> str:
    return " ".join(text.split())
