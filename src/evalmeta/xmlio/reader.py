"""Bytes to a checked element tree, hardened: what comes from anywhere enters here."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from lxml import etree

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.xmlio.document import Document, find_start_tags, line_and_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element as Element

__all__ = ["NAMESPACE", "read_xml"]

NAMESPACE: Final = "http://soap.sforce.com/2006/04/metadata"

_DECLARED_ENCODING: Final = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\bencoding\s*=\s*["']([^"']*)["']""")
_CODECS: Final = {"UTF-8": "utf-8-sig", "UTF8": "utf-8-sig", "US-ASCII": "ascii", "ASCII": "ascii"}
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_DOCTYPE: Final = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->)*+(?=<!DOCTYPE)", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"""\s([^\s=<>"'/]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
# In so small a file no attributes and namespaces are too many.
_HARMLESS_BYTES: Final = 20_000
_LONG_NAMESPACE: Final = re.compile(rb"xmlns[^<]{%d}" % (limits.MAX_XML_NAMESPACE_CHARS - 5))
_TOO_DEEP: Final = etree.XPath("(" + "/*" * (limits.MAX_XML_DEPTH + 1) + ")[1]")
_REASON_CHARS: Final = 200
_PLACE_OR_FUNCTION: Final = re.compile(r"^xml[A-Z]\w+: |, line \d+, column \d+.*$", re.DOTALL)
_PLAINER: Final = {"no name": "an & that stands for itself"}
# By words of libxml2's: what to do about what is no question of tags.
_WAYS_OUT: Final = {
    "is empty": "Write a definition into it, or remove the file.",
    "Start tag expected": "Begin the file with an element; only an XML declaration and comments may precede it.",
    "declaration allowed only": "Move the XML declaration to the file's first character, or remove it.",
    "Char value": "Remove the control character; XML has none but tabs and line breaks.",
    "out of allowed range": "Remove the control character; XML has none but tabs and line breaks.",
    "Extra content": "Keep one root element; nothing but comments may follow it.",
}
_TAGS_HINT: Final = "Close every tag in order and write & as &amp; and < as &lt; in text."
_NAME_CHARS: Final = 40


def read_xml(
    data: bytes,
    *,
    label: str,
    max_bytes: int = limits.MAX_XML_BYTES,
    max_elements: int = limits.MAX_XML_ELEMENTS,
    max_attributes: int = limits.MAX_XML_ATTRIBUTES,
    keep_comments: bool = False,
) -> Document:
    """Reads XML that comes from anywhere, safely.

    No DOCTYPE, so no entity beyond the five and character references; no network, no
    file access; UTF-8 only; size and depth are limited.

    Args:
        data: the file's bytes.
        label: its name as messages show it.
        max_bytes: how large it may be.
        max_elements: how many elements it may have, told by their ends before it is parsed.
        max_attributes: how many attributes it may have.
        keep_comments: keep comments and processing instructions; the codecs read
            documents without.

    Raises:
        InvalidMetadata: with one problem that has code, place and next step.
    """
    _check_size(data, label, max_bytes)
    # Every element takes four bytes or more.
    if len(data) > 4 * max_elements:
        _check_elements(data, label, max_elements)
    _check_encoding(data, label)
    _check_doctype(data, label)
    if len(data) > _HARMLESS_BYTES:
        _check_tags(data, label, max_attributes)
    document = Document(label=label, data=data, root=_parse(data, label, keep_comments=keep_comments))
    for element in _TOO_DEEP(document.root):
        raise _too_deep(document.location(element))
    return document


def _parse(data: bytes, label: str, *, keep_comments: bool) -> Element:
    try:
        return etree.fromstring(data, _parser(keep_comments=keep_comments))
    except etree.XMLSyntaxError as error:
        raise _unreadable(label, error) from None


@cache
def _parser(*, keep_comments: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=not keep_comments,
        remove_pis=not keep_comments,
    )


def _check_size(data: bytes, label: str, max_bytes: int) -> None:
    if len(data) > max_bytes:
        raise _refuse(
            "xml-too-large",
            Location(label),
            f"the file has {len(data):,} bytes; at most {max_bytes:,} are read",
            "Split the test cases over several definitions.",
        )


def _check_elements(data: bytes, label: str, max_elements: int) -> None:
    count = data.count(b"</") + data.count(b"/>")
    if count > max_elements:
        raise _refuse(
            "xml-too-large",
            Location(label),
            f"the file has {count:,} elements; at most {max_elements:,} are read",
            "Split it into several.",
        )


def _check_encoding(data: bytes, label: str) -> None:
    declared = _DECLARED_ENCODING.match(data)
    encoding = declared.group(1).decode("ascii", "replace") if declared else "UTF-8"
    if data.startswith(_UTF16_BOMS) or b"\x00" in data[:4]:
        encoding = "UTF-16"
    codec = _CODECS.get(encoding.upper())
    if codec is None:
        message = f"the file is encoded in {encoding[:_NAME_CHARS]}; metadata is UTF-8"
        raise _encoding_error(Location(label, 1, 1), message)
    try:
        data.decode(codec)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8", "replace")
        place = Location(label, *line_and_column(before, len(before)))
        message = f"the byte 0x{error.object[error.start]:02X} is no {encoding.upper()}; metadata is UTF-8"
        raise _encoding_error(place, message) from None


def _check_doctype(data: bytes, label: str) -> None:
    if b"<!DOCTYPE" in data:
        text = data.decode("utf-8-sig")
        if found := _DOCTYPE.match(text):
            raise _refuse(
                "xml-doctype",
                Location(label, *line_and_column(text, found.end())),
                "the file has a DOCTYPE",
                "Remove it: metadata files have none, and entities beyond &amp; &lt; &gt; &apos; &quot; are refused.",
            )


def _check_tags(data: bytes, label: str, max_attributes: int) -> None:
    """Refuses attributes and namespaces that would cost far more than their bytes: each element knows them all."""
    if (
        data.count(b"=") > max_attributes
        or data.count(b"xmlns") > limits.MAX_XML_NAMESPACES
        or _LONG_NAMESPACE.search(data)
    ):
        text = data.decode("utf-8-sig")
        for start, message in _excesses(text, max_attributes):
            place = Location(label, *line_and_column(text, start))
            raise _refuse("xml-too-large", place, message, f'Write xmlns="{NAMESPACE}" on the root element only.')


def _excesses(text: str, max_attributes: int) -> Iterator[tuple[int, str]]:
    namespaces: set[str] = set()
    count = 0
    for start, end in find_start_tags(text):
        for attribute in _ATTRIBUTE.finditer(text, start, end):
            count += 1
            if count > max_attributes:
                yield start, f"the file has more than {max_attributes:,} attributes"
            if attribute[1].startswith("xmlns"):
                namespaces.add(attribute[0].strip())
                if len(attribute[0]) > limits.MAX_XML_NAMESPACE_CHARS:
                    yield start, f"a namespace is declared with more than {limits.MAX_XML_NAMESPACE_CHARS} characters"
                if len(namespaces) > limits.MAX_XML_NAMESPACES:
                    yield start, f"the file declares more than {limits.MAX_XML_NAMESPACES} namespaces"


def _unreadable(label: str, error: etree.XMLSyntaxError) -> InvalidMetadata:
    line, column = error.position
    location = Location(label, max(line or 1, 1), max(column or 1, 1))
    reason = _PLACE_OR_FUNCTION.sub("", str(error.msg or "not well-formed")).strip()
    if "depth" in reason:
        return _too_deep(location)
    return _refuse(
        "xml-malformed",
        location,
        f"not well-formed XML: {_PLAINER.get(reason, reason)[:_REASON_CHARS]}",
        next((hint for words, hint in _WAYS_OUT.items() if words in reason), _TAGS_HINT),
    )


def _too_deep(location: Location) -> InvalidMetadata:
    return _refuse(
        "xml-too-deep",
        location,
        f"elements are nested more than {limits.MAX_XML_DEPTH} levels deep",
        "A definition has 5 levels; check where the file comes from.",
    )


def _encoding_error(location: Location, message: str) -> InvalidMetadata:
    return _refuse(
        "xml-encoding", location, message, "Save it as UTF-8 and declare that, or drop the declaration's encoding."
    )


def _refuse(code: str, location: Location, message: str, hint: str) -> InvalidMetadata:
    problem = Problem(code, Severity.ERROR, location, message, hint)
    return InvalidMetadata(f"{location}: {message} [{code}]", problems=[problem], actions=[hint])
