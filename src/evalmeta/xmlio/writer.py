"""Writing of XML as Salesforce writes it; the same values always return the same bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>'
# What XML allows would be a set that takes ten times as long to compile.
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PLAIN: Final = re.compile(r"[A-Za-z0-9 .,:;/_!?-]*")
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&apos;", '"': "&quot;", "\r": "&#13;"})
_ATTRIBUTE_ESCAPES: Final = _ESCAPES | str.maketrans({"\n": "&#10;", "\t": "&#9;"})


class Node(NamedTuple):
    """An element: its name, attributes, and either text or children."""

    name: str
    content: str | Sequence[Node]
    attributes: Mapping[str, str]


class Stream(NamedTuple):
    """An element whose children are written one by one and never held together."""

    name: str
    content: Iterable[Node | Stream]
    attributes: Mapping[str, str]


def node(name: str, content: str | Sequence[Node] = (), /, **attributes: str) -> Node:
    """Return an element; a name with a prefix is written unchanged."""
    return Node(name, content, attributes)


def optional(name: str, content: str | None) -> Iterator[Node]:
    """Yield a text element, or nothing if the text is None."""
    if content is not None:
        yield node(name, content)


def render(root: Node, *, indent: int | None = None) -> bytes:
    """Return a document in UTF-8 with an XML declaration.

    Characters that are invalid in XML become U+FFFD. Quotes and apostrophes in text are escaped as orgs do. `indent` is
    the number of blanks per level; None writes everything on one line, without a final line break.
    """
    pieces = [DECLARATION]
    _write(root, pieces, indent, 0)
    if indent is not None:
        pieces.append("\n")
    return "".join(pieces).encode()


def render_piece(element: Node) -> bytes:
    """Return an element as a part of a document, on one line."""
    pieces: list[str] = []
    _write(element, pieces, None, 0)
    return "".join(pieces).encode()


def stream(root: Stream, *, indent: int) -> Iterator[str]:
    """Yield the document that `render` returns, in pieces."""
    yield DECLARATION
    yield from _stream(root, indent, 0)
    yield "\n"


def _stream(element: Node | Stream, indent: int, level: int) -> Iterator[str]:
    if isinstance(element, Node):
        pieces: list[str] = []
        _write(element, pieces, indent, level)
        yield "".join(pieces)
        return
    start, is_empty = f"\n{' ' * (indent * level)}", True
    yield f"{start}{_start_tag(element)}"
    for child in element.content:
        yield ">" if is_empty else ""
        is_empty = False
        yield from _stream(child, indent, level + 1)
    yield "/>" if is_empty else f"{start}</{element.name}>"


def escape_text(text: str) -> str:
    """Return escaped text; characters that are invalid in XML become U+FFFD."""
    # Most texts need no escaping, and the check is fast.
    if _PLAIN.fullmatch(text):
        return text
    return _clean(text).translate(_ESCAPES)


def escape_attribute(text: str) -> str:
    """Return an escaped attribute value: like text, with line breaks and tabs escaped too."""
    return _clean(text).translate(_ATTRIBUTE_ESCAPES)


def _write(element: Node, pieces: list[str], indent: int | None, level: int) -> None:
    if indent is not None:
        pieces.append("\n" + " " * (indent * level))
    name, content, _ = element
    start = _start_tag(element)
    if not content:
        pieces.append(f"{start}/>")
    elif isinstance(content, str):
        pieces.append(f"{start}>{escape_text(content)}</{name}>")
    else:
        pieces.append(f"{start}>")
        for child in content:
            _write(child, pieces, indent, level + 1)
        if indent is not None:
            pieces.append("\n" + " " * (indent * level))
        pieces.append(f"</{name}>")


def _start_tag(element: Node | Stream) -> str:
    """Return the start tag of an element without its last character."""
    attributes = (f' {key}="{escape_attribute(value)}"' for key, value in element.attributes.items())
    return f"<{element.name}{''.join(attributes)}"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
