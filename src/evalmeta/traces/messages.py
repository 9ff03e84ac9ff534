"""Messages to and from models, in the shapes in which spans have them.

Shapes: the GenAI conventions (`parts`), chat completions (`content`, `tool_calls`), LangChain (`type`, `data`), the
blocks of Bedrock's Converse API (`text`, `toolUse`), and Gemini's contents (`parts` with `text`, `function_call`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.model import json_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalmeta.model.json_value import JsonObject, JsonValue

_ROLES: Final = {"human": "user", "ai": "assistant", "model": "assistant", "AIMessage": "assistant", "function": "tool"}
_RESULT_BLOCKS: Final = frozenset({"text", "json"})
_BRACKETS: Final = ("{", "[")


class Call(NamedTuple):
    """A call of a tool in a message of a model."""

    call_id: str
    name: str
    arguments: JsonValue


class Message(NamedTuple):
    """A message: its text, the calls that it asks for, and the results of calls that it brings."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[tuple[str, JsonValue], ...] = ()


def decoded(value: JsonValue) -> JsonValue:
    """Return the list or object in a JSON text; any other value unchanged, a text that was cut among them."""
    return json_value.decoded(value) if isinstance(value, str) and value.lstrip().startswith(_BRACKETS) else value


def is_cut(value: JsonValue) -> bool:
    """Return whether a text begins as a list or object of JSON and is not valid, as when an exporter cut it."""
    if not isinstance(value, str) or not value.lstrip().startswith(('{"', "[{", '["')):
        return False
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return True
    return False


def messages_of(value: JsonValue, *, role: str = "") -> list[Message]:
    """Return the messages in a value of any of the shapes; `role` is that of messages that name none."""
    value = decoded(value)
    if isinstance(value, dict):
        for key in ("messages", "input", "choices", "contents"):
            if isinstance(inner := value.get(key), list):
                return messages_of(inner, role=role)
        message = _message(value, role)
        return [message] if message else []
    if not isinstance(value, list):
        return [Message(role, value)] if isinstance(value, str) and value and role and not is_cut(value) else []
    if all(isinstance(item, dict) and _is_block(item) for item in value) and value:
        message = _message({"content": value}, role)
        return [message] if message else []
    return [message for item in value for message in messages_of(item, role=role)]


def _message(value: JsonObject, role: str) -> Message | None:
    for key in ("message", "data", "kwargs", "content"):
        if isinstance(inner := value.get(key), dict) and (key != "content" or "role" in inner):
            return _message({"type": value.get("type"), **inner}, role)
    named = value.get("role") or value.get("type")
    name = _ROLES.get(str(named), str(named)) if named else role
    if not name or not value.keys() & {"content", "parts", "tool_calls"}:
        return None
    blocks = [*_blocks(value.get("parts")), *_blocks(value.get("content"))]
    calls = [call for block in (*blocks, *_dicts(value.get("tool_calls"))) if (call := _call(block))]
    results = [result for block in blocks if (result := _result(block))]
    texts = [text for block in blocks if (text := _text(block))]
    if name == "tool" and (call_id := value.get("tool_call_id") or value.get("id")):
        results.append((str(call_id), decoded("".join(texts))))
    return Message(name, "".join(texts), tuple(calls), tuple(results))


def _is_block(item: JsonObject) -> bool:
    return not item.keys() & {"role", "message", "data"} and bool(item.keys() & {"text", "toolUse", "toolResult"})


def _blocks(content: JsonValue) -> Iterator[JsonObject]:
    content = decoded(content) if isinstance(content, str) and '"' in content[:20] else content
    if isinstance(content, str):
        yield {"text": content}
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, dict):
            yield item
        elif isinstance(item, str) and item is not content:
            yield {"text": item}


def _dicts(value: JsonValue) -> Iterable[JsonObject]:
    value = decoded(value)
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _text(block: JsonObject) -> str:
    if block.get("type") in {"reasoning", "thinking"} or block.get("thought"):
        return ""
    text = block.get("text") if "text" in block else block.get("content") if block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _call(block: JsonObject) -> Call | None:
    """Return the call in a part, block or entry of `tool_calls`; None if it is something else."""
    for key in ("toolUse", "function_call", "functionCall", "tool_call"):
        if isinstance(inner := block.get(key), dict):
            return _call({"type": "tool_call", "id": block.get("id"), **inner})
    if isinstance(function := block.get("function"), dict):
        return _call({"type": "tool_call", "id": block.get("id"), **function})
    is_call = block.get("type") in {"tool_call", "tool_use", "function_call", "function"}
    name = block.get("name")
    if not is_call or not isinstance(name, str):
        return None
    call_id = next((block[key] for key in ("call_id", "toolUseId", "id") if block.get(key)), "")
    arguments = next((block[key] for key in ("arguments", "args", "input") if key in block), {})
    return Call(str(call_id), name, decoded(arguments))


def _result(block: JsonObject) -> tuple[str, JsonValue] | None:
    if isinstance(inner := block.get("toolResult"), dict):
        return (str(inner.get("toolUseId", "")), plain_result(inner.get("content")))
    for key in ("function_response", "functionResponse"):
        if isinstance(inner := block.get(key), dict):
            return (str(inner.get("id", "")), inner.get("response"))
    if block.get("type") in {"tool_call_response", "tool_result"}:
        result = next((block[key] for key in ("response", "result", "content") if key in block), None)
        return (str(block.get("id") or block.get("tool_use_id") or ""), decoded(result))
    return None


def plain_result(content: JsonValue) -> JsonValue:
    """Return the value in the blocks of a result: that of the only block, or the texts of all; others unchanged."""
    content = decoded(content)
    blocks = list(_dicts(content))
    if not blocks or any(len(block) != 1 or not block.keys() <= _RESULT_BLOCKS for block in blocks):
        return content
    if len(blocks) == 1:
        return decoded(next(iter(blocks[0].values())))
    return "".join(_text(block) for block in blocks)
