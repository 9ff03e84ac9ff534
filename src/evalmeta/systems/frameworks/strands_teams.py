"""Several agents of Strands as one: graphs and swarms, of which a function makes one for each case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.engine.answer_shapes import tool_output
from evalmeta.engine.answers import context_of, plain_text
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of
from evalmeta.engine.subjects.kinds import AgentKind, framework_member
from evalmeta.errors import SubjectError
from evalmeta.systems.frameworks.conversations import check_approved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from evalmeta.engine.project_code import Function
    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue

_REQUIRES: Final = "strands-agents>=1.20"
_HANDOFF: Final = "handoff_to_agent"
# What the documentation of interrupts has people answer.
_APPROVAL: Final = "y"


class _Hooks(Protocol):
    def add_callback(self, event_type: Function, callback: Callable[[_ToolCall], None]) -> None: ...


class _ToolCall(Protocol):
    tool_use: Mapping[str, object]
    result: Mapping[str, object]


class _Node(Protocol):
    node_id: str
    executor: _Executor


class _Registry(Protocol):
    def get_all_tools_config(self) -> Mapping[str, Mapping[str, object]]: ...


class _Executor(Protocol):
    """An agent with hooks and tools, or another team with nodes."""

    hooks: _Hooks
    tool_registry: _Registry
    nodes: Mapping[str, _Node]


class _Interrupt(Protocol):
    id: str
    name: str


class _NodeResult(Protocol):
    result: object


class _Status(Protocol):
    value: str


class _Result(Protocol):
    status: _Status
    results: Mapping[str, _NodeResult]
    accumulated_usage: Mapping[str, int]


class _Team(Protocol):
    nodes: Mapping[str, _Node]

    def invoke_async(self, task: object, invocation_state: Mapping[str, object]) -> Awaitable[_Result]: ...


def _open(agent: object, case: Case) -> _Conversation:
    if case.history:
        raise SubjectError(
            "graphs and swarms of Strands cannot begin with a conversation history; "
            "write a function that puts it into the task"
        )
    return _Conversation(cast("_Team", agent), case)


class _Conversation(NothingToClose):
    """The turns of a team, each of which is an invocation; its agents remember what they remember without evalmeta."""

    def __init__(self, team: _Team, case: Case) -> None:
        self._team = team
        self._case = case
        self._actions: list[dict[str, object]] = []
        event = framework_member("strands.hooks", "AfterToolCallEvent", requires=_REQUIRES)
        for agent in _agents(team.nodes):
            agent.hooks.add_callback(event, self._note_call)

    def _note_call(self, call: _ToolCall) -> None:
        name = call.tool_use.get("name")
        if name != _HANDOFF:
            self._actions.append({"name": name, "input": call.tool_use.get("input"), **_ending(call.result)})

    async def ask(self, utterance: JsonValue) -> object:
        self._actions = []
        prompt: object = plain_text(utterance)
        while True:
            result = await self._team.invoke_async(prompt, dict(context_of(self._case)))
            if result.status.value != "interrupted":
                break
            interrupts = cast("Sequence[_Interrupt]", getattr(result, "interrupts", ()))
            check_approved([interrupt.name for interrupt in interrupts], self._case)
            prompt = [
                {"interruptResponse": {"interruptId": interrupt.id, "response": _APPROVAL}} for interrupt in interrupts
            ]
        ran = _nodes_run(result)
        if result.status.value != "completed" or not ran:
            raise SubjectError(f"the agents of Strands ended with the status {result.status.value}")
        last = result.results[ran[-1]].result
        return {
            "outcome": str(last).removesuffix("\n"),
            "topic": ran[-1],
            "actions": self._actions,
            "handoffs": ran[1:],
            "tokens": {
                "input": result.accumulated_usage.get("inputTokens", 0),
                "output": result.accumulated_usage.get("outputTokens", 0),
            },
        }


def _agents(nodes: Mapping[str, _Node]) -> Iterator[_Executor]:
    """Yield the agents of a team, also of teams in it."""
    for node in nodes.values():
        inner = getattr(node.executor, "nodes", None)
        if inner is not None:
            yield from _agents(inner)
        elif hasattr(node.executor, "hooks"):
            yield node.executor


def _nodes_run(result: _Result) -> list[str]:
    """Return the names of the nodes that ran, in their order: a graph and a swarm call it differently."""
    nodes: Sequence[_Node] = getattr(result, "execution_order", None) or getattr(result, "node_history", None) or ()
    return [node.node_id for node in nodes]


def _ending(result: Mapping[str, object]) -> dict[str, object]:
    """Return the output of a tool, or its error."""
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    texts = "\n".join(str(part["text"]) for part in parts if "text" in part)
    if result.get("status") == "error":
        return {"error": texts or "without a message"}
    return {"output": next((part["json"] for part in parts if "json" in part), tool_output(texts))}


def _parts(agent: object) -> Inventory:
    """Return the tools of a team's nodes, with those of teams in them; the nodes after the first are topics."""
    team = cast("_Team", agent)
    first = _first_node(team)
    members = [
        Member(name, tuple(_tools(node)), is_reached=name != first)
        for name, node in sorted(team.nodes.items(), key=lambda item: item[0] != first)
    ]
    # Several nodes at once begin a conversation, so that none of them does.
    return inventory_of(members if first else [Member("", (), is_reached=False), *members])


def _first_node(team: _Team) -> str:
    """Return the name of the node that begins; empty if several do."""
    entries = getattr(team, "entry_points", None)
    if entries is not None:
        names = [node.node_id for node in cast("Iterable[_Node]", entries)]
        return names[0] if len(names) == 1 else ""
    entry = getattr(team, "entry_point", None)
    return str(entry.name) if entry is not None else next(iter(team.nodes))


def _tools(node: _Node) -> Iterator[Tool]:
    for agent in _agents({"": node}):
        for name, tool in agent.tool_registry.get_all_tools_config().items():
            if name != _HANDOFF:
                yield Tool(name, str(tool.get("description", "")))


STRANDS_TEAMS: Final = AgentKind(
    classes=frozenset({"strands.multiagent.graph.Graph", "strands.multiagent.swarm.Swarm"}),
    open=_open,
    needs=("invoke_async", "nodes"),
    requires=_REQUIRES,
    factory="def make_agent(): return Swarm([Agent(...), Agent(...)])",
    parts=_parts,
)
