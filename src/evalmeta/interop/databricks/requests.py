"""What an agent is asked in an evaluation set: a text, a conversation, or a query with its history.

A conversation becomes its last message, which must be the user's, and the history before it. Roles keep
their meaning: `assistant` is an agent's, `developer` a system's; system and tool messages stay in the history
in their place. What else a request has, such as `custom_inputs`, is state that the session begins with.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta.interop.databricks.texts import broken_json, content_text, decoded
from evalmeta.interop.findings import did_you_mean
from evalmeta.interop.jsonrecords import json_kind
from evalmeta.model.definition import HistoryMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.model.jsonvalue import JsonObject, JsonValue

    Path: TypeAlias = tuple[str | int, ...]
    Refuse: TypeAlias = Callable[[str, Path, str], None]

__all__ = ["Asked", "is_plain", "is_request", "read_inputs", "read_request"]

_ROLES: Final = {
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "agent": "agent",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_CONVERSATIONS: Final = ("messages", "input")
_BEGUN: Final = re.compile(r'\s*\{\s*"(?:messages|input|query)"\s*:')
_QUERIES: Final = ("query", "question", "request", "input", "prompt", "message", "text")


class Asked(NamedTuple):
    """One question, and what came before it."""

    utterance: str
    history: tuple[HistoryMessage, ...]
    state: JsonObject


def read_request(value: JsonValue, refuse: Refuse) -> Asked:
    """Reads a request: a text, `{"messages": [...]}`, `{"query": ..., "history": [...]}`, or the JSON text of one.

    Args:
        value: the request.
        refuse: takes what is wrong: a message, keys and indexes that lead to the value, a hint.
    """
    if isinstance(value, str):
        if not is_request(value):
            if _BEGUN.match(value):
                refuse(f"the request is broken JSON: {broken_json(value)}", (), "")
            return _said(value, refuse)
        value = decoded(value)
    if not isinstance(value, dict):
        refuse(f"the request is {json_kind(value)}, not a text or an object", (), "")
        return Asked("", (), {})
    asked = _conversation(value, refuse) or _query(value, ("query",), refuse)
    if asked is None and value.get("query") is not None:
        refuse(f"'query' is {json_kind(value['query'])}, not a text", ("query",), "")
    elif asked is None:
        refuse(
            "the request has neither 'messages' nor 'query'",
            (),
            'Write {"messages": [{"role": "user", "content": "..."}]}, or the question as a text.',
        )
    return asked or Asked("", (), {})


def is_request(text: str) -> bool:
    """Says whether a text is the JSON text of a request, and not what is asked itself."""
    value = decoded(text)
    return isinstance(value, dict) and not {"query", *_CONVERSATIONS}.isdisjoint(value)


def is_plain(text: str) -> bool:
    """Says whether a text is what is asked itself: no request, and nothing that begins as one."""
    return not is_request(text) and not _BEGUN.match(text)


def read_inputs(value: JsonValue, refuse: Refuse) -> Asked:
    """Reads the inputs of an agent (MLflow 3), in which the question may have any name.

    It is a conversation, the value of a known name such as `question`, the only text that there is, or else all
    inputs as JSON; the state has the others. Takes the same as `read_request`.
    """
    value = decoded(value)
    if isinstance(value, str):
        return _said(value, refuse)
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        refuse(f"the inputs are {json_kind(value)}, not an object", (), "")
        return Asked("", (), {})
    inner = next(iter(value.values()), None)
    if len(value) == 1 and isinstance(inner, dict):
        return read_inputs(inner, refuse)
    texts = [key for key, each in value.items() if isinstance(each, str)]
    asked = _conversation(value, refuse) or _query(value, (*_QUERIES, *(texts if len(texts) == 1 else ())), refuse)
    return asked or Asked(json.dumps(value, ensure_ascii=False), (), value)


def _said(text: str, refuse: Refuse) -> Asked:
    if not text.strip():
        refuse("the request is empty", (), "")
    return Asked(text, (), {})


def _conversation(value: JsonObject, refuse: Refuse) -> Asked | None:
    """Reads a whole conversation; None when there is none."""
    key = next((each for each in _CONVERSATIONS if isinstance(value.get(each), list)), None)
    if key is None:
        if value.get("messages") is not None:
            refuse(f"'messages' are {json_kind(value['messages'])}, not a list", ("messages",), "")
            return Asked("", (), {})
        return None
    messages = _messages(value[key], (key,), refuse)
    if messages is None:
        return Asked("", (), {})
    last = messages[-1] if messages else None
    if last is None or last.role != "user":
        says = "are none" if last is None else f"end with one of role {last.role!r}"
        refuse(f"the messages {says}, and an agent is asked what a user says last", (key,), "")
        return Asked("", (), {})
    return Asked(_said(last.message or "", refuse).utterance, tuple(messages[:-1]), _without(value, key))


def _query(value: JsonObject, names: Sequence[str], refuse: Refuse) -> Asked | None:
    key = next((each for each in names if isinstance(value.get(each), str)), None)
    text = value[key] if key else None
    if key is None or not isinstance(text, str):
        return None
    history = _messages(value.get("history"), ("history",), refuse)
    return Asked(_said(text, refuse).utterance, tuple(history or ()), _without(value, key, "history"))


def _messages(values: JsonValue, path: Path, refuse: Refuse) -> list[HistoryMessage] | None:
    """Reads messages, numbered from 0; None when one is none. Those that only call tools are left out."""
    if values is None:
        return []
    if not isinstance(values, list):
        refuse(f"{path[-1]!r} is {json_kind(values)}, not a list of messages", path, "")
        return None
    said = [_message(each, (*path, place), refuse) for place, each in enumerate(values)]
    if None in said:
        return None
    texts = [each for each in said if each and each[1] is not None]
    return [HistoryMessage(role, text, index=place) for place, (role, text) in enumerate(texts)]


def _message(value: JsonValue, path: Path, refuse: Refuse) -> tuple[str, str | None] | None:
    """Reads a message's role and text; None when it is none."""
    if not isinstance(value, dict):
        refuse(f"a message is {json_kind(value)}, not an object", path, "")
        return None
    role, content = value.get("role"), value.get("content")
    known = _ROLES.get(role) if isinstance(role, str) else None
    if known is None:
        what = "has no 'role'" if role is None else f"has the role {json.dumps(role)[:50]}, which is none"
        refuse(f"a message {what}", (*path, "role"), did_you_mean(str(role), _ROLES))
        return None
    if content is None and known == "agent" and value.get("tool_calls"):
        return known, None
    text = content_text(content)
    if text is None:
        refuse(f"the content of a message is {json_kind(content)}, not a text", (*path, "content"), "")
        return None
    return known, text


def _without(value: JsonObject, *keys: str) -> JsonObject:
    return {key: each for key, each in value.items() if key not in keys and each is not None}
