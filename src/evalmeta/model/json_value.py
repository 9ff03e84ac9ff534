"""JSON values: their type, how they are read, and their depth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import orjson

from evalmeta import limits

JsonValue: TypeAlias = "Mapping[str, JsonValue] | Sequence[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]

# What may be an integer of more than 64 bits.
_LONG: Final = re.compile(rb"\d{19}")
_MAX_DIGITS: Final = 20
_INTEGERS: Final = range(-(2**63), 2**64)


def read_json(source: bytes | str) -> JsonValue:
    """Read a JSON value; integers of more than 64 bits become texts of their digits.

    orjson reads such an integer as the nearest float, so that different ids would be equal, and does not write it.
    Raise orjson.JSONDecodeError if the source is not valid JSON.
    """
    value: JsonValue = orjson.loads(source)
    data = source.encode() if isinstance(source, str) else source
    if _LONG.search(data) and not is_too_deep(value):
        value = json.loads(data, parse_int=_integer)
    return value


def _integer(digits: str) -> int | str:
    if len(digits) <= _MAX_DIGITS and (number := int(digits)) in _INTEGERS:
        return number
    return digits


def is_too_deep(value: JsonValue) -> bool:
    """Return whether a value read from JSON has more levels of lists and objects than `limits.MAX_JSON_DEPTH`.

    Recursive functions, such as `repr`, a comparison or a JSON writer, fail on such values.
    """
    level = _containers([value])
    for _ in range(limits.MAX_JSON_DEPTH):
        if not level:
            return False
        level = _containers(
            inner for container in level for inner in (container.values() if isinstance(container, dict) else container)
        )
    return bool(level)


def _containers(values: Iterable[JsonValue]) -> list[dict[str, JsonValue] | list[JsonValue]]:
    return [value for value in values if isinstance(value, dict | list)]
