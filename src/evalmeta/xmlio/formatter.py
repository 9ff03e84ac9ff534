"""Changes of files that keep their comments: the canonical form, and another text of one element.

The canonical form has the order, indentation and escaping of an org, which writes the children of an element in the
order of their names, `fullName` first; repeated ones keep their order. A comment moves with the element after it, or
with the tag before it on the same line. Comments after the last element stay last. Processing instructions are treated
like comments. Text never changes.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lxml import etree

from evalmeta.model.registry import SCORER_DEFINITION, TEST_TYPES, TYPES
from evalmeta.xmlio.agent_scorers import check_agent_scorer
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import NAMESPACE, Document, find_markup, find_start_tags, local_name, read_xml
from evalmeta.xmlio.structure import definition_type
from evalmeta.xmlio.writer import DECLARATION, escape_attribute, escape_text

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from lxml.etree import _Element as Element


_INDENT: Final = "    "
_CONTAINERS: Final = frozenset(
    {
        *(row.name for row in TYPES),
        *(row.expectation for row in TEST_TYPES),
        "Package",
        "agentAssociation",
        "contextVariable",
        "conversationHistory",
        "engine",
        "inputs",
        "outputEnumValue",
        "parameter",
        "promptInput",
        "scorerVersion",
        "specification",
        "testCase",
        "types",
        "valueSpecification",
    }
)


class _Child(NamedTuple):
    """An element with the comments that move with it."""

    above: list[Element]
    element: Element
    behind: list[Element]


class _Content(NamedTuple):
    """The content of an element: comments on the line of its start tag, children, comments after them."""

    behind: list[Element]
    children: list[_Child]
    last: list[Element]


def format_definition(data: bytes, *, label: str) -> bytes:
    """Return a definition file in canonical form; raise InvalidMetadata if it does not fit its type."""
    document = read_xml(data, label=label)
    if definition_type(document) == SCORER_DEFINITION:
        check_agent_scorer(document)
    else:
        read_definition(document)
    return _format(data, label)


def format_manifest(data: bytes, *, label: str) -> bytes:
    """Return a manifest that fits its schema in canonical form, with types and members sorted.

    Members keep their order if there are comments among them, because a comment may be about several members.
    """
    return _format(data, label)


def _format(data: bytes, label: str) -> bytes:
    root = read_xml(data, label=label, keep_comments=True).root
    lines = [DECLARATION]
    lines += [_comment(element) for element in reversed([*root.itersiblings(preceding=True)])]
    lines += _lines(root, 0, _declaring(root))
    lines += [_comment(element) for element in root.itersiblings()]
    return "\n".join([*lines, ""]).encode()


def _declaring(root: Element) -> set[Element]:
    """Return the elements that declare namespaces; comparing `nsmap` of each would take quadratic time."""
    declaring: set[Element] = set()
    declares = False
    for _, item in etree.iterwalk(root, events=("start-ns", "start")):
        if isinstance(item, tuple):
            declares = True
        elif declares:
            declaring.add(cast("Element", item))
            declares = False
    return declaring


def _lines(element: Element, level: int, declaring: Container[Element]) -> Iterator[str]:
    indent, name = _INDENT * level, local_name(element)
    start = f"{indent}<{name}"
    if element.attrib or element in declaring:
        start += _attributes(element)
    if name not in _CONTAINERS:
        comments = (_comment(comment) + escape_text(comment.tail or "") for comment in element)
        text = "".join([escape_text(element.text or ""), *comments])
        yield f"{start}>{text}</{name}>" if text else f"{start}/>"
        return
    content = _content(element)
    if not any(content):
        yield f"{start}/>"
        return
    yield _with_comments(f"{start}>", content.behind)
    for child in _sorted(content.children):
        yield from (f"{indent}{_INDENT}{_comment(comment)}" for comment in child.above)
        *lines, last = _lines(child.element, level + 1, declaring)
        yield from lines
        yield _with_comments(last, child.behind)
    yield from (f"{indent}{_INDENT}{_comment(comment)}" for comment in content.last)
    yield f"{indent}</{name}>"


def _content(parent: Element) -> _Content:
    content = _Content([], [], [])
    behind: list[Element] | None = content.behind
    above: list[Element] = []
    space = parent.text or ""
    ends = _line_ends(parent)
    for node in parent:
        if "\n" in space or not ends[node]:
            behind = None
        if _is_element(node):
            content.children.append(_Child(above, node, behind := []))
            above = []
        else:
            (above if behind is None else behind).append(node)
        space = node.tail or ""
    content.last.extend(above)
    return content


def _line_ends(parent: Element) -> dict[Element, bool]:
    """Return for every node whether its line ends after it, or after comments that follow it."""
    ends: dict[Element, bool] = {}
    comments_end_it = False
    for node in reversed(parent):
        ends[node] = "\n" in (node.tail or "") or comments_end_it
        comments_end_it = ends[node] and not _is_element(node)
    return ends


def _sorted(children: Sequence[_Child]) -> list[_Child]:
    has_comments = any(child.above or child.behind for child in children)

    def rank(child: _Child) -> tuple[bool, str, str]:
        name = local_name(child.element)
        return name != "fullName", name, _name_in_manifest(child.element, sorts_members=not has_comments)

    return sorted(children, key=rank)


def _name_in_manifest(element: Element, *, sorts_members: bool) -> str:
    match local_name(element):
        case "types":
            return next((_plain(child) for child in element if local_name(child) == "name"), "")
        case "members" if sorts_members:
            return _plain(element)
        case _:
            return ""


def _plain(element: Element) -> str:
    return "".join([element.text or "", *(comment.tail or "" for comment in element)]).strip()


def _attributes(element: Element) -> str:
    above = element.getparent()
    inherited = {} if above is None else above.nsmap
    pieces = [] if above is not None else [f' xmlns="{NAMESPACE}"']
    for prefix, uri in sorted((prefix, uri) for prefix, uri in element.nsmap.items() if prefix):
        if inherited.get(prefix) != uri:
            pieces.append(f' xmlns:{prefix}="{escape_attribute(uri)}"')
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items() if prefix}
    for name, value in element.attrib.items():
        uri, _, local = str(name).removeprefix("{").rpartition("}")
        pieces.append(f' {prefixes[uri]}:{local}="{escape_attribute(str(value))}"')
    return "".join(pieces)


def _with_comments(line: str, comments: Sequence[Element]) -> str:
    return " ".join([line, *map(_comment, comments)])


def _comment(node: Element) -> str:
    """Return the text of a comment or a processing instruction."""
    if (target := getattr(node, "target", None)) is not None:
        return f"<?{target} {node.text}?>" if node.text else f"<?{target}?>"
    return f"<!--{node.text}-->"


def _is_element(node: Element) -> bool:
    return isinstance(node.tag, str)


_ASCII: Final = re.compile(rb"""<\?xml[^>]*?\bencoding\s*=\s*["'](?:US-)?ASCII["']""", re.IGNORECASE)
_TAG_NAME: Final = re.compile(r"<([^\s/>]+)")


class _OldText(NamedTuple):
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
    content = _old_text(source, end, local_name(element))
    can_be_cdata = content.is_cdata and "\r" not in text and (text.isascii() or not _ASCII.match(document.data))
    written = _cdata(text, line_end) if can_be_cdata else _escaped(text, line_end)
    return _encoded(document, source[: content.start], written + content.comments, source[content.end :])


def _old_text(source: str, start: int, name: str) -> _OldText:
    comments, is_cdata = "", False
    for markup in find_markup(source, start):
        if markup[0].startswith("</"):
            return _OldText(start, markup.start(), comments, is_cdata)
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
