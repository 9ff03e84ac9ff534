"""JSON of any values as text that every reader takes and no terminal acts on."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from evalmeta.report.plain import escape_unsafe

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["json_text"]


def json_text(value: JsonValue, *, indent: int | None = None) -> str:
    """Writes a value as JSON; numbers that JSON does not know (NaN, infinity) become null, never 0.

    Lone surrogates, control characters and what turns the direction of writing stand as
    `\\u009b`, so that every reader gets them back.
    """
    return escape_unsafe(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent))


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
