"""Bytes to a checked element tree, hardened, with exact places for every element."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from lxml import etree

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Location, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml.etree import _Element as Element

__all__ = ["NAMESPACE", "Document", "Step", "local_name", "read_xml"]

NAMESPACE: Final = "http://soap.sforce.com/2006/04/metadata"

Step = tuple[str, int]
"""One step down a document: a child's local name and which one of that name, from 0."""

_DECLARED_ENCODING: Final = re.compile(rb"""^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([^"']*)["']""")
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_TOO_DEEP: Final = etree.XPath("boolean(" + "/*" * (limits.MAX_XML_DEPTH + 1) + ")")
_MARKUP: Final = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|</[^>]*>|(<(?:[^<>"']|"[^"]*"|'[^']*')*>)""", re.DOTALL
)


class Document:
    """A well-formed XML document, kept with its bytes.

    Attributes:
        label: the file's name as messages show it.
        data: the bytes as they were read.
        root: the root element; comments and processing instructions are left out.
    """

    __slots__ = ("_order", "_places", "data", "label", "root")

    def __init__(self, *, label: str, data: bytes, root: Element) -> None:
        self.label = label
        self.data = data
        self.root = root
        self._order: dict[Element, int] = {}
        self._places: list[tuple[int, int]] = []

    def location(self, element: Element | None = None) -> Location:
        """Tells where an element's start tag begins; without one, where the root's does."""
        if not self._places:
            self._places = _start_tags(self.data)
            self._order = {each: place for place, each in enumerate(self.root.iter())}
        line, column = self._places[self._order[self.root if element is None else element]]
        return Location(self.label, line, column)

    def find(self, steps: Sequence[Step]) -> Element:
        """Follows steps from the root and gives the deepest element that exists."""
        here = self.root
        for name, index in steps:
            children = [child for child in here if local_name(child) == name]
            if index >= len(children):
                return here
            here = children[index]
        return here


def read_xml(data: bytes, *, label: str, max_bytes: int = limits.MAX_XML_BYTES) -> Document:
    """Reads XML that comes from anywhere, safely.

    No DOCTYPE, so no entity beyond the five and character references; no network, no
    file access; UTF-8 only; size and depth are limited.

    Args:
        data: the file's bytes.
        label: its name as messages show it.
        max_bytes: how large it may be.

    Raises:
        InvalidMetadata: with one problem that has code, place and next step.
    """
    _check_bytes(data, label, max_bytes)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if (place := _doctype(data)) is not None:
            raise _doctype_error(label, place) from None
        raise _too_deep(label) if "depth" in str(error.msg) else _malformed(label, error) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise _doctype_error(label, _doctype(data) or (1, 1))
    if _TOO_DEEP(root):
        raise _too_deep(label)
    return Document(label=label, data=data, root=root)


def local_name(element: Element) -> str:
    """Gives an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _check_bytes(data: bytes, label: str, max_bytes: int) -> None:
    if len(data) > max_bytes:
        raise _refuse(
            "xml-too-large",
            Location(label),
            f"the file has {len(data):,} bytes; at most {max_bytes:,} are read",
            "Split the test cases over several definitions.",
        )
    declared = _DECLARED_ENCODING.match(data)
    encoding = declared.group(1).decode("ascii", "replace") if declared else "UTF-8"
    if data.startswith(_UTF16_BOMS) or b"\x00" in data[:4]:
        encoding = "UTF-16"
    if encoding.upper() not in {"UTF-8", "UTF8", "US-ASCII", "ASCII"}:
        raise _refuse(
            "xml-encoding",
            Location(label, 1, 1),
            f"the file is encoded in {encoding}; metadata is UTF-8",
            "Save it as UTF-8 and declare that, or drop the declaration's encoding.",
        )


def _malformed(label: str, error: etree.XMLSyntaxError) -> InvalidMetadata:
    line, column = error.position
    message = re.sub(r", line \d+, column \d+.*$", "", str(error.msg or "not well-formed"), flags=re.DOTALL)
    return _refuse(
        "xml-malformed",
        Location(label, max(line or 1, 1), max(column, 1)),
        f"not well-formed XML: {message}",
        "Close every tag in order and write & as &amp; and < as &lt; in text.",
    )


def _too_deep(label: str) -> InvalidMetadata:
    return _refuse(
        "xml-too-deep",
        Location(label, 1, 1),
        f"elements are nested more than {limits.MAX_XML_DEPTH} levels deep",
        "A definition has 5 levels; check where the file comes from.",
    )


def _doctype_error(label: str, place: tuple[int, int]) -> InvalidMetadata:
    return _refuse(
        "xml-doctype",
        Location(label, *place),
        "the file has a DOCTYPE",
        "Remove it: metadata files have none, and entities beyond &amp; &lt; &gt; &apos; &quot; are refused.",
    )


def _refuse(code: str, location: Location, message: str, hint: str) -> InvalidMetadata:
    problem = Problem(code, Severity.ERROR, location, message, hint)
    return InvalidMetadata(f"{location}: {message} [{code}]", problems=[problem], actions=[hint])


def _doctype(data: bytes) -> tuple[int, int] | None:
    text = data.decode("utf-8", "replace")
    bare = re.sub(r"<!--.*?-->", lambda comment: re.sub(r"[^\n]", " ", comment.group()), text, flags=re.DOTALL)
    offset = bare.find("<!DOCTYPE")
    return _line_and_column(_line_starts(text), offset) if offset >= 0 else None


def _start_tags(data: bytes) -> list[tuple[int, int]]:
    """Lists line and column, from 1, of every start tag of a well-formed document, in order."""
    text = data.decode("utf-8-sig", "replace")
    starts = _line_starts(text)
    return [_line_and_column(starts, match.start()) for match in _MARKUP.finditer(text) if match.group(1)]


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _line_and_column(starts: list[int], offset: int) -> tuple[int, int]:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
