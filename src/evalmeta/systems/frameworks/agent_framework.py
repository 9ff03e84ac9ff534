"""Agents of Microsoft Agent Framework: `Agent`, workflows as agents, and other agents with sessions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.engine.answer_shapes import tool_output
from evalmeta.engine.answers import chat_messages, plain_text
from evalmeta.engine.interfaces import NothingToClose
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of, no_parts, tools_of
from evalmeta.engine.subjects.kinds import AgentKind, class_name, framework_member
from evalmeta.systems.frameworks.conversations import check_approved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue


_REQUIRES: Final = "agent-framework-core>=1.0"
_NAME: Final = "agent_framework"
# With this call, a workflow asks the user, such as the agents of a handoff after each answer.
_REQUEST: Final = "request_info"
_HANDOFF: Final = "handoff_to"


class _Content(Protocol):
    type: str
    function_call: _Content
    name: str | None

    def to_dict(self) -> dict[str, object]: ...

    def to_function_approval_response(self, approved: bool) -> object: ...  # noqa: FBT001 - the framework's signature


class _Message(Protocol):
    author_name: str | None
    contents: Sequence[_Content]
    text: str


class _Response(Protocol):
    messages: Sequence[_Message]
    user_input_requests: Sequence[_Content]
    usage_details: Mapping[str, int | None] | None


class _Agent(Protocol):
    name: str | None

    def create_session(self) -> object: ...

    def run(self, messages: Sequence[object], *, session: object) -> Awaitable[_Response]: ...


class _Workflow(Protocol):
    def as_agent(self) -> _Agent: ...


class _Request(Protocol):
    def create_response(self, response: str) -> object: ...


def _open(agent: object, case: Case) -> _Conversation:
    asked = cast("_Agent", agent)
    return _Conversation(asked, case, session=asked.create_session())


def _open_workflow(agent: object, case: Case) -> _Conversation:
    asked = cast("_Workflow", agent).as_agent() if hasattr(agent, "as_agent") else cast("_Agent", agent)
    # The agents of a workflow remember the conversation; a session would repeat it to them.
    return _Conversation(asked, case, session=None)


class _Conversation(NothingToClose):
    """One session of an agent; the history of the case stands before its first message."""

    def __init__(self, agent: _Agent, case: Case, *, session: object) -> None:
        self._agent = agent
        self._case = case
        self._session = session
        self._message = framework_member(_NAME, "Message", requires=_REQUIRES)
        self._earlier = [self._message(entry["role"], [entry["content"]]) for entry in chat_messages(case)]
        self._asking: Mapping[str, object] | None = None

    async def ask(self, utterance: JsonValue) -> object:
        responses = [await self._agent.run(self._next_messages(plain_text(utterance)), session=self._session)]
        while requests := responses[-1].user_input_requests:
            check_approved([_requested(request) for request in requests], self._case)
            approved = [request.to_function_approval_response(True) for request in requests]
            responses.append(await self._agent.run([self._message("user", approved)], session=self._session))
        messages = [message for response in responses for message in response.messages]
        contents = [content.to_dict() for message in messages for content in message.contents]
        self._asking = next((content for content in contents if content.get("name") == _REQUEST), None)
        question = _requested_data(self._asking) if self._asking else None
        authors = [message.author_name for message in messages if message.author_name]
        return {
            "outcome": next(
                (message.text for message in reversed(messages) if message.text),
                question if isinstance(question, str) else "",
            ),
            "topic": authors[-1] if authors else self._agent.name,
            "actions": _actions(contents),
            "handoffs": [later for earlier, later in pairwise(authors) if earlier != later] or None,
            "tokens": _tokens([response.usage_details or {} for response in responses]),
        }

    def _next_messages(self, text: str) -> list[object]:
        """Return the user's message after the history of the case, or the answer to the question of a workflow."""
        if self._asking is None:
            earlier, self._earlier = self._earlier, []
            return [*earlier, self._message("user", [text])]
        asked = _requested_data(self._asking)
        answer = cast("_Request", asked).create_response(text) if hasattr(asked, "create_response") else text
        content = framework_member(_NAME, "Content", requires=_REQUIRES)
        # Its constructor keeps the value; `from_function_result` would make text of it.
        return [self._message("tool", [content("function_result", call_id=self._asking.get("call_id"), result=answer)])]


