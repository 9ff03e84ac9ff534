"""Reading of XML from untrusted sources, and the exact location of every element."""

from __future__ import annotations

import re
from array import array
from functools import cache
from typing import TYPE_CHECKING, AnyStr, Final

from lxml import etree

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Location, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lxml.etree import _Element as Element


NAMESPACE: Final = "http://soap.sforce.com/2006/04/metadata"
_DECLARED_ENCODING: Final = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\bencoding\s*=\s*["']([^"']*)["']""")
_CODECS: Final = {"UTF-8": "utf-8-sig", "UTF8": "utf-8-sig", "US-ASCII": "ascii", "ASCII": "ascii"}
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_DOCTYPE: Final = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->)*+(?=<!DOCTYPE)", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"""\s([^\s=<>"'/]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
# A file of this size cannot have too many attributes or namespaces.
_HARMLESS_BYTES: Final = 20_000
_LONG_NAMESPACE: Final = re.compile(rb"xmlns[^<]{%d}" % (limits.MAX_XML_NAMESPACE_CHARS - 5))
_TOO_DEEP: Final = etree.XPath("(" + "/*" * (limits.MAX_XML_DEPTH + 1) + ")[1]")
_REASON_CHARS: Final = 200
_PLACE_OR_FUNCTION: Final = re.compile(r"^xml[A-Z]\w+: |, line \d+, column \d+.*$", re.DOTALL)
_PLAIN_REASONS: Final = {"no name": "unescaped '&'"}
# Hints for faults that are not about tags, by words of libxml2's message.
_HINTS: Final = {
    "is empty": "Write a definition into the file, or remove it.",
    "Start tag expected": "Begin the file with an element, after the XML declaration and comments.",
    "declaration allowed only": "Move the XML declaration to the file's first character, or remove it.",
    "Char value": "Remove the control character; XML allows only tabs and line breaks.",
    "out of allowed range": "Remove the control character; XML allows only tabs and line breaks.",
    "Extra content": "Keep one root element; only comments may follow it.",
}
_TAGS_HINT: Final = "Close every tag in order and write & as &amp; and < as &lt; in text."
_NAME_CHARS: Final = 40
# Possessive quantifiers, because a start tag may have megabytes.
_MARKUP: Final = re.compile(
    r"""<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|</[^>]*+>|(<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>)""",
    re.DOTALL,
)
_MARK_BYTES: Final = 3
_BLANKS: Final = re.compile(r"(?:[ \t\r\n]++|&#0*+(?:9|10|13|32);|&#x0*+(?:9|[aAdD]|20);)*+")

Step = tuple[str, int]
"""One step of a path in a document: the local name of a child, and its index among children of that name."""


def read_xml(
    data: bytes,
    *,
    label: str,
    max_bytes: int = limits.MAX_XML_BYTES,
    max_elements: int = limits.MAX_XML_ELEMENTS,
    max_attributes: int = limits.MAX_XML_ATTRIBUTES,
    keep_comments: bool = False,
) -> Document:
    """Read XML from an untrusted source safely.

    A DOCTYPE is refused, so that there are no entities except the five predefined ones and character references. The
    parser opens no file and no connection. The encoding must be UTF-8; size and depth are limited. Elements are counted
    by their end tags before the file is parsed. `keep_comments` keeps processing instructions, too. Raise
    InvalidMetadata, with one problem, if the file is not safe, well-formed XML.
    """
    if len(data) > max_bytes:
        message = f"the file has {len(data):,} bytes; at most {max_bytes:,} are allowed"
        raise _refuse("xml-too-large", Location(label), message, "Split the test cases into several definitions.")
    if count := excess_elements(data, max_elements):
        message = f"the file has {count:,} elements; at most {max_elements:,} are allowed"
        raise _refuse("xml-too-large", Location(label), message, "Split it into several files.")
    _check_encoding(data, label)
    _check_doctype(data, label)
    if len(data) > _HARMLESS_BYTES:
        _check_tags(data, label, max_attributes)
    try:
        root = etree.fromstring(data, _parser(keep_comments=keep_comments))
    except etree.XMLSyntaxError as error:
        raise _unreadable(label, error) from None
    document = Document(label=label, data=data, root=root)
    for element in _TOO_DEEP(document.root):
        raise _too_deep(document.location(element))
    return document


def excess_elements(data: bytes, most: int) -> int:
    """Return the number of elements, counted by their end tags, if it is more than `most`; 0 otherwise."""
    # Every element has at least four bytes, and one "<" of its own, which is counted faster than two characters.
    if len(data) <= 4 * most or data.count(b"<") <= most:
        return 0
    count = data.count(b"</") + data.count(b"/>")
    return count if count > most else 0


class Document:
    """A well-formed XML document with its bytes; `label` is the file's name in messages."""

    __slots__ = ("_children", "_order", "_places", "_root", "_texts", "data", "label")

    def __init__(self, *, label: str, data: bytes, root: Element | None = None) -> None:
        self.label = label
        self.data = data
        self._root = root
        self._children: dict[tuple[Element, str], list[Element]] = {}
        self._order: dict[Element, int] = {}
        self._places = array("I")
        self._texts: dict[int, list[tuple[int, int]]] = {}

    @property
    def root(self) -> Element:
        """Return the root element; a document that is known to be safe is parsed when this is first needed."""
        if self._root is None:
            self._root = etree.fromstring(self.data, _parser(keep_comments=False))
        return self._root

    def location(self, element: Element | None = None) -> Location:
        """Return where the start tag of an element, by default the root element, begins."""
        if not self._places:
            self._places = _places(self.data)
            self._order = {element: place for place, element in enumerate(self.root.iter("*"))}
        place = 2 * self._order[self.root if element is None else element]
        return Location(self.label, self._places[place], self._places[place + 1])

    def lines_of(self, name: str) -> list[int]:
        """Return the lines of the root's children with a local name, in the root's namespace."""
        children = self._children_of(self.root, name)
        # Comments, CDATA sections and processing instructions, other than the XML declaration, may contain "<name" too.
        if b"<!" in self.data or self.data.rfind(b"<?") > _MARK_BYTES:
            return [self.location(child).line for child in children]
        # Without prefixes, the expression begins with a constant, which is found five times as fast.
        prefix = rb"(?:[^\s<>/]+:)?" if b":%s" % name.encode() in self.data else b""
        tag = re.compile(rb"<%s%s(?=[\s/>])" % (prefix, re.escape(name).encode()))
        places = _lines_and_columns(self.data, b"\n", (match.start() for match in tag.finditer(self.data)))
        line_of = {child: line for child, (line, _) in zip(self.root.iter(f"{{*}}{name}"), places, strict=True)}
        return [line_of[child] for child in children]

    def texts(self, element: Element) -> list[Location]:
        """Return where each text of an element that is not blank begins: before, between and after its children."""
        self.location()
        if not self._texts:
            text = self.data.decode("utf-8-sig", "replace")
            starts = list(_texts(text))
            places = _lines_and_columns(text, "\n", (start for _, start in starts))
            for (inside, _), place in zip(starts, places, strict=True):
                self._texts.setdefault(inside, []).append(place)
        return [Location(self.label, *place) for place in self._texts.get(self._order[element], ())]

    def find(self, steps: Sequence[Step]) -> Element:
        """Return the deepest existing element of a path that begins at the root, in the root's namespace."""
        here = self.root
        for name, index in steps:
            children = self._children_of(here, name)
            if index >= len(children):
                return here
            here = children[index]
        return here

    def _children_of(self, parent: Element, name: str) -> list[Element]:
        # Rules ask for many children of the same parent: counting them each time would take quadratic time.
        key = parent, name
        if key not in self._children:
            namespace, end, _ = str(self.root.tag).rpartition("}")
            self._children[key] = list(parent.iterchildren(f"{namespace}{end}{name}"))
        return self._children[key]


def local_name(element: Element) -> str:
    """Return an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character counted from 0."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def find_start_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield where every start tag of any text begins and ends, in order, as characters from 0."""
    return (match.span(1) for match in _MARKUP.finditer(text) if match.lastindex)


def find_markup(text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield tags, comments, CDATA sections and processing instructions from a character on; start tags are a group."""
    return _MARKUP.finditer(text, start)


@cache
def _parser(*, keep_comments: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=not keep_comments,
        remove_pis=not keep_comments,
    )


def _check_encoding(data: bytes, label: str) -> None:
    declared = _DECLARED_ENCODING.match(data)
    encoding = declared.group(1).decode("ascii", "replace") if declared else "UTF-8"
    if data.startswith(_UTF16_BOMS) or b"\x00" in data[:4]:
        encoding = "UTF-16"
    codec = _CODECS.get(encoding.upper())
    if codec is None:
        message = f"the encoding of the file is {encoding[:_NAME_CHARS]}; metadata must be UTF-8"
        raise _encoding_error(Location(label, 1, 1), message)
    try:
        data.decode(codec)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8", "replace")
        place = Location(label, *line_and_column(before, len(before)))
        message = f"the byte 0x{error.object[error.start]:02X} is not valid {encoding.upper()}; metadata must be UTF-8"
        raise _encoding_error(place, message) from None


def _check_doctype(data: bytes, label: str) -> None:
    if b"<!DOCTYPE" in data:
        text = data.decode("utf-8-sig")
        if before := _DOCTYPE.match(text):
            place = Location(label, *line_and_column(text, before.end()))
            hint = "Remove it; the only entities in metadata are &amp; &lt; &gt; &apos; &quot;."
            raise _refuse("xml-doctype", place, "the file has a DOCTYPE", hint)


def _check_tags(data: bytes, label: str, max_attributes: int) -> None:
    """Refuse attributes and namespaces that would need much more memory than their bytes."""
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
    message = f"not well-formed XML: {_PLAIN_REASONS.get(reason, reason)[:_REASON_CHARS]}"
    hint = next((hint for words, hint in _HINTS.items() if words in reason), _TAGS_HINT)
    return _refuse("xml-malformed", location, message, hint)


def _too_deep(location: Location) -> InvalidMetadata:
    message = f"elements are nested more than {limits.MAX_XML_DEPTH} levels deep"
    return _refuse("xml-too-deep", location, message, "Check where the file comes from; a definition has 5 levels.")


def _encoding_error(location: Location, message: str) -> InvalidMetadata:
    return _refuse("xml-encoding", location, message, "Save it as UTF-8 and declare that encoding, or none.")


def _refuse(code: str, location: Location, message: str, hint: str) -> InvalidMetadata:
    problem = Problem(code, Severity.ERROR, location, message, hint)
    return InvalidMetadata(f"{location}: {message} [{code}]", problems=[problem], actions=[hint])


def _places(data: bytes) -> array[int]:
    """Return line and column, from 1, of every start tag of a well-formed document, one after the other."""
    text = data.decode("utf-8-sig", "replace")
    places = array("I")
    for place in _lines_and_columns(text, "\n", (start for start, _ in find_start_tags(text))):
        places.extend(place)
    return places


def _lines_and_columns(text: AnyStr, line_end: AnyStr, offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield what `line_and_column` returns for each of ascending offsets, in one pass."""
    line, line_start, seen = 1, 0, 0
    for start in offsets:
        line += text.count(line_end, seen, start)
        line_start = max(line_start, text.rfind(line_end, seen, start) + 1)
        yield line, start - line_start + 1
        seen = start


def _texts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the element around each text that is not blank of a well-formed document, and where the text begins.

    Elements are numbers in document order. Everything between two tags is one text, including comments.
    """
    inside: list[int] = []
    count = end = 0
    is_reported = True
    for match in _MARKUP.finditer(text):
        start = _skip_blanks(text, end, match.start())
        if not is_reported and (start < match.start() or _is_text_section(text, match)):
            yield inside[-1], start
            is_reported = True
        if match.lastindex:
            is_reported = False
            if not text.endswith("/>", match.start(), match.end()):
                inside.append(count)
            count += 1
        elif text.startswith("</", match.start()):
            inside.pop()
            is_reported = not inside
        end = match.end()


def _skip_blanks(text: str, start: int, end: int) -> int:
    blanks = _BLANKS.match(text, start, end)
    return blanks.end() if blanks else start


def _is_text_section(text: str, markup: re.Match[str]) -> bool:
    start, end = markup.start() + len("<![CDATA["), markup.end() - len("]]>")
    return text.startswith("<![CDATA[", markup.start()) and _skip_blanks(text, start, end) < end
