"""Fields of JSON objects that come from elsewhere: the type that is asked for, or a default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from evalmeta.errors import MessageUnreadable

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonObject, JsonValue

__all__ = [
    "integer",
    "list_of_objects",
    "number",
    "object_at",
    "optional_integer",
    "optional_number",
    "optional_text",
    "read_object",
    "text",
    "texts",
    "value_at",
]


def read_object(data: bytes) -> JsonObject:
    """Reads a JSON object.

    Raises:
        MessageUnreadable: the bytes are no JSON, or no object.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise MessageUnreadable("it is no JSON") from None
    if not isinstance(value, dict):
        raise MessageUnreadable(f"a JSON object is due, not {type(value).__name__}")
    return value


def value_at(source: JsonObject, key: str) -> JsonValue:
    """Gives whatever stands at a key, None for nothing."""
    return source.get(key)


def text(source: JsonObject, key: str) -> str:
    """Gives text; numbers become text, anything else is empty."""
    value = source.get(key)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def optional_text(source: JsonObject, key: str) -> str | None:
    """Gives text, None when there is none."""
    value = source.get(key)
    return value if isinstance(value, str) else None


def integer(source: JsonObject, key: str, default: int) -> int:
    """Gives a whole number."""
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def number(source: JsonObject, key: str, default: float) -> float:
    """Gives a number."""
    value = source.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def optional_number(source: JsonObject, key: str) -> float | None:
    """Gives a number, None when there is none."""
    value = source.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def optional_integer(source: JsonObject, key: str) -> int | None:
    """Gives a whole number, None when there is none."""
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_at(source: JsonObject, key: str) -> JsonObject:
    """Gives an object, empty when there is none."""
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def texts(source: JsonObject, key: str) -> list[str]:
    """Gives the texts of a list."""
    value = source.get(key)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def list_of_objects(source: JsonObject, key: str) -> list[JsonObject]:
    """Gives the objects of a list."""
    value = source.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
