"""What libraries return as an answer: chat completions, responses, messages, events, results of runs, and frames.

An object is recognised by what it has, and nothing is imported that it did not bring. Each shape is read into a mapping
with the keys of `answers.generated_data`. Sources: OpenAI's API reference ("The chat completion object", "The response
object"), LangChain ("Messages"), Google ADK ("Events"), Amazon Bedrock ("Message").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias, cast

from evalmeta.errors import ApprovalNeeded, SubjectError
from evalmeta.model.json_value import JsonValue, is_frame, plain_value, read_json

Answer: TypeAlias = dict[str, object]
_Object: TypeAlias = Mapping[str, object]

READ: Final = (
    "text, a mapping, a list, a number, a dataclass, an object of pydantic, (text, tool calls), a chat completion or a "
    "response of OpenAI, messages of LangChain, events of ADK, or a data frame"
)
"""What can be read as an answer, in words."""

_AGENT: Final = frozenset({"assistant", "ai", "AIMessageChunk", "agent", "model"})
_USER: Final = frozenset({"user", "human"})
_TOOL: Final = frozenset({"tool", "function"})
_ROLES: Final = _AGENT | _USER | _TOOL | {"system", "developer"}
# Parts of a message that only the model reads.
_THOUGHTS: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})
_PAIR: Final = 2


def answer_of(returned: object) -> Answer | None:
    """Return the answer, actions and tokens in what a library returned; None if it is not one of the known shapes."""
    if isinstance(returned, tuple) and len(returned) == _PAIR:
        return _pair(*returned)
    if isinstance(returned, list | tuple):
        items = [_view(item) for item in returned]
        return _of_list([item for item in items if item is not None]) if items and None not in items else None
    view = _view(returned)
    if view is None:
        return None
    return next((shape.read(view) for shape in SHAPES if shape.is_shape_of(view)), None)


class Shape(NamedTuple):
    """A shape of answers: its name, how it is recognised among the members of an object, and how it is read."""

    name: str
    is_shape_of: Callable[[_Object], bool]
    read: Callable[[_Object], Answer]


class _Members(Mapping[str, object]):
    """The attributes of an object as a mapping; they are read when they are needed."""

    def __init__(self, owner: object, names: Iterable[str]) -> None:
        self._owner = owner
        self._names = frozenset(names)

    def __getitem__(self, name: str) -> object:
        if name not in self._names:
            raise KeyError(name)
        return getattr(self._owner, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


# Members of the results of runs. These are not mappings, and their `model_dump` leaves out methods.
_RESULT_MEMBERS: Final = (
    *("final_output", "new_items", "last_agent", "context_wrapper", "output", "new_messages", "usage"),
    *("stop_reason", "message"),
)


def _view(value: object) -> _Object | None:
    """Return the members of a mapping or of an object of a library; None for plain values and other objects."""
    if isinstance(value, Mapping):
        return cast("_Object", value)
    if value is None or isinstance(value, str | bytes | int | float | list | tuple | type) or is_frame(value):
        return None
    if callable(dump := getattr(value, "model_dump", None)):
        return cast("_Object", dump())
    names = [name for name in _RESULT_MEMBERS if hasattr(value, name)]
    return _Members(value, names) if names else None


def _pair(answer: object, calls: object) -> Answer | None:
    """Read `(text, tool calls)`, or a value and tool calls with names; another pair is a list."""
    if isinstance(answer, str) and calls is None:
        return {"outcome": answer, "actions": None}
    actions = [call_of(call) for call in calls] if isinstance(calls, list | tuple) else None
    if actions is None or not (isinstance(answer, str) or (actions and all(map(_is_named, actions)))):
        return None
    return {"outcome": answer, "actions": actions}


def _is_named(action: object) -> bool:
    return isinstance(action, Mapping) and isinstance(action.get("name"), str)


def call_of(call: object) -> object:
    """Return a tool call of a library as an action with name and input; anything else unchanged."""
    view = _view(call)
    if view is None:
        return call
    function = _view(view.get("function"))
    named = view if function is None else function
    key = next((key for key in ("arguments", "args", "tool_kwargs") if key in named), None)
    if key is None and function is None:
        return call
    action: Answer = {"name": named.get("name") or named.get("tool_name")}
    if key is not None:
        action["input"] = named[key]
    return {**action, **{key: view[key] for key in ("output", "error") if view.get(key) is not None}}


def _of_list(items: Sequence[_Object]) -> Answer | None:
    if all(map(_is_event, items)):
        return _of_events(items)
    return _of_messages(items) if all(map(_is_message, items)) else None


# Messages of OpenAI, LangChain and Bedrock


def _is_message(value: _Object) -> bool:
    return "content" in value and (value.get("role") in _ROLES or value.get("type") in _ROLES)


def _role(message: _Object) -> object:
    return message.get("role") or message.get("type")


def _of_messages(messages: Sequence[_Object]) -> Answer:
    """Read what was said after the last message of the user: a list may have the whole conversation."""
    asked = max(
        (place for place, message in enumerate(messages) if _role(message) in _USER and _says(message)), default=-1
    )
    new = messages[asked + 1 :]
    said = [message for message in new if _role(message) in _AGENT]
    if not said:
        raise SubjectError("the agent returned messages without one of its own after the user's; return its answer too")
    calls = [call for message in said for call in _calls(message)]
    tools = [message for message in new if _role(message) in _TOOL]
    results = [result for message in new for result in _blocks(message, "toolResult")]
    outputs = [
        *(
            _ToolOutput(
                tool.get("tool_call_id"), tool.get("name"), tool_output(_text(tool.get("content"))), _failed(tool)
            )
            for tool in tools
        ),
        *(_ToolOutput(result.get("toolUseId"), None, _result(result), _failed(result)) for result in results),
    ]
    is_reported = bool(calls) or any(isinstance(message.get("tool_calls"), list) for message in said)
    return {
        "outcome": next((text for message in reversed(said) if (text := _said(message))), ""),
        "topic": name if isinstance(name := said[-1].get("name"), str) else None,
        "actions": _with_outputs(calls, outputs) if is_reported else None,
        "tokens": _tokens(*(message.get("usage_metadata") or message.get("usage") for message in said)),
    }


def _says(message: _Object) -> bool:
    """Return whether a message of the user is more than results of tools, which Bedrock sends as the user's."""
    return not any(True for _ in _blocks(message, "toolResult"))


