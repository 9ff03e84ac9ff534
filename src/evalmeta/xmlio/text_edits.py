"""Replacing the text of one element of an XML file, while all other bytes stay the same."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.xmlio.reader import find_markup, find_start_tags, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from evalmeta.xmlio.reader import Document


_ASCII: Final = re.compile(rb"""<\?xml[^>]*?\bencoding\s*=\s*["'](?:US-)?ASCII["']""", re.IGNORECASE)
_TAG_NAME: Final = re.compile(r"<([^\s/>]+)")


class _Content(NamedTuple):
    """The content of an element without children: its span, its comments, and whether it has a CDATA section."""

    start: int
    end: int
    comments: str
    is_cdata: bool


def replace_text(document: Document, element: Element, text: str) -> bytes:
    """Return the bytes of a document with another text in an element that has no children.

    Comments in the element, CDATA sections, the line ends of the file and its byte order mark are kept. The text must
    have only characters that XML allows. Raise ValueError if the element has children.
    """
    source = document.data.decode()
    line_end = "\r\n" if "\r\n" in source else "\n"
    position = next(place for place, child in enumerate(document.root.iter("*")) if child is element)
    start, end = next(islice(find_start_tags(source), position, None))
    if source.endswith("/>", start, end):
        tag = source[start : end - 2].rstrip()
        [name] = _TAG_NAME.findall(tag)
        return _encoded(document, source[:start], f"{tag}>{_escaped(text, line_end)}</{name}>", source[end:])
    content = _content(source, end, local_name(element))
    can_be_cdata = content.is_cdata and "\r" not in text and (text.isascii() or not _ASCII.match(document.data))
    written = _cdata(text, line_end) if can_be_cdata else _escaped(text, line_end)
    return _encoded(document, source[: content.start], written + content.comments, source[content.end :])


def _content(source: str, start: int, name: str) -> _Content:
    comments, is_cdata = "", False
    for markup in find_markup(source, start):
        if markup[0].startswith("</"):
            return _Content(start, markup.start(), comments, is_cdata)
        if markup.lastindex:
            break
        if markup[0].startswith("<![CDATA["):
            is_cdata = True
        else:
            comments += markup[0]
    raise ValueError(f"<{name}> has children")


def _escaped(text: str, line_end: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Readers turn every line end into a line feed (XML 1.0, section 2.11), but not a character reference.
    return escaped.replace("\r", "&#13;").replace("\n", line_end)


def _cdata(text: str, line_end: str) -> str:
    divided = text.replace("]]>", "]]]]><![CDATA[>").replace("\n", line_end)
    return f"<![CDATA[{divided}]]>"


def _encoded(document: Document, before: str, written: str, after: str) -> bytes:
    """Return the file; the parser has seen that all else fits its encoding."""
    is_ascii = _ASCII.match(document.data)
    encoded = written.encode("ascii", "xmlcharrefreplace") if is_ascii else written.encode()
    return before.encode() + encoded + after.encode()
