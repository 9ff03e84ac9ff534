"""JSON documents that are written in pieces, so that their long lists are never held as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evalmeta.model.json_value import JsonValue

    Dump = Callable[[JsonValue], str]


class JsonList:
    """A list whose items are written one by one; they are values, or objects that contain such lists themselves."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[JsonValue | JsonDocument]) -> None:
        self.items = items


class JsonDocument:
    """An object of which some values are a `JsonList` or a `JsonDocument`."""

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, JsonValue | JsonList | JsonDocument]) -> None:
        self.fields = fields


def indented(value: JsonValue) -> str:
    """Return a value as JSON, indented by two blanks per level."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def stream_json(value: JsonValue | JsonList | JsonDocument, dump: Dump = indented) -> Iterator[str]:
    """Yield a value as indented JSON in pieces; `dump` writes the values that have no lists to be streamed."""
    return _stream(value, dump, "")


def _stream(value: JsonValue | JsonList | JsonDocument, dump: Dump, indent: str) -> Iterator[str]:
    inner = f"{indent}  "
    if isinstance(value, JsonDocument):
        fields = ((f"{dump(key)}: ", field) for key, field in value.fields.items())
        yield from _block(fields, dump, "{}", indent, inner)
    elif isinstance(value, JsonList):
        yield from _block((("", item) for item in value.items), dump, "[]", indent, inner)
    else:
        # Line breaks inside texts are escaped, so all others are between values.
        yield dump(value).replace("\n", f"\n{indent}")


def _block(
    items: Iterable[tuple[str, JsonValue | JsonList | JsonDocument]], dump: Dump, brackets: str, indent: str, inner: str
) -> Iterator[str]:
    is_empty = True
    for start, value in items:
        yield f"{brackets[0] if is_empty else ','}\n{inner}{start}"
        is_empty = False
        yield from _stream(value, dump, inner)
    yield brackets if is_empty else f"\n{indent}{brackets[1]}"
