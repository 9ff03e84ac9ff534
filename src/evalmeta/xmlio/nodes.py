"""XML messages as plain nodes: names without namespaces, for whoever must not know the parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.xmlio.reader import local_name, read_xml
from evalmeta.xmlio.writer import Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lxml.etree import _Element as Element


_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}
_XSI_NIL: Final = "{http://www.w3.org/2001/XMLSchema-instance}nil"


def read_node(
    data: bytes,
    *,
    label: str,
    max_bytes: int = limits.MAX_ENVELOPE_BYTES,
    max_elements: int = limits.MAX_ENVELOPE_ELEMENTS,
) -> Node:
    """Reads an XML message with all care of `read_xml`; namespaces and attributes are dropped.

    Args:
        data: the message's bytes.
        label: its name as messages about it show it.
        max_bytes: how large it may be.
        max_elements: how many elements, and how many attributes, it may have.

    Raises:
        InvalidMetadata: the bytes are no safe, well-formed XML.
    """
    document = read_xml(data, label=label, max_bytes=max_bytes, max_elements=max_elements, max_attributes=max_elements)
    return _node(document.root)


def children(parent: Node) -> Iterator[Node]:
    """Yields the elements inside an element; none when it holds text."""
    if not isinstance(parent.content, str):
        yield from parent.content


def find(parent: Node, *names: str) -> Node | None:
    """Follows the first child of each name; None where the way ends."""
    here: Node | None = parent
    for name in names:
        here = next((child for child in children(here) if child.name == name), None) if here else None
    return here


def text_of(element: Node | None) -> str:
    """Gives an element's text, empty when there is none."""
    return element.content if element and isinstance(element.content, str) else ""


def _node(element: Element) -> Node:
    name = local_name(element)
    if len(element):
        return Node(name, [_node(child) for child in element if child.get(_XSI_NIL) != "true"], _NO_ATTRIBUTES)
    return Node(name, element.text or "", _NO_ATTRIBUTES)
