"""A well-formed XML document, with the exact place of every element."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final

from evalmeta.model.problem import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lxml.etree import _Element as Element

__all__ = ["Document", "Step", "find_start_tags", "line_and_column", "local_name"]

Step = tuple[str, int]
"""One step down a document: a child's local name and which one of that name, from 0."""

# What was matched is never given back: a start tag may have megabytes.
_MARKUP: Final = re.compile(
    r"""<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|</[^>]*+>|(<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>)""",
    re.DOTALL,
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
        self._children: dict[tuple[Element, str], list[Element]] = {}
        self._order: dict[Element, int] = {}
        self._places = array("I")

    def location(self, element: Element | None = None) -> Location:
        """Tells where an element's start tag begins; without one, where the root's does."""
        if not self._places:
            self._places = _places(self.data)
            self._order = {each: place for place, each in enumerate(self.root.iter("*"))}
        place = 2 * self._order[self.root if element is None else element]
        return Location(self.label, self._places[place], self._places[place + 1])

    def find(self, steps: Sequence[Step]) -> Element:
        """Follows steps from the root, in its namespace, and gives the deepest element that exists."""
        here = self.root
        for name, index in steps:
            found = self._children_of(here, name)
            if index >= len(found):
                return here
            here = found[index]
        return here

    def _children_of(self, parent: Element, name: str) -> list[Element]:
        # Rules ask for many children of the same parent: counting anew each time would be quadratic.
        key = parent, name
        if key not in self._children:
            namespace, end, _ = str(self.root.tag).rpartition("}")
            self._children[key] = list(parent.iterchildren(f"{namespace}{end}{name}"))
        return self._children[key]


def local_name(element: Element) -> str:
    """Gives an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Gives line and column, from 1, of a character counted from 0."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def find_start_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yields where every start tag begins and ends, in order, as characters from 0; takes any text."""
    return (match.span(1) for match in _MARKUP.finditer(text) if match.lastindex)


def _places(data: bytes) -> array[int]:
    """Lists line and column, from 1, of every start tag of a well-formed document, one after the other."""
    text = data.decode("utf-8-sig", "replace")
    places = array("I")
    line, line_start, seen = 1, 0, 0
    for start, _ in find_start_tags(text):
        line += text.count("\n", seen, start)
        line_start = max(line_start, text.rfind("\n", seen, start) + 1)
        places.extend((line, start - line_start + 1))
        seen = start
    return places
