"""The texts in requests and answers of models and agents: chat completions, messages, Responses API, or anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.model.json_value import is_too_deep, read_json

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


_TEXT_KEYS: Final = ("response", "content", "output", "answer", "text", "result", "output_text")


def decoded(value: JsonValue) -> JsonValue:
    """Return the value in a JSON text; any other text or value is returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        inner = read_json(value)
    except orjson.JSONDecodeError:
        return value
    return value if is_too_deep(inner) else inner


def broken_json(text: str) -> str | None:
    """Describe the error in a text that begins like a list or object of JSON; None for any other text."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f"{error.msg} at character {error.pos + 1}"
    return None


def response_text(value: JsonValue) -> str:
    """Return an answer's text; JSON for a value of an unknown shape, and an empty text for None."""
    if value is None:
        return ""
    text = known_text(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def known_text(value: JsonValue) -> str | None:
    """Return the text of a text, a chat completion, messages or the Responses API; None for anything else.

    A list of messages has the text of the last one, any other list that of the first, as in MLflow.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _last_text(value) if all(isinstance(item, dict) for item in value) else known_text(value[0])
    return _object_text(value) if isinstance(value, dict) else None


def _object_text(value: JsonObject) -> str | None:
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return known_text(choices[0].get("message"))
    for key in ("messages", "output"):
        if isinstance(value.get(key), list):
            return _last_text(value[key])
    for key in _TEXT_KEYS:
        if (text := content_text(value.get(key))) is not None:
            return text
    return None


def _last_text(values: JsonValue) -> str | None:
    """Return the text of the last message that has one; arguments of tool calls do not count."""
    if not isinstance(values, list):
        return None
    texts = (known_text(value) for value in reversed(values))
    return next((text for text in texts if text is not None), None)


def content_text(content: JsonValue) -> str | None:
    """Return a message's content: a text, or the joined texts of a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    said = [text for text in texts if isinstance(text, str)]
    return "".join(said) if said else None
