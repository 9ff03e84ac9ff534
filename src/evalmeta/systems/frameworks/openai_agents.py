"""Agents of the OpenAI Agents SDK (`openai-agents`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.engine.answer_shapes import answer_of
from evalmeta.engine.answers import chat_messages, context_of
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of, members_from, tools_of
from evalmeta.engine.subjects.kinds import AgentKind, framework_member
from evalmeta.errors import SubjectError
from evalmeta.systems.frameworks.conversations import check_approved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator, Sequence

    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue


_REQUIRES: Final = "openai-agents>=0.8"


class _Waiting(Protocol):
    name: str | None


class _State(Protocol):
    def approve(self, waiting: _Waiting) -> None: ...


class _Run(Protocol):
    final_output: object
    last_agent: object
    interruptions: Sequence[_Waiting]
    new_items: Sequence[object]

    def to_input_list(self) -> list[object]: ...

    def to_state(self) -> _State: ...


class _Runner(Protocol):
    def run(self, agent: object, asked: object, *, context: object, run_config: object) -> Awaitable[_Run]: ...


def _open(agent: object, case: Case) -> _Conversation:
    return _Conversation(agent, case)


class _Conversation(NothingToClose):
    """One conversation: all items so far are the input of a turn, which begins with the agent of the last one."""

    def __init__(self, agent: object, case: Case) -> None:
        self._agent = agent
        self._case = case
        self._items: list[object] = [*chat_messages(case)]
        self._runner = cast("_Runner", framework_member("agents", "Runner", requires=_REQUIRES))
        # Otherwise the SDK would send traces of the test to OpenAI.
        self._settings = framework_member("agents", "RunConfig", requires=_REQUIRES)(tracing_disabled=True)
        self._context = context_of(case) or None

    async def ask(self, utterance: JsonValue) -> object:
        asked = utterance if isinstance(utterance, list) else [{"role": "user", "content": utterance}]
        run = await self._run([*self._items, *asked])
        while run.interruptions:
            check_approved([waiting.name or "" for waiting in run.interruptions], self._case)
            state = run.to_state()
            for waiting in run.interruptions:
                state.approve(waiting)
            run = await self._run(state)
        self._items = run.to_input_list()
        self._agent = run.last_agent
        return {**(answer_of(run) or {}), "handoffs": _handoffs(run.new_items)}

    async def _run(self, asked: object) -> _Run:
        return await self._runner.run(self._agent, asked, context=self._context, run_config=self._settings)


def _handoffs(items: Iterable[object]) -> list[str]:
    done = [item for item in items if getattr(item, "type", "") == "handoff_output_item"]
    return [str(getattr(getattr(item, "target_agent", None), "name", "")) for item in done]


class _Agent(Protocol):
    name: str
    handoff_description: str | None
    tools: Sequence[object]
    handoffs: Sequence[object]
    mcp_servers: Sequence[object]

    def get_mcp_tools(self, run_context: object) -> Awaitable[Sequence[object]]: ...


async def _parts(agent: object) -> Inventory:
    """Return the tools of an agent and of those that it hands over to, which are the topics."""
    agents = cast("list[_Agent]", members_from(agent, lambda known: _targets(cast("_Agent", known))))
    reached = {id(target) for known in agents for target in _targets(known)}
    return inventory_of(
        [
            Member(
                known.name,
                (*tools_of(known.name, known.tools), *await _tools_of_servers(known)),
                is_reached=id(known) in reached,
                description=known.handoff_description or "",
            )
            for known in agents
        ]
    )


async def _tools_of_servers(agent: _Agent) -> tuple[Tool, ...]:
    """Return the tools of the agent's servers of MCP; the SDK raises an error for one that is not connected."""
    if not agent.mcp_servers:
        return ()
    context = framework_member("agents", "RunContextWrapper", requires=_REQUIRES)(None)
    return tools_of(agent.name, await agent.get_mcp_tools(context))


def _targets(agent: _Agent) -> Iterator[object]:
    """Yield the agents to which an agent hands over; `handoff(...)` only refers to one."""
    for target in agent.handoffs:
        refer = getattr(target, "_agent_ref", None)
        found: object = target if hasattr(target, "handoffs") else refer() if callable(refer) else None
        if found is None:
            named = getattr(target, "agent_name", type(target).__name__)
            raise SubjectError(
                f"the tools of {named}, to which {agent.name} hands over, are not known",
                actions=(f"List the agent itself in handoffs of {agent.name}, or keep it in a variable.",),
            )
        yield found


OPENAI_AGENTS: Final = AgentKind(
    classes=frozenset({"agents.agent.Agent"}),
    open=_open,
    needs=("name", "handoffs", "tools"),
    requires=_REQUIRES,
    parts=_parts,
)
