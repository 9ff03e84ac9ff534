"""JSON values: their type, how they are read, their depth, and objects of Python and of libraries as JSON."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Final, Protocol, TypeAlias, cast
from uuid import UUID

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


def decoded(value: JsonValue) -> JsonValue:
    """Return the value in a JSON text; any other text or value is returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        inner = read_json(value)
    except orjson.JSONDecodeError:
        return value
    return value if is_too_deep(inner) else inner


def json_text(value: JsonValue) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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


def plain_json(value: object) -> object:
    """Return what JSON can hold of an object, one level deep: the `default` of `json.dumps`; raise TypeError."""
    for recognises, convert in _CONVERSIONS:
        if recognises(value):
            return convert(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def plain_value(value: object) -> JsonValue:
    """Return a value as JSON; NaN becomes None, and anything else that JSON cannot hold its text."""
    try:
        text = json.dumps(value, default=_plain)
        if "NaN" in text or "Infinity" in text:
            text = json.dumps(json.loads(text, parse_constant=lambda _: None))
        return read_json(text)
    except (TypeError, ValueError, RecursionError):
        # It contains itself, or has keys that JSON does not know.
        return str(value)


def _plain(value: object) -> object:
    try:
        return plain_json(value)
    except TypeError:
        return str(value)


def is_frame(value: object) -> bool:
    """Return whether this is a data frame: a table of columns whose rows `frame_rows` returns."""
    has_rows = any(callable(getattr(value, name, None)) for name in ("to_dict", "to_dicts", "to_pandas", "toPandas"))
    return has_rows and hasattr(value, "columns") and not isinstance(value, type | Mapping)


class _PandasFrame(Protocol):
    def to_dict(self, orient: str) -> list[dict[str, object]]: ...


def frame_rows(frame: object) -> list[dict[str, object]]:
    """Return the rows of a data frame of pandas, polars or Spark; missing values are None."""
    if callable(to_pandas := getattr(frame, "toPandas", None)):
        frame = to_pandas()
    if callable(to_dicts := getattr(frame, "to_dicts", None)):
        rows = to_dicts()
    else:
        rows = cast("_PandasFrame", frame).to_dict("records")
    return [{str(key): None if _is_missing(value) else value for key, value in row.items()} for row in rows]


def _is_missing(value: object) -> bool:
    """Return whether this is NaN, NaT or NA, which are not equal to themselves."""
    return type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, float) and value != value)  # noqa: PLR0124


def _has(name: str) -> Callable[[object], bool]:
    return lambda value: callable(getattr(value, name, None)) and not isinstance(value, type)


def _called(name: str, **settings: object) -> Callable[[object], object]:
    return lambda value: getattr(value, name)(**settings)


def _fields(value: object) -> dict[str, object]:
    return {field: getattr(value, field) for field in getattr(value, "__dataclass_fields__", ())}


# The first that recognises an object converts it.
_CONVERSIONS: Final[Sequence[tuple[Callable[[object], bool], Callable[[object], object]]]] = (
    (_has("model_dump"), _called("model_dump", mode="json")),
    (lambda value: dataclasses.is_dataclass(value) and not isinstance(value, type), _fields),
    (lambda value: isinstance(value, Mapping), lambda value: dict(cast("JsonObject", value))),
    (is_frame, frame_rows),
    # Numbers, Booleans and arrays of numpy.
    (_has("tolist"), _called("tolist")),
    (lambda value: isinstance(value, Enum), lambda value: cast("Enum", value).value),
    (_has("isoformat"), _called("isoformat")),
    (lambda value: isinstance(value, Decimal | UUID), str),
)