def _said(message: _Object) -> str:
    refusal = message.get("refusal")
    return _text(message.get("content")) or (refusal if isinstance(refusal, str) else "")


def _text(content: object) -> str:
    """Return the text of a message's content: a text, or a list of parts without the model's thoughts."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content if isinstance(content, list | tuple) else [content]:
        view = _view(part)
        if isinstance(part, str):
            texts.append(part)
        elif view is not None and view.get("type") not in _THOUGHTS and not view.get("thought"):
            texts += [text for key in ("text", "refusal") if isinstance(text := view.get(key), str)]
    return "".join(texts)


def _calls(message: _Object) -> list[_Object]:
    calls = [view for call in cast("Iterable[object]", message.get("tool_calls") or ()) if (view := _view(call))]
    if function := _view(message.get("function_call")):
        calls.append(function)
    if calls:
        return calls
    uses = [*_blocks(message, "toolUse"), *(part for part in _parts(message) if part.get("type") == "tool_use")]
    return [
        {"id": use.get("toolUseId") or use.get("id"), "name": use.get("name"), "args": use.get("input")} for use in uses
    ]


def _parts(message: _Object) -> Iterator[_Object]:
    content = message.get("content")
    for part in content if isinstance(content, list | tuple) else ():
        if (view := _view(part)) is not None:
            yield view


def _blocks(message: _Object, kind: str) -> Iterator[_Object]:
    """Yield the blocks of one kind of a message of Bedrock."""
    return (view for part in _parts(message) if (view := _view(part.get(kind))) is not None)


def tool_output(value: object) -> JsonValue:
    """Return the output of a tool: an object or a list if it is a JSON text, and what JSON cannot hold as text."""
    if not isinstance(value, str):
        return plain_value(value)
    with suppress(ValueError):
        return read_json(value) if value.startswith(("{", "[")) else value
    return value


def _result(result: _Object) -> object:
    content = result.get("content")
    parts = [view for part in content if (view := _view(part))] if isinstance(content, list | tuple) else []
    return next((part["json"] for part in parts if "json" in part), tool_output(_text(content)))


def _failed(result: _Object) -> bool:
    """Return whether the tool of a message of LangChain or of a result of Bedrock failed."""
    return result.get("status") == "error"


class _ToolOutput(NamedTuple):
    """What a tool returned: the id of its call and the name of the tool, None if they are missing."""

    call_id: object
    name: object
    output: object
    is_error: bool = False


def _with_outputs(calls: Iterable[_Object], outputs: Sequence[_ToolOutput]) -> list[object]:
    """Return calls as actions with their outputs or errors, by id; calls without ids get those without, in order."""
    by_id = {str(known.call_id): known for known in outputs if known.call_id}
    waiting = [known for known in outputs if not known.call_id]
    actions = []
    for call in calls:
        action, call_id = call_of(call), call.get("id") or call.get("call_id")
        known = by_id.get(str(call_id)) if call_id else _next_output(action, waiting)
        if known is None or known.output is None or not isinstance(action, dict):
            actions.append(action)
        elif known.is_error:
            actions.append({**action, "error": known.output if isinstance(known.output, str) else f"{known.output}"})
        else:
            actions.append({**action, "output": known.output})
    return actions


def _next_output(action: object, waiting: list[_ToolOutput]) -> _ToolOutput | None:
    """Take and return the first output that may be an action's: its tool has the action's name, or none is known."""
    name = action.get("name") if isinstance(action, dict) else None
    for place, known in enumerate(waiting):
        if not known.name or known.name == name:
            return waiting.pop(place)
    return None


def _tokens(*usages: object) -> Answer | None:
    """Return the sums of what each usage reports; None if none reports tokens."""
    views = [view for usage in usages if (view := _view(usage)) is not None]
    counts: Answer = {}
    for key, names in _TOKENS.items():
        numbers = [number for view in views for name in names if isinstance(number := view.get(name), int)]
        if numbers:
            counts[key] = sum(numbers)
    return counts or None


_TOKENS: Final = {
    "input": ("input_tokens", "prompt_tokens", "prompt_token_count", "inputTokens"),
    "output": (
        *("output_tokens", "completion_tokens", "candidates_token_count", "thoughts_token_count", "outputTokens"),
    ),
    "cached": ("cached_content_token_count",),
}


# OpenAI


def _is_completion(value: _Object) -> bool:
    choices = value.get("choices")
    return isinstance(choices, list | tuple) and bool(choices) and bool((_view(choices[0]) or {}).get("message"))


def _of_completion(completion: _Object) -> Answer:
    message = _view((_view(cast("Sequence[object]", completion["choices"])[0]) or {}).get("message")) or {}
    return {**_of_messages([{"role": "assistant", **message}]), "tokens": _reply_tokens(completion)}


def _is_response(value: _Object) -> bool:
    items = value.get("output")
    kinds = [(_view(item) or {}).get("type") for item in items] if isinstance(items, list | tuple) else []
    are_texts = all(isinstance(kind, str) for kind in kinds)
    return are_texts and any(kind == "message" or str(kind).endswith("_call") for kind in kinds)


def _of_response(response: _Object) -> Answer:
    if response.get("status") in {"failed", "incomplete", "cancelled"}:
        why = response.get("error") or response.get("incomplete_details") or "no reason is given"
        raise SubjectError(f"the response of the agent has the status {response['status']}: {why!s:.500}")
    items = [view for item in cast("Sequence[object]", response["output"]) if (view := _view(item))]
    done = [item for item in items if str(item["type"]).endswith("_output")]
    outputs = [_ToolOutput(item.get("call_id"), None, tool_output(_text(item.get("output")))) for item in done]
    calls = [item for item in items if str(item["type"]).endswith("_call")]
    return {
        "outcome": "".join(_text(item.get("content")) for item in items if item["type"] == "message"),
        "actions": _with_outputs(map(_response_call, calls), outputs),
        "tokens": _reply_tokens(response),
    }


def _reply_tokens(reply: _Object) -> Answer | None:
    """Return the tokens of a completion or a response, with the model and how many of them were cached."""
    usage = _view(reply.get("usage"))
    counts = _tokens(usage)
    if usage is None or counts is None:
        return None
    details = _view(usage.get("prompt_tokens_details")) or _view(usage.get("input_tokens_details")) or {}
    cached, model = details.get("cached_tokens"), reply.get("model")
    return {
        **counts,
        "cached": cached if isinstance(cached, int) else None,
        "model": model if isinstance(model, str) else None,
    }


def _response_call(item: _Object) -> _Object:
    """Return a call of a response; a tool of OpenAI's own has no name, and is called by its type."""
    arguments = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), None)
    called: Answer = {"name": item.get("name") or item["type"], "args": arguments, "output": item.get("output")}
    if isinstance(error := item.get("error"), str):
        called["error"] = error
    return {**called, "id": item.get("call_id")}


