"""Tables in memory as rows of plain values: data frames, lists of mappings, columns by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from evalmeta import limits
from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonObject, JsonValue

__all__ = ["plain_row", "rows_of"]

_HINT: Final = ("Give a DataFrame, a list of dicts, a dict of columns, or a path.",)
_MISSING: Final = frozenset({"NaTType", "NAType"})


@runtime_checkable
class _Frame(Protocol):
    """What pandas calls a DataFrame; Spark's has `toPandas`."""

    def to_dict(self, orient: str) -> object: ...


@runtime_checkable
class _SparkFrame(Protocol):
    def toPandas(self) -> object: ...  # noqa: N802 - Spark's name


@runtime_checkable
class _Array(Protocol):
    """What numpy calls an array or a number of its own."""

    def tolist(self) -> object: ...


def rows_of(data: object) -> list[JsonObject]:
    """Gives the rows of a table, of plain values: NaN and missing values are None, arrays lists.

    Args:
        data: a DataFrame of pandas or Spark, an iterable of mappings, or a mapping of columns to lists.

    Raises:
        UsageError: it is none of these, or holds something that JSON has not.
    """
    if isinstance(data, _SparkFrame):
        data = data.toPandas()
    if isinstance(data, Mapping):
        data = _from_columns(data)
    elif isinstance(data, _Frame):
        data = data.to_dict("records")
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise UsageError(f"{type(data).__name__} is no table of rows", actions=_HINT)
    return [plain_row(each, number) for number, each in enumerate(data, 1)]


def plain_row(row: object, number: int) -> JsonObject:
    """Gives a row of plain values; raises like `rows_of`."""
    if not isinstance(row, Mapping):
        raise UsageError(f"row {number} is of type {type(row).__name__}, not a dict of columns", actions=_HINT)
    return {str(key): _plain(value, f"{key!r} of row {number}") for key, value in row.items()}


def _from_columns(columns: Mapping[object, object]) -> list[dict[object, object]]:
    lists = {key: each for key, each in columns.items() if isinstance(each, Sequence) and not isinstance(each, str)}
    if len(lists) < len(columns) or len({len(each) for each in lists.values()}) > 1:
        raise UsageError("a dict of columns has lists of one length", actions=_HINT)
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _plain(value: object, where: str, depth: int = 0) -> JsonValue:
    if depth > limits.MAX_JSON_DEPTH:
        raise UsageError(f"{where} is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    if isinstance(value, Mapping):
        # Arrow gives every key of a column's type to every row.
        inner = {str(key): _plain(each, where, depth + 1) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each, where, depth + 1) for each in value]
    return _plain_one(value, where, depth)


def _plain_one(value: object, where: str, depth: int) -> JsonValue:
    if value is None or isinstance(value, bool) or type(value) is int:
        return value
    if isinstance(value, str):
        return _encodable(value, where)
    if isinstance(value, float):
        return None if math.isnan(value) else _finite(float(value), where)
    return _converted(value, where, depth)


def _converted(value: object, where: str, depth: int) -> JsonValue:
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, _Array):
        return _plain(value.tolist(), where, depth + 1)
    # A trace is given as the object that MLflow makes of it.
    to_dict: object = getattr(value, "to_dict", None)
    if callable(to_dict):
        return _plain(to_dict(), where, depth + 1)
    raise UsageError(f"{where} is of type {type(value).__name__}, which JSON has not", actions=_HINT)


def _encodable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{where} is no valid Unicode text ({error.reason})") from error
    return text


def _finite(value: float, where: str) -> float:
    if math.isinf(value):
        raise UsageError(f"{where} holds {value}, which JSON has not")
    return value
