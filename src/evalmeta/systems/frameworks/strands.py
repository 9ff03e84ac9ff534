"""Agents of Strands: an object holds one conversation, so a function makes one for each case."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.engine.answer_shapes import answer_of
from evalmeta.engine.answers import chat_messages, context_of, plain_text
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of
from evalmeta.engine.subjects.kinds import AgentKind
from evalmeta.systems.frameworks.conversations import check_approved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue


_DEFAULT_NAME: Final = "Strands Agents"
# What the documentation of interrupts has people answer.
_APPROVAL: Final = "y"


class _Interrupt(Protocol):
    id: str
    name: str


class _Metrics(Protocol):
    accumulated_usage: Mapping[str, int]


class _Result(Protocol):
    stop_reason: str
    interrupts: Sequence[_Interrupt] | None
    metrics: _Metrics


class _Registry(Protocol):
    def get_all_tools_config(self) -> Mapping[str, Mapping[str, object]]: ...


class _Agent(Protocol):
    name: str
    tool_registry: _Registry
    messages: list[object]

    def invoke_async(self, prompt: object, *, invocation_state: Mapping[str, object]) -> Awaitable[_Result]: ...


def _open(agent: object, case: Case) -> _Conversation:
    return _Conversation(cast("_Agent", agent), case)


class _Conversation(NothingToClose):
    """The conversation of an agent, whose messages begin with the history of the case."""

    def __init__(self, agent: _Agent, case: Case) -> None:
        self._agent = agent
        self._case = case
        self._used = Counter[str]()
        agent.messages += [
            {"role": entry["role"], "content": [{"text": entry["content"]}]}
            for entry in chat_messages(case)
            if entry["role"] != "system"
        ]

    async def ask(self, utterance: JsonValue) -> object:
        known = len(self._agent.messages)
        prompt: object = plain_text(utterance)
        while True:
            state = dict(context_of(self._case))
            result = await self._agent.invoke_async(prompt, invocation_state=state)
            if result.stop_reason != "interrupt":
                break
            interrupts = result.interrupts or ()
            check_approved([interrupt.name for interrupt in interrupts], self._case)
            prompt = [
                {"interruptResponse": {"interruptId": interrupt.id, "response": _APPROVAL}} for interrupt in interrupts
            ]
        # The usage is that of all turns so far; not all versions report that of one.
        used = Counter(dict(result.metrics.accumulated_usage))
        usage, self._used = used - self._used, used
        answer = answer_of(self._agent.messages[known:]) or {"outcome": "", "actions": []}
        structured = getattr(result, "structured_output", None)
        return {
            **answer,
            "outcome": answer["outcome"] if structured is None else structured,
            "actions": answer.get("actions") or [],
            "topic": None if self._agent.name == _DEFAULT_NAME else self._agent.name,
            "tokens": {"input": usage["inputTokens"], "output": usage["outputTokens"]},
        }


def _parts(agent: object) -> Inventory:
    listed = cast("_Agent", agent).tool_registry.get_all_tools_config()
    tools = tuple(Tool(name, str(tool.get("description", ""))) for name, tool in listed.items())
    return inventory_of([Member(cast("_Agent", agent).name, tools)])


STRANDS: Final = AgentKind(
    classes=frozenset({"strands.agent.agent.Agent"}),
    open=_open,
    needs=("invoke_async", "messages", "name"),
    requires="strands-agents>=1.20",
    factory="def make_agent(): return Agent(model=..., tools=[...], callback_handler=None)",
    parts=_parts,
)
