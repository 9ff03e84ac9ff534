"""Dataclasses to nodes or JSON and back, by their fields: `check_only: bool` is `<checkOnly>true</checkOnly>`.

Elements stand in the order of their names, as the sequences of the Metadata API's WSDL do.
"""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from evalmeta.errors import MessageUnreadable
from evalmeta.xmlio.nodes import children
from evalmeta.xmlio.writer import node

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from evalmeta.model.jsonvalue import JsonObject, JsonValue
    from evalmeta.xmlio.writer import Node

__all__ = ["from_json", "from_node", "read_boolean", "to_json", "to_nodes"]

_T = TypeVar("_T")
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


class _Field(NamedTuple):
    """How one field travels: its element's name, its type, whether that has fields itself, repeats, must come."""

    attribute: str
    element: str
    type: type
    nested: bool
    repeats: bool
    required: bool


def to_nodes(value: DataclassInstance) -> list[Node]:
    """Writes a dataclass as elements, one for each field that is not None."""
    nodes: list[Node] = []
    for each in _fields(type(value)):
        content = getattr(value, each.attribute)
        if each.repeats:
            nodes += [_to_node(each.element, item) for item in content]
        elif content is not None:
            nodes.append(_to_node(each.element, content))
    return nodes


def from_node(cls: type[_T], source: Node) -> _T:
    """Reads a dataclass from an element; elements that it does not know are passed over.

    Raises:
        MessageUnreadable: a field is missing or is not of its type.
    """
    found: dict[str, list[Node]] = {}
    for child in children(source):
        if child.name in found:
            found[child.name].append(child)
        else:
            found[child.name] = [child]
    values: dict[str, object] = {}
    for each in _fields(cast("type", cls)):
        nodes = found.get(each.element)
        if each.repeats:
            values[each.attribute] = tuple(_from_node(each, item) for item in nodes or ())
        elif nodes:
            values[each.attribute] = _from_node(each, nodes[0])
        elif each.required:
            raise MessageUnreadable(f"<{source.name}> has no <{each.element}>")
    return cls(**values)


def to_json(value: DataclassInstance) -> JsonObject:
    """Writes a dataclass as a JSON object, with a key for each field that is not None."""
    found = ((each, getattr(value, each.attribute)) for each in _fields(type(value)))
    return {each.element: _to_json(item) for each, item in found if item is not None}


def from_json(cls: type[_T], source: JsonObject) -> _T:
    """Reads a dataclass from a JSON object; keys that it does not know are passed over.

    Raises:
        MessageUnreadable: a field is missing or is not of its type.
    """
    values: dict[str, object] = {}
    for each in _fields(cast("type", cls)):
        found = source.get(each.element)
        if found is not None:
            values[each.attribute] = _all_from_json(each, found) if each.repeats else _from_json(each, found)
        elif each.required:
            raise MessageUnreadable(f"the JSON object has no {each.element!r}")
    return cls(**values)


def read_boolean(name: str, text: str, *, otherwise: bool) -> bool:
    """Reads the text of an element of type xsd:boolean; an empty one is `otherwise`.

    Raises:
        MessageUnreadable: it is neither true, false, 1 nor 0.
    """
    try:
        return _BOOLEANS[text.strip()] if text.strip() else otherwise
    except KeyError:
        raise MessageUnreadable(f"<{name}> is {text[:80]!r}") from None


def _to_node(name: str, value: object) -> Node:
    if isinstance(value, str):
        return node(name, value)
    if isinstance(value, bool):
        return node(name, str(value).lower())
    if isinstance(value, bytes):
        return node(name, base64.b64encode(value).decode("ascii"))
    if is_dataclass(value) and not isinstance(value, type):
        return node(name, to_nodes(value))
    return node(name, str(value))


def _from_node(each: _Field, source: Node) -> object:
    if each.nested:
        return from_node(each.type, source)
    text = source.content if isinstance(source.content, str) else ""
    if each.type is str:
        return text
    try:
        return _from_text(each.type, text)
    except (ValueError, KeyError, binascii.Error):
        raise MessageUnreadable(f"<{each.element}> is {text[:80]!r}") from None


def _to_json(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(value)
    return cast("JsonValue", value)


def _all_from_json(each: _Field, value: JsonValue) -> tuple[object, ...]:
    return tuple(_from_json(each, item) for item in (value if isinstance(value, list) else [value]))


def _from_json(each: _Field, value: JsonValue) -> object:
    if is_dataclass(each.type) and isinstance(value, dict):
        return from_json(each.type, value)
    if type(value) is each.type:
        return value
    if isinstance(value, str) and each.type in {bool, int, bytes}:
        with suppress(ValueError, KeyError):
            return _from_text(each.type, value)
    raise MessageUnreadable(f"{each.element!r} is {str(value)[:80]!r}")


def _from_text(kind: type, text: str) -> object:
    if kind is bool:
        return _BOOLEANS[text.strip()]
    if kind in {int, float}:
        return kind(text)
    if kind is bytes:
        return base64.b64decode(text)
    return text


@cache
def _fields(cls: type) -> tuple[_Field, ...]:
    hints = get_type_hints(cls)
    found = (_field_of(each.name, hints[each.name], _is_required(each)) for each in fields(cls))
    return tuple(sorted(found, key=lambda each: each.element))


def _field_of(attribute: str, hint: object, required: bool) -> _Field:  # noqa: FBT001
    first, *rest = attribute.split("_")
    element = first + "".join(word.capitalize() for word in rest)
    arguments = [each for each in get_args(hint) if each not in {type(None), ...}]
    kind = arguments[0] if arguments else hint
    if not isinstance(kind, type):
        raise TypeError(f"{attribute} has a type that cannot travel: {hint!r}")
    return _Field(attribute, element, kind, is_dataclass(kind), get_origin(hint) is tuple, required)


def _is_required(each: object) -> bool:
    return getattr(each, "default", MISSING) is MISSING and getattr(each, "default_factory", MISSING) is MISSING