# Google ADK


def _is_event(value: _Object) -> bool:
    return "author" in value and "content" in value and ("invocation_id" in value or "actions" in value)


# The call with which ADK asks a person whether a tool may run.
_CONFIRMATION: Final = "adk_request_confirmation"


def _of_events(events: Sequence[_Object]) -> Answer:
    """Read the events of one turn; parts of a streamed message, which follows as a whole, do not count."""
    whole = [event for event in events if not event.get("partial") and str(event.get("author")).lower() != "user"]
    # As in ADK, an event without text does not replace an answer that has some.
    final = next((event for event in reversed(whole) if _is_final(event) and _event_text(event)), None)
    error = next((event for event in reversed(whole) if event.get("error_code")), None)
    if error and final is None:
        what = f"{error['error_code']}: {error.get('error_message') or 'no text'}"
        raise SubjectError(f"the agent's event is an error: {what}")
    calls = _event_members(whole, "function_call")
    if waiting := next((call for call in calls if call.get("name") == _CONFIRMATION), None):
        asked = (_view(waiting.get("args")) or {}).get("originalFunctionCall")
        name = asked.get("name") if isinstance(asked, Mapping) else "a tool"
        raise ApprovalNeeded(f"the agent waits for a person to confirm the call of {name}")
    outputs = [
        _ToolOutput(response.get("id"), response.get("name"), tool_output(response.get("response")))
        for response in _event_members(whole, "function_response")
    ]
    answered = final or (whole[-1] if whole else {})
    return {
        "outcome": _event_text(final) if final else "",
        "topic": answered.get("author"),
        "actions": [_with_error(action) for action in _with_outputs(calls, outputs)],
        "handoffs": [name for event in whole if (name := (_view(event.get("actions")) or {}).get("transfer_to_agent"))],
        "tokens": _tokens(*(event.get("usage_metadata") for event in whole)),
    }


