"""JSON values: their type and their depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from evalmeta import limits

JsonValue: TypeAlias = "Mapping[str, JsonValue] | Sequence[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]


def is_too_deep(value: JsonValue) -> bool:
    """Return whether a value read from JSON has more levels of lists and objects than `limits.MAX_JSON_DEPTH`.

    Recursive functions, such as `repr`, a comparison or a JSON writer, fail on such values.
    """
    level = _containers([value])
    for _ in range(limits.MAX_JSON_DEPTH):
        if not level:
            return False
        level = _containers(inner for each in level for inner in (each.values() if isinstance(each, dict) else each))
    return bool(level)


def _containers(values: Iterable[JsonValue]) -> list[dict[str, JsonValue] | list[JsonValue]]:
    return [each for each in values if isinstance(each, dict | list)]
