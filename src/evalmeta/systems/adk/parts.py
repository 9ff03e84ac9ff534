"""The topics and tools of an agent of google-adk: its sub-agents, and the tools of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of, members_from, tools_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from evalmeta.model.coverage import Inventory

# Agents that only call others: none of them is the author of an answer.
_CALLERS: Final = frozenset({"SequentialAgent", "ParallelAgent", "LoopAgent", "Workflow"})


class _Agent(Protocol):
    name: str
    description: str


class _Toolset(Protocol):
    """Tools that are listed by a call, such as those of a server of MCP."""

    def get_tools(self) -> Awaitable[Sequence[object]]: ...

    def close(self) -> Awaitable[None]: ...


async def read_parts(agent: object) -> Inventory:
    """Return the parts of an agent, of an App, or of the agent of a Runner; its sub-agents are the topics."""
    root: object = getattr(agent, "root_agent", None) or getattr(agent, "agent", None) or agent
    agents = cast("list[_Agent]", members_from(root, _below))
    return inventory_of(
        [
            Member(
                one.name,
                await _tools(one),
                is_reached=one is not root and not _only_calls(one),
                description=one.description or "",
            )
            for one in agents
        ]
    )


def _below(agent: object) -> Iterator[object]:
    """Yield the sub-agents of an agent, or the agents among the nodes of a workflow."""
    yield from getattr(agent, "sub_agents", ())
    for node in getattr(getattr(agent, "graph", None), "nodes", ()):
        if hasattr(node, "sub_agents") or hasattr(node, "graph"):
            yield node


def _only_calls(agent: object) -> bool:
    return not _CALLERS.isdisjoint(ancestor.__name__ for ancestor in type(agent).__mro__)


async def _tools(agent: _Agent) -> tuple[Tool, ...]:
    found: list[Tool] = []
    for tool in getattr(agent, "tools", None) or ():
        if not hasattr(tool, "get_tools"):
            found += tools_of(agent.name, [tool])
            continue
        toolset = cast("_Toolset", tool)
        # Newer versions add the prefix that users chose.
        get_tools = cast(
            "Callable[[], Awaitable[Sequence[object]]]", getattr(toolset, "get_tools_with_prefix", toolset.get_tools)
        )
        try:
            found += tools_of(agent.name, await get_tools())
        finally:
            await toolset.close()
    return tuple(found)