def _is_final(event: _Object) -> bool:
    """Return what `Event.is_final_response` of ADK returns: whether the event is an answer and not a step."""
    if (_view(event.get("actions")) or {}).get("skip_summarization") or event.get("long_running_tool_ids"):
        return True
    parts = [*_event_parts(event)]
    steps = any(part.get(key) for part in parts for key in ("function_call", "function_response"))
    return not (steps or (parts and parts[-1].get("code_execution_result")))


def _with_error(action: object) -> object:
    """Return an action with the error that its tool reports as `error` of its output."""
    output = action.get("output") if isinstance(action, Mapping) else None
    error = output.get("error") if isinstance(output, Mapping) else None
    return {**action, "error": error} if isinstance(action, Mapping) and error and isinstance(error, str) else action


def _event_text(event: _Object) -> str:
    """Return the lines of an event's parts that are texts and not thoughts."""
    return "\n".join(text for part in _event_parts(event) if (text := _text([part])))


def _event_members(events: Iterable[_Object], key: str) -> list[_Object]:
    parts = (part for event in events for part in _event_parts(event))
    return [member for part in parts if (member := _view(part.get(key))) is not None]


def _event_parts(event: _Object) -> Iterator[_Object]:
    parts = (_view(event.get("content")) or {}).get("parts")
    for part in parts if isinstance(parts, list | tuple) else ():
        if (view := _view(part)) is not None:
            yield view


# Results of runs


