"""A well-formed XML document, with the exact place of every element."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final

from evalmeta.model.problem import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lxml.etree import _Element as Element

__all__ = ["Document", "Step", "find_start_tags", "find_texts", "line_and_column", "local_name"]

Step = tuple[str, int]
"""One step down a document: a child's local name and which one of that name, from 0."""

# What was matched is never given back: a start tag may have megabytes.
_MARKUP: Final = re.compile(
    r"""<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|</[^>]*+>|(<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>)""",
    re.DOTALL,
)


_BLANKS: Final = re.compile(r"(?:[ \t\r\n]++|&#0*+(?:9|10|13|32);|&#x0*+(?:9|[aAdD]|20);)*+")


class Document:
    """A well-formed XML document, kept with its bytes.

    Attributes:
        label: the file's name as messages show it.
        data: the bytes as they were read.
        root: the root element; comments and processing instructions are left out
            unless they were asked for.
    """

    __slots__ = ("_children", "_order", "_places", "_texts", "data", "label", "root")

    def __init__(self, *, label: str, data: bytes, root: Element) -> None:
        self.label = label
        self.data = data
        self.root = root
        self._children: dict[tuple[Element, str], list[Element]] = {}
        self._order: dict[Element, int] = {}
        self._places = array("I")
        self._texts: dict[int, list[tuple[int, int]]] = {}

    def location(self, element: Element | None = None) -> Location:
        """Tells where an element's start tag begins; without one, where the root's does."""
        if not self._places:
            self._places = _places(self.data)
            self._order = {each: place for place, each in enumerate(self.root.iter("*"))}
        place = 2 * self._order[self.root if element is None else element]
        return Location(self.label, self._places[place], self._places[place + 1])

    def texts(self, element: Element) -> list[Location]:
        """Tells where each text of an element that is more than blanks begins: before, between and behind children."""
        self.location()
        if not self._texts:
            self._texts = find_texts(self.data.decode("utf-8-sig", "replace"))
        return [Location(self.label, *place) for place in self._texts.get(self._order[element], ())]

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
    for place in _lines_and_columns(text, (start for start, _ in find_start_tags(text))):
        places.extend(place)
    return places


def _lines_and_columns(text: str, offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Gives what `line_and_column` gives for each of ascending offsets, in one pass."""
    line, line_start, seen = 1, 0, 0
    for start in offsets:
        line += text.count("\n", seen, start)
        line_start = max(line_start, text.rfind("\n", seen, start) + 1)
        yield line, start - line_start + 1
        seen = start


def find_texts(text: str) -> dict[int, list[tuple[int, int]]]:
    """Finds line and column of every text that is more than blanks, by its element, counted from 0 as they begin.

    What stands between two tags is one text, whatever comments are in it.
    """
    owners, starts = [], []
    for element, start in _texts(text):
        owners.append(element)
        starts.append(start)
    found: dict[int, list[tuple[int, int]]] = {}
    for element, place in zip(owners, _lines_and_columns(text, starts), strict=True):
        found.setdefault(element, []).append(place)
    return found


def _texts(text: str) -> Iterator[tuple[int, int]]:
    """Yields the element around each text and where the text begins; takes well-formed documents only."""
    inside: list[int] = []
    count = end = 0
    is_told = True
    for match in _MARKUP.finditer(text):
        start = _skip_blanks(text, end, match.start())
        if not is_told and (start < match.start() or _is_text_section(text, match)):
            yield inside[-1], start
            is_told = True
        if match.lastindex:
            is_told = False
            if not text.endswith("/>", match.start(), match.end()):
                inside.append(count)
            count += 1
        elif text.startswith("</", match.start()):
            inside.pop()
            is_told = not inside
        end = match.end()


def _skip_blanks(text: str, start: int, end: int) -> int:
    blanks = _BLANKS.match(text, start, end)
    return blanks.end() if blanks else start


def _is_text_section(text: str, markup: re.Match[str]) -> bool:
    start, end = markup.start() + len("<![CDATA["), markup.end() - len("]]>")
    return text.startswith("<![CDATA[", markup.start()) and _skip_blanks(text, start, end) < end
