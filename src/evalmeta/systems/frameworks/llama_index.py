"""Agents and workflows of LlamaIndex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.engine.answer_shapes import tool_output
from evalmeta.engine.answers import chat_messages, plain_text
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of, no_parts
from evalmeta.engine.subjects.kinds import AgentKind, class_name, framework_member
from evalmeta.errors import ApprovalNeeded, SubjectError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable

    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue


_REQUIRES: Final = "llama-index-core>=0.14"
_AGENTS: Final = frozenset({"AgentWorkflow", "BaseWorkflowAgent"})
_HANDOFF: Final = "handoff"


class _Handler(Protocol):
    def stream_events(self) -> AsyncIterator[object]: ...

    def cancel_run(self) -> Awaitable[None]: ...

    def __await__(self) -> object: ...


class _Workflow(Protocol):
    def run(self, *, ctx: object, **inputs: object) -> _Handler: ...


class _MemoryBuffer(Protocol):
    def from_defaults(self) -> object: ...


class _ToolOutput(Protocol):
    raw_output: object
    is_error: bool


class _Called(Protocol):
    tool_name: str
    tool_kwargs: Mapping[str, object]
    tool_output: _ToolOutput


def _open(agent: object, case: Case) -> _Conversation:
    return _Conversation(cast("_Workflow", agent), case)


class _Conversation(NothingToClose):
    """One context of a workflow, which has its memory."""

    def __init__(self, workflow: _Workflow, case: Case) -> None:
        self._workflow = workflow
        self._is_agent = not _AGENTS.isdisjoint(ancestor.__name__ for ancestor in type(workflow).__mro__)
        self._context = framework_member("workflows", "Context", requires=_REQUIRES)(workflow)
        self._memory: object = None
        self._history: list[object] = []
        if self._is_agent:
            # The context forgets its own memory between two runs.
            buffer = framework_member("llama_index.core.memory", "ChatMemoryBuffer", requires=_REQUIRES)
            self._memory = cast("_MemoryBuffer", buffer).from_defaults()
            message = framework_member("llama_index.core.llms", "ChatMessage", requires=_REQUIRES)
            self._history = [message(**entry) for entry in chat_messages(case)]

    async def ask(self, utterance: JsonValue) -> object:
        called: list[_Called] = []
        handler = self._workflow.run(ctx=self._context, **self._inputs(utterance))
        async for event in handler.stream_events():
            names = {ancestor.__name__ for ancestor in type(event).__mro__}
            if "ToolCallResult" in names:
                called.append(cast("_Called", event))
            if "InputRequiredEvent" in names:
                await handler.cancel_run()
                raise ApprovalNeeded(
                    f"the agent waits for a person, so it has no answer: {getattr(event, 'prefix', '')!s:.300}",
                    actions=("Name a function as the agent, which answers the InputRequiredEvent.",),
                )
        return _answer(await cast("Awaitable[object]", handler), called)

    def _inputs(self, utterance: JsonValue) -> Mapping[str, object]:
        if isinstance(utterance, Mapping):
            return utterance
        if not self._is_agent:
            raise SubjectError(
                f"{class_name(type(self._workflow))} is not an agent, so it cannot be asked a text",
                actions=("Write the input of the case as a mapping with the arguments of the workflow's run().",),
            )
        history, self._history = self._history, []
        inputs = {"user_msg": plain_text(utterance), "memory": self._memory}
        return {**inputs, "chat_history": history} if history else inputs


def _answer(result: object, called: Sequence[_Called]) -> object:
    if not hasattr(result, "current_agent_name"):
        return {"outcome": result} if not called else {"outcome": result, "actions": [*map(_action, called)]}
    structured = getattr(result, "structured_response", None)
    return {
        "outcome": str(result) if structured is None else structured,
        "topic": result.current_agent_name,
        "actions": [_action(call) for call in called if call.tool_name != _HANDOFF],
        "handoffs": [str(call.tool_kwargs.get("to_agent")) for call in called if call.tool_name == _HANDOFF],
        "retrieved": _retrieved(called),
    }


def _action(call: _Called) -> dict[str, object]:
    output = call.tool_output
    result = {"error": str(output.raw_output)} if output.is_error else {"output": tool_output(output.raw_output)}
    return {"name": call.tool_name, "input": dict(call.tool_kwargs), **result}


def _retrieved(called: Iterable[_Called]) -> list[dict[str, object]] | None:
    """Return the nodes on which the answers of query engines are based; None without any."""
    nodes = [node for call in called for node in getattr(call.tool_output.raw_output, "source_nodes", None) or ()]
    return [
        {
            "uri": str((getattr(node, "metadata", None) or {}).get("file_name") or node.node_id),
            "content": node.get_content(),
        }
        for node in nodes
    ] or None


class _Metadata(Protocol):
    name: str | None
    description: str


class _Tool(Protocol):
    metadata: _Metadata


class _Agent(Protocol):
    name: str
    description: str
    tools: Sequence[_Tool] | None
    tool_retriever: object
    can_handoff_to: Sequence[str] | None


def _parts(agent: object) -> Inventory:
    """Return the tools of an agent, or of a workflow's agents, of which those that others hand over to are topics."""
    if hasattr(agent, "tool_retriever"):
        return inventory_of([_member(cast("_Agent", agent), is_reached=False)])
    known = getattr(agent, "agents", None)
    if not isinstance(known, Mapping):
        raise no_parts(class_name(type(agent)))
    root = cast("_Agent", known[getattr(agent, "root_agent", "")])
    agents = [root, *(cast("_Agent", other) for other in known.values() if other is not root)]
    return inventory_of([_member(one, is_reached=one is not root or _is_target(root, agents)) for one in agents])


def _is_target(agent: _Agent, agents: Iterable[_Agent]) -> bool:
    """Return whether another agent may hand over to this one: to all others, unless it names them."""
    others = [other.can_handoff_to for other in agents if other is not agent]
    return any(names is None or agent.name in names for names in others)


def _member(agent: _Agent, *, is_reached: bool) -> Member:
    if agent.tool_retriever is not None:
        raise no_parts(f"the agent {agent.name}, whose tools a retriever chooses in each turn,")
    tools = tuple(Tool(tool.metadata.name or "", tool.metadata.description) for tool in agent.tools or ())
    return Member(agent.name, tools, is_reached=is_reached, description=agent.description)


LLAMA_INDEX: Final = AgentKind(
    classes=frozenset({"Workflow", *_AGENTS}), open=_open, needs=("run",), requires=_REQUIRES, parts=_parts
)