def _of_state(state: _Object) -> Answer:
    """Read the state of a graph of LangGraph, or an answer of MLflow's ChatAgent: it has all messages."""
    if interrupts := state.get("__interrupt__"):
        raise ApprovalNeeded(f"the agent waits for a person, so it has no answer: {interrupts!s:.300}")
    views = [view for message in cast("Sequence[object]", state["messages"]) if (view := _view(message))]
    return _of_messages(views)


def _has_messages(value: _Object) -> bool:
    messages = value.get("messages")
    if not isinstance(messages, list | tuple) or not messages:
        return False
    return all(_is_message(_view(message) or {}) for message in messages)


# What models read by default when a function of openai-agents raised an exception.
_FAILED_TOOL: Final = "An error occurred while running the tool"


def _of_openai_run(result: _Object) -> Answer:
    items = [
        (item, _view(getattr(item, "raw_item", None)) or {}) for item in cast("Iterable[object]", result["new_items"])
    ]
    returned = [
        (raw.get("call_id"), getattr(item, "output", None))
        for item, raw in items
        if getattr(item, "type", "") == "tool_call_output_item"
    ]
    outputs = [_ToolOutput(call_id, None, output, str(output).startswith(_FAILED_TOOL)) for call_id, output in returned]
    calls = [
        _response_call({"type": "tool", **raw}) for item, raw in items if getattr(item, "type", "") == "tool_call_item"
    ]
    usage = getattr(result.get("context_wrapper"), "usage", None)
    return {
        "outcome": result["final_output"],
        "topic": getattr(result.get("last_agent"), "name", None),
        "actions": _with_outputs(calls, outputs),
        "tokens": _tokens(_usage_members(usage)),
    }


# The tool with which models of pydantic-ai return a structured answer.
_OUTPUT_TOOL: Final = "final_result"


def _of_pydantic_run(result: _Object) -> Answer:
    messages = cast("Callable[[], Iterable[object]]", result["new_messages"])()
    parts = [part for message in messages for part in getattr(message, "parts", ())]
    calls = [part for part in parts if getattr(part, "part_kind", "") == "tool-call" and part.tool_name != _OUTPUT_TOOL]
    answers = [part for part in parts if getattr(part, "part_kind", "") == "tool-return"]
    answers += [part for part in parts if getattr(part, "part_kind", "") == "retry-prompt" and part.tool_name]
    outputs = [
        # Parts of older versions are results of tools that succeeded, or prompts to try again.
        _ToolOutput(
            part.tool_call_id,
            part.tool_name,
            part.content,
            getattr(part, "outcome", "failed" if part.part_kind == "retry-prompt" else "success") != "success",
        )
        for part in answers
    ]
    views: list[_Object] = [{"id": part.tool_call_id, "name": part.tool_name, "args": part.args} for part in calls]
    return {
        "outcome": result["output"],
        "actions": _with_outputs(views, outputs),
        "tokens": _tokens(_usage_members(result.get("usage"))),
    }


def _usage_members(usage: object) -> Answer:
    return {name: getattr(usage, name) for names in _TOKENS.values() for name in names if hasattr(usage, name)}


def _last(answer: Answer) -> Answer:
    """Return the answer of a single message: without calls of its own, earlier messages may have some."""
    return {**answer, "actions": answer["actions"] or None}


SHAPES: Final = (
    Shape("a chat completion", _is_completion, _of_completion),
    Shape("a response", _is_response, _of_response),
    Shape("a state with messages", _has_messages, _of_state),
    Shape("an event", _is_event, lambda event: _last(_of_events([event]))),
    Shape("a message", _is_message, lambda message: _last(_of_messages([message]))),
    Shape("a run of openai-agents", lambda view: {"final_output", "new_items"} <= view.keys(), _of_openai_run),
    Shape("a run of pydantic-ai", lambda view: {"output", "new_messages"} <= view.keys(), _of_pydantic_run),
    Shape(
        "a result of strands",
        lambda view: {"stop_reason", "message"} <= view.keys(),
        lambda view: _last(_of_messages([_view(view["message"]) or {}])),
    ),
)
"""The shapes of objects and mappings; the first that recognises one reads it."""
