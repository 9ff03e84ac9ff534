"""Graphs of LangGraph, and agents of LangChain's `create_agent`, which are such graphs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast
from uuid import uuid4

from evalmeta.engine.answer_shapes import answer_of
from evalmeta.engine.answers import chat_messages, context_of
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of, no_parts, tools_of
from evalmeta.engine.subjects.kinds import AgentKind, framework_member
from evalmeta.errors import ApprovalNeeded, SubjectError
from evalmeta.systems.frameworks.conversations import check_approved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue


_REQUIRES: Final = "langgraph>=1.0"
_INTERRUPT: Final = "__interrupt__"
# The node of tools: a graph that a tool calls is not the agent that answers.
_TOOLS: Final = "tools"
# What graphs without a name of their own are called.
_DEFAULT_NAME: Final = "LangGraph"


class _Graph(Protocol):
    checkpointer: object
    context_schema: object

    def astream(
        self, state: object, config: object, *, context: object, stream_mode: Sequence[str], subgraphs: bool
    ) -> AsyncIterator[tuple[tuple[str, ...], str, object]]: ...

    def get_input_jsonschema(self) -> Mapping[str, object]: ...

    def get_context_jsonschema(self) -> Mapping[str, object] | None: ...


def _open(agent: object, case: Case) -> _Conversation:
    return _Conversation(cast("_Graph", agent), case)


class _Conversation(NothingToClose):
    """One thread of a graph; without a checkpointer, every turn sends all messages again."""

    def __init__(self, graph: _Graph, case: Case) -> None:
        self._graph = graph
        self._case = case
        self._inputs = _properties(graph.get_input_jsonschema())
        self._thread = uuid4().hex
        self._messages: list[object] = [*chat_messages(case)]
        variables = context_of(case)
        self._state: dict[str, object] = {name: value for name, value in variables.items() if name in self._inputs}
        self._config = {"configurable": {"thread_id": self._thread, **variables}}
        wanted = _properties(graph.get_context_jsonschema() or {}) if graph.context_schema else ()
        self._context = {name: value for name, value in variables.items() if name in wanted} if wanted else None

    async def ask(self, utterance: JsonValue) -> object:
        state = self._next_state(utterance)
        handoffs: list[str] = []
        reply = await self._run(state, handoffs)
        while waiting := reply.get(_INTERRUPT):
            reply = await self._run(self._resumed(cast("Iterable[object]", waiting)), handoffs)
        if not isinstance(reply.get("messages"), list):
            return {"outcome": dict(reply), "session_id": self._thread}
        return self._answer(cast("list[object]", reply["messages"]), handoffs)

    def _next_state(self, utterance: JsonValue) -> Mapping[str, object]:
        if isinstance(utterance, Mapping):
            return {**self._state, **utterance}
        if "messages" not in self._inputs:
            keys = ", ".join(self._inputs) or "none"
            raise SubjectError(
                f"the state of the graph has no messages, so it cannot be asked a text; its keys: {keys}",
                actions=(f"Write the input of the case as a mapping with some of the keys {keys}.",),
            )
        asked = utterance if isinstance(utterance, list) else [{"role": "user", "content": utterance}]
        state = {**self._state, "messages": [*self._messages, *asked]}
        if self._graph.checkpointer:
            # The thread knows its messages and its state from now on.
            self._messages, self._state = [], {}
        return state

    async def _run(self, state: object, handoffs: list[str]) -> Mapping[str, object]:
        reply: Mapping[str, object] = {}
        interrupts: object = None
        steps = self._graph.astream(
            state, self._config, context=self._context, stream_mode=["updates", "values"], subgraphs=True
        )
        async for namespace, mode, chunk in steps:
            node = namespace[0].partition(":")[0] if namespace else _TOOLS
            if node != _TOOLS and handoffs[-1:] != [node]:
                handoffs.append(node)
            if isinstance(chunk, Mapping):
                interrupts = interrupts or chunk.get(_INTERRUPT)
                reply = chunk if mode == "values" and not namespace else reply
        return {**reply, _INTERRUPT: interrupts} if interrupts else reply

    def _resumed(self, interrupts: Iterable[object]) -> object:
        """Return the command that answers interrupts with approvals; raise ApprovalNeeded if the case has none."""
        answers = {}
        for interrupt in interrupts:
            value: object = getattr(interrupt, "value", None)
            requests = value.get("action_requests") if isinstance(value, Mapping) else None
            if not isinstance(requests, Sequence):
                raise ApprovalNeeded(
                    f"the agent waits for a person, so it has no answer: {value!s:.300}",
                    actions=("Name a function as the agent, which resumes the graph with Command(resume=...).",),
                )
            check_approved([str(request.get("name") or request.get("action")) for request in requests], self._case)
            answers[getattr(interrupt, "id", "")] = {"decisions": [{"type": "approve"}] * len(requests)}
        if not self._graph.checkpointer:
            raise SubjectError(
                "the graph waits for an approval, but it has no checkpointer, so it cannot continue",
                actions=("Compile it with checkpointer=InMemorySaver() of langgraph.checkpoint.memory.",),
            )
        return framework_member("langgraph.types", "Command", requires=_REQUIRES)(resume=answers)

    def _answer(self, messages: list[object], handoffs: list[str]) -> object:
        if not self._graph.checkpointer:
            self._messages = messages
        answer = answer_of({"messages": messages}) or {"outcome": ""}
        new = messages[_place_after_user(messages) :]
        return {
            **answer,
            "topic": answer.get("topic") or (handoffs[-1] if handoffs else None),
            "handoffs": handoffs or None,
            "retrieved": _retrieved(new),
            "session_id": self._thread,
        }


def _properties(schema: Mapping[str, object]) -> tuple[str, ...]:
    """Return the members of a JSON Schema of an object."""
    members = schema.get("properties")
    return tuple(members) if isinstance(members, Mapping) else ()


def _place_after_user(messages: Sequence[object]) -> int:
    asked = (place for place, message in enumerate(messages, 1) if getattr(message, "type", "") == "human")
    return max(asked, default=0)


def _retrieved(messages: Iterable[object]) -> list[dict[str, object]] | None:
    """Return the documents that tools returned as their artifacts; None without any."""
    passages: list[dict[str, object]] = []
    for message in messages:
        artifact = getattr(message, "artifact", None)
        for document in artifact if isinstance(artifact, list | tuple) else ():
            if isinstance(content := getattr(document, "page_content", None), str):
                metadata = getattr(document, "metadata", None) or {}
                uri = metadata.get("source") or getattr(document, "id", None) or ""
                passages.append({"uri": str(uri), "content": content})
    return passages or None


class _Named(Protocol):
    """A graph as its parts are read; a remote graph has no nodes."""

    name: str

    @property
    def nodes(self) -> Mapping[str, object]: ...

    def get_subgraphs(self, *, recurse: bool) -> Iterable[tuple[str, _Named]]: ...


def _parts(agent: object) -> Inventory:
    """Return the tools of the graph's nodes of tools; graphs in the graph are topics, with the tools below them."""
    graph = cast("_Named", agent)
    inner = [*graph.get_subgraphs(recurse=False)]
    members = [Member(graph.name, tuple(_own_tools(graph)), is_reached=False)]
    for node, below in inner:
        name = node if below.name == _DEFAULT_NAME else below.name
        members.append(Member(name, tuple(_tools_below(below)), words=(node,)))
    return inventory_of(members)


def _tools_below(graph: _Named) -> Iterator[Tool]:
    if not hasattr(graph, "nodes"):
        raise no_parts(f"the remote graph {graph.name}")
    yield from _own_tools(graph)
    for _, inner in graph.get_subgraphs(recurse=True):
        yield from _own_tools(inner)


def _own_tools(graph: _Named) -> Iterator[Tool]:
    for node in graph.nodes.values():
        bound: object = getattr(node, "bound", None)
        for step in getattr(bound, "steps", None) or [bound]:
            by_name = getattr(step, "tools_by_name", None)
            if isinstance(by_name, Mapping):
                yield from tools_of(graph.name, by_name.values())


LANGGRAPH: Final = AgentKind(
    classes=frozenset({"Pregel"}),
    open=_open,
    needs=("astream", "get_input_jsonschema", "get_context_jsonschema", "checkpointer", "context_schema"),
    requires=_REQUIRES,
    parts=_parts,
)
