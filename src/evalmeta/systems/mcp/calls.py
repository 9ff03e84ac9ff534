"""Calls of tools: how cases name them, whether a server's tools allow them, and what their results are as answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.engine.answers import generated_data, plain_text
from evalmeta.engine.json_rpc import error_in_words, result_of
from evalmeta.errors import SubjectError, did_you_mean
from evalmeta.model.json_schema import SchemaFault, fault_of
from evalmeta.model.json_value import JsonObject, JsonValue, read_json
from evalmeta.protocol.json_fields import list_of_objects, object_at, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.evaluation import Turn
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.systems.mcp.connection import Tool

_TOOL: Final = "tool"
_ARGUMENTS: Final = "arguments"
CALL: Final = "input: {tool: get_order, arguments: {id: 7}}"
"""How a case calls a tool."""
# Older servers refuse arguments so, newer ones with an error of the tool.
_INVALID_PARAMS: Final = -32602
_WRAPPER: Final = "result"
_EXAMPLES: Final[Mapping[str, JsonValue]] = {
    "string": "text", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None,
}  # fmt: skip


class Call(NamedTuple):
    """A call of a tool."""

    tool: str
    arguments: JsonObject


def call_of(inputs: JsonValue) -> Call:
    """Return the call that an input is: a mapping, or its JSON text; raise SubjectError if it is not one."""
    if isinstance(inputs, str):
        inputs = _parsed(inputs)
    if not isinstance(inputs, dict) or not isinstance(tool := inputs.get(_TOOL), str) or not tool:
        raise SubjectError(f"the input of the case does not name the tool to call; write it like {CALL}")
    if unknown := sorted(inputs.keys() - {_TOOL, _ARGUMENTS}):
        raise SubjectError(f"the input of the case has the unknown key {unknown[0]!r}; write it like {CALL}")
    arguments = inputs.get(_ARGUMENTS)
    if not isinstance(arguments, dict | None):
        raise SubjectError(f"the arguments of {tool} are not a mapping; write the input like {CALL}")
    return Call(tool, arguments or {})


def call_of_turn(turn: Turn) -> Call:
    """Return the call that a turn of a case is; raise SubjectError if it is not one."""
    return call_of(turn.utterance if turn.inputs is None else turn.inputs)


def check_call(call: Call, tools: Mapping[str, Tool]) -> None:
    """Raise SubjectError if the server does not have the tool, or its JSON Schema refuses the arguments."""
    if call.tool not in tools:
        hint = did_you_mean(call.tool, tools) if tools else "It has none."
        raise SubjectError(f"the server of MCP has no tool {call.tool!r}. {hint}")
    try:
        fault = fault_of(tools[call.tool].schema, call.arguments, path=_ARGUMENTS)
    except SchemaFault:
        # The server checks the arguments, too.
        return
    if fault:
        raise SubjectError(
            f"the arguments of {call.tool} do not fit its JSON Schema: {fault}; to call it with them all the same, "
            "set check_calls = false in evalmeta.toml"
        )


def read_result(call: Call, reply: JsonValue, *, latency_ms: float) -> GeneratedData:
    """Return the result of a call as an answer, whose only action is the call; raise SubjectError if it is neither.

    The answer is the structured content, or a line for each other content; JSON alone is structured, too. An error of
    the tool is an answer.
    """
    refusal = object_at(reply, "error") if isinstance(reply, dict) else {}
    if refusal.get("code") == _INVALID_PARAMS:
        return _answer(call, text(refusal, "message") or error_in_words(refusal), latency_ms, is_error=True)
    result = result_of(reply)
    structured = result.get("structuredContent")
    if structured is None and not isinstance(result.get("content"), list):
        raise SubjectError(f"the result of {call.tool} has no content")
    contents = list_of_objects(result, "content")
    texts = "\n".join(map(_line, contents))
    if result.get("isError") is True:
        return _answer(call, texts or "without a message", latency_ms, is_error=True)
    if structured is None:
        # Servers without structured content write the JSON of a value as text.
        parsed = _parsed(texts) if len(contents) == 1 else None
        return _answer(call, parsed if isinstance(parsed, dict | list) else texts, latency_ms, is_error=False)
    return _answer(call, _unwrapped(structured, texts), latency_ms, is_error=False)


def _answer(call: Call, value: JsonValue, latency_ms: float, *, is_error: bool) -> GeneratedData:
    ending = {"error": plain_text(value)} if is_error else {"output": value}
    action = {"name": call.tool, "input": call.arguments, "latency_ms": latency_ms, **ending}
    return generated_data({"outcome": value, "actions": [action]})


def _unwrapped(structured: JsonValue, texts: str) -> JsonValue:
    """Return the value that a server has put into `{"result": value}` because results must be objects.

    The text of such a result is that of the value, and not of the object.
    """
    if not isinstance(structured, dict) or structured.keys() != {_WRAPPER}:
        return structured
    value = structured[_WRAPPER]
    return structured if value is None or _parsed(texts) == structured else value


def _parsed(texts: str) -> JsonValue:
    try:
        return read_json(texts)
    except orjson.JSONDecodeError:
        return None


def _line(content: JsonObject) -> str:
    """Return the text of a content, or what it is."""
    kind = text(content, "type")
    resource = object_at(content, "resource")
    if kind == "text" or "text" in resource:
        return text(content, "text") or text(resource, "text")
    name = text(content, "uri") or text(resource, "uri")
    return name or f"{kind or 'content'} ({text(content, 'mimeType') or 'of an unknown type'})"


def tools_in_words(tools: Mapping[str, Tool]) -> str:
    """Return how many tools a server has, and their names."""
    names = ", ".join(tools)
    return f"{len(tools)} tool{'' if len(tools) == 1 else 's'}{f': {names}' if names else ''}"


def example_of(tool: Tool) -> JsonObject:
    """Return the input of a case that calls a tool with an example of each argument that it requires."""
    required = tool.schema.get("required")
    properties = object_at(tool.schema, "properties")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    arguments: JsonObject = {name: _example(object_at(properties, name)) for name in names}
    return {_TOOL: tool.name, **({_ARGUMENTS: arguments} if arguments else {})}


def _example(schema: JsonObject) -> JsonValue:
    for key in ("examples", "enum"):
        values = schema.get(key)
        if isinstance(values, list) and values:
            first: JsonValue = values[0]
            return first
    if "default" in schema:
        return schema["default"]
    return _EXAMPLES.get(text(schema, "type"), "text")
