"""Agents of Pydantic AI."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Final, Protocol, cast
from uuid import uuid4

from evalmeta.engine.answer_shapes import answer_of
from evalmeta.engine.answers import chat_messages, context_of, plain_text
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of
from evalmeta.engine.subjects.kinds import AgentKind, framework_member
from evalmeta.errors import ApprovalNeeded, SubjectError
from evalmeta.systems.frameworks.conversations import check_approved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence

    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue


_REQUIRES: Final = "pydantic-ai-slim>=2"
_MESSAGES: Final = "pydantic_ai.messages"


class _Call(Protocol):
    tool_name: str
    tool_call_id: str


class _Definition(Protocol):
    description: str | None


class _Listed(Protocol):
    tool_def: _Definition


class _Toolset(AbstractAsyncContextManager["_Toolset"], Protocol):
    def for_run(self, context: object) -> Awaitable[_Toolset]: ...

    def for_run_step(self, context: object) -> Awaitable[_Toolset]: ...

    def get_tools(self, context: object) -> Awaitable[Mapping[str, _Listed]]: ...


class _Run(Protocol):
    output: object

    def all_messages(self) -> list[object]: ...

    def new_messages(self) -> list[object]: ...


class _Agent(Protocol):
    name: str | None
    deps_type: type

    @property
    def toolsets(self) -> Sequence[_Toolset]: ...

    def run(
        self,
        prompt: str | None,
        *,
        message_history: Sequence[object],
        conversation_id: str,
        deps: object,
        deferred_tool_results: object,
    ) -> Awaitable[_Run]: ...


def _open(agent: object, case: Case) -> _Conversation:
    return _Conversation(cast("_Agent", agent), case)


class _Conversation(NothingToClose):
    """One conversation, whose messages are the history of the next turn."""

    def __init__(self, agent: _Agent, case: Case) -> None:
        self._agent = agent
        self._case = case
        self._id = uuid4().hex
        self._messages = [_message(message) for message in chat_messages(case)]
        self._dependencies = _dependencies(agent, context_of(case))
        self._results = framework_member("pydantic_ai", "DeferredToolResults", requires=_REQUIRES)

    async def ask(self, utterance: JsonValue) -> object:
        run = await self._run(plain_text(utterance))
        new = run.new_messages()
        while hasattr(run.output, "approvals") and hasattr(run.output, "calls"):
            results = self._approved(cast("_Requests", run.output))
            run = await self._run(None, results)
            new += run.new_messages()
        answer = answer_of({"output": run.output, "new_messages": lambda: new}) or {}
        return {**answer, "topic": self._agent.name, "tokens": _tokens(new), "session_id": self._id}

    async def _run(self, prompt: str | None, results: object = None) -> _Run:
        run = await self._agent.run(
            prompt,
            message_history=self._messages,
            conversation_id=self._id,
            deps=self._dependencies,
            deferred_tool_results=results,
        )
        self._messages = run.all_messages()
        return run

    def _approved(self, requests: _Requests) -> object:
        """Return the approvals of the calls for which the agent waits; raise ApprovalNeeded if the case has none."""
        if requests.calls:
            names = ", ".join(call.tool_name for call in requests.calls)
            raise ApprovalNeeded(f"the agent waits for the results of tools that run elsewhere: {names}")
        check_approved([call.tool_name for call in requests.approvals], self._case)
        return self._results(approvals={call.tool_call_id: True for call in requests.approvals})


class _Requests(Protocol):
    calls: Sequence[_Call]
    approvals: Sequence[_Call]


def _message(message: Mapping[str, str]) -> object:
    """Return a message of the history as the framework's own."""
    part, whole = {
        "user": ("UserPromptPart", "ModelRequest"),
        "assistant": ("TextPart", "ModelResponse"),
        "system": ("SystemPromptPart", "ModelRequest"),
    }[message["role"]]
    said = framework_member(_MESSAGES, part, requires=_REQUIRES)(content=message["content"])
    return framework_member(_MESSAGES, whole, requires=_REQUIRES)(parts=[said])


def _dependencies(agent: _Agent, variables: Mapping[str, object]) -> object:
    """Return the agent's dependencies, made of the context variables; raise SubjectError if that is not possible."""
    wanted = agent.deps_type
    if wanted is type(None):
        return None
    if wanted in {object, dict}:
        return dict(variables)
    members = getattr(wanted, "model_fields", None) or [
        field.name for field in (dataclasses.fields(wanted) if dataclasses.is_dataclass(wanted) else ())
    ]
    try:
        return wanted(**{name: value for name, value in variables.items() if name in members})
    except Exception as error:
        raise SubjectError(
            f"the agent's dependencies, {wanted.__name__}, cannot be made of the context variables: {error}",
            actions=("Name a function as the agent, which calls agent.run(utterance, deps=...).",),
        ) from error


def _tokens(messages: Iterable[object]) -> dict[str, int] | None:
    usages = [usage for message in messages if (usage := getattr(message, "usage", None)) is not None]
    names = {"input": "input_tokens", "output": "output_tokens"}
    return {key: sum(getattr(usage, name, 0) for usage in usages) for key, name in names.items()} if usages else None


async def _parts(agent: object) -> Inventory:
    """Return the tools in the agent's toolsets, also of servers, as a run without context variables begins with."""
    asked = cast("_Agent", agent)
    dependencies: object = None
    with suppress(SubjectError):
        dependencies = _dependencies(asked, {})
    # No model is asked; a run has one.
    model = framework_member("pydantic_ai.models.test", "TestModel", requires=_REQUIRES)()
    usage = framework_member("pydantic_ai.usage", "RunUsage", requires=_REQUIRES)()
    context = framework_member("pydantic_ai", "RunContext", requires=_REQUIRES)
    first_step = context(deps=dependencies, model=model, usage=usage)
    tools: list[Tool] = []
    for toolset in asked.toolsets:
        async with await toolset.for_run(first_step) as opened:
            listed = await (await opened.for_run_step(first_step)).get_tools(first_step)
            tools += (Tool(name, tool.tool_def.description or "") for name, tool in listed.items())
    return inventory_of([Member(asked.name or "", tuple(tools))])


PYDANTIC_AI: Final = AgentKind(
    classes=frozenset({"AbstractAgent"}),
    open=_open,
    needs=("run", "name", "deps_type"),
    requires=_REQUIRES,
    parts=_parts,
)
