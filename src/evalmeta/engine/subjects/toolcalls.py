"""What language models call tools with: JSON, often written as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["arguments_of"]


def arguments_of(value: JsonValue) -> JsonValue:
    """Gives a call's arguments: an object that came as text is read, other text is kept as `{"arguments": text}`."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return {}
    try:
        read: JsonValue = orjson.loads(value)
    except ValueError:
        return {"arguments": value}
    return read if isinstance(read, dict) else {"arguments": value}