def _requested_data(call: Mapping[str, object]) -> object:
    """Return what a workflow asks the user in a call of `request_info`."""
    arguments = call.get("arguments")
    event = arguments.get("request_event") if isinstance(arguments, dict) else None
    return event.get("data") if isinstance(event, dict) else getattr(event, "data", None)


def _requested(request: _Content) -> str:
    """Return the name of the tool that waits for approval, or what else the agent waits for."""
    call: _Content | None = getattr(request, "function_call", None)
    return (call.name if call else None) or request.type


def _actions(contents: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the calls of functions with their results; a call that waited for approval is there once.

    Handoffs and questions of workflows are not actions.
    """
    actions: dict[object, dict[str, object]] = {}
    for content in contents:
        call_id = content.get("call_id")
        if content.get("type") == "function_call" and content.get("name") != _REQUEST:
            actions.setdefault(call_id, {"name": content.get("name"), "input": content.get("arguments")})
        elif content.get("type") == "function_result" and call_id in actions:
            output = tool_output(content.get("result"))
            if error := content.get("exception"):
                actions[call_id]["error"] = str(error)
            elif isinstance(output, dict) and output.keys() == {_HANDOFF}:
                del actions[call_id]
            else:
                actions[call_id]["output"] = output
    return [*actions.values()]


def _tokens(usages: Sequence[Mapping[str, int | None]]) -> dict[str, int] | None:
    names = {"input": "input_token_count", "output": "output_token_count"}
    counts = {key: [usage[name] or 0 for usage in usages if name in usage] for key, name in names.items()}
    return {key: sum(numbers) for key, numbers in counts.items() if numbers} or None


class _McpServer(Protocol):
    """The tools of a server of MCP, which has functions while it is connected."""

    is_connected: bool

    @property
    def functions(self) -> Sequence[object]: ...


async def _parts(agent: object) -> Inventory:
    name = cast("_Agent", agent).name or ""
    return inventory_of([Member(name, await _tools(name, agent))])


async def _parts_of_workflow(agent: object) -> Inventory:
    """Return the tools of a workflow's agents; those that it does not begin with are topics. Handoffs are not tools."""
    workflow: object = getattr(agent, "workflow", agent)
    executors: Mapping[str, object] = getattr(workflow, "executors", {})
    start: object = getattr(workflow, "start_executor_id", "")
    members = []
    for executor_id, executor in sorted(executors.items(), key=lambda item: item[0] != start):
        inner: object = getattr(executor, "agent", None)
        if inner is None and executor_id != start:
            continue
        name = getattr(inner, "name", None) or executor_id
        tools = () if inner is None else await _tools(name, inner)
        own = tuple(tool for tool in tools if not tool.name.startswith(f"{_HANDOFF}_"))
        members.append(Member(name, own, is_reached=executor_id != start, words=(executor_id,)))
    if not members:
        raise no_parts(class_name(type(agent)))
    return inventory_of(members)


async def _tools(name: str, agent: object) -> tuple[Tool, ...]:
    options = getattr(agent, "default_options", None)
    if not isinstance(options, dict):
        raise no_parts(class_name(type(agent)))
    found = [*tools_of(name, options.get("tools") or ())]
    for server in cast("Sequence[_McpServer]", getattr(agent, "mcp_tools", ())):
        if server.is_connected:
            found += tools_of(name, server.functions)
            continue
        async with cast("AbstractAsyncContextManager[object]", server):
            found += tools_of(name, server.functions)
    return tuple(found)


AGENT_FRAMEWORK: Final = AgentKind(
    classes=frozenset({"BaseAgent"}),
    open=_open,
    needs=("run", "create_session", "name"),
    requires=_REQUIRES,
    parts=_parts,
)
# A workflow keeps what its agents said, and cannot run twice at the same time.
AGENT_FRAMEWORK_WORKFLOWS: Final = AgentKind(
    classes=frozenset({"Workflow", "WorkflowAgent"}),
    open=_open_workflow,
    needs=("run",),
    requires=_REQUIRES,
    factory="def make_agent(): return WorkflowBuilder(start_executor=...).build().as_agent()",
    parts=_parts_of_workflow,
)
