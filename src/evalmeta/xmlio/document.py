"""A well-formed XML document, with the exact place of every element."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from evalmeta.model.problem import Location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml.etree import _Element as Element

__all__ = ["Document", "Step", "line_and_column", "local_name"]

Step = tuple[str, int]
"""One step down a document: a child's local name and which one of that name, from 0."""

_MARKUP: Final = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|</[^>]*>|(<(?:[^<>"']|"[^"]*"|'[^']*')*>)""", re.DOTALL
)


class Document:
    """A well-formed XML document, kept with its bytes.

    Attributes:
        label: the file's name as messages show it.
        data: the bytes as they were read.
        root: the root element; comments and processing instructions are left out
            unless they were asked for.
    """

    __slots__ = ("_children", "_order", "_places", "data", "label", "root")

    def __init__(self, *, label: str, data: bytes, root: Element) -> None:
        self.label = label
        self.data = data
        self.root = root
        self._children: dict[Element, dict[str, list[Element]]] = {}
        self._order: dict[Element, int] = {}
        self._places: list[tuple[int, int]] = []

    def location(self, element: Element | None = None) -> Location:
        """Tells where an element's start tag begins; without one, where the root's does."""
        if not self._places:
            self._places = _start_tags(self.data)
            self._order = {each: place for place, each in enumerate(self.root.iter("*"))}
        line, column = self._places[self._order[self.root if element is None else element]]
        return Location(self.label, line, column)

    def find(self, steps: Sequence[Step]) -> Element:
        """Follows steps from the root, in its namespace, and gives the deepest element that exists."""
        here = self.root
        for name, index in steps:
            found = self._children_of(here).get(name, [])
            if index >= len(found):
                return here
            here = found[index]
        return here

    def _children_of(self, parent: Element) -> dict[str, list[Element]]:
        # Rules ask for many children of the same parent: counting anew each time would be quadratic.
        if parent not in self._children:
            namespace = str(self.root.tag).rpartition("}")[0]
            children = self._children.setdefault(parent, {})
            for child in parent:
                if str(child.tag).rpartition("}")[0] == namespace:
                    children.setdefault(local_name(child), []).append(child)
        return self._children[parent]


def local_name(element: Element) -> str:
    """Gives an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Gives line and column, from 1, of a character counted from 0."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _start_tags(data: bytes) -> list[tuple[int, int]]:
    """Lists line and column, from 1, of every start tag of a well-formed document, in order."""
    text = data.decode("utf-8-sig", "replace")
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    places = []
    for match in _MARKUP.finditer(text):
        if match.group(1):
            line = bisect_right(starts, match.start())
            places.append((line, match.start() - starts[line - 1] + 1))
    return places
