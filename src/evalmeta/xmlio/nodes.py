"""XML messages as plain nodes, with names without namespaces, for packages that cannot import the parser."""

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
_XSI_TYPE: Final = "{http://www.w3.org/2001/XMLSchema-instance}type"


def read_node(
    data: bytes,
    *,
    label: str,
    max_bytes: int = limits.MAX_ENVELOPE_BYTES,
    max_elements: int = limits.MAX_ENVELOPE_ELEMENTS,
) -> Node:
    """Read an XML message like `read_xml`, without namespaces; raise InvalidMetadata if it is not safe.

    Of the attributes only `xsi:type` is kept, as `type` without its prefix.
    `max_elements` is the maximum number of elements, and of attributes.
    """
    document = read_xml(data, label=label, max_bytes=max_bytes, max_elements=max_elements, max_attributes=max_elements)
    return _node(document.root)


def children(parent: Node) -> Iterator[Node]:
    """Yield the children of an element; none if it contains text."""
    if not isinstance(parent.content, str):
        yield from parent.content


def find(parent: Node, *names: str) -> Node | None:
    """Return the element at a path of names, the first of each name; None if there is none."""
    here: Node | None = parent
    for name in names:
        here = next((child for child in children(here) if child.name == name), None) if here else None
    return here


def text_of(element: Node | None) -> str:
    """Return an element's text, empty if there is none."""
    return element.content if element and isinstance(element.content, str) else ""


def _node(element: Element) -> Node:
    name = local_name(element)
    if len(element):
        kind = element.get(_XSI_TYPE)
        attributes = {"type": kind.rpartition(":")[2]} if kind else _NO_ATTRIBUTES
        return Node(name, [_node(child) for child in element if child.get(_XSI_NIL) != "true"], attributes)
    return Node(name, element.text or "", _NO_ATTRIBUTES)
