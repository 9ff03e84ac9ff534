"""The schemas in `xsd/`: whether a document fits one, and what it declares about each element."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lxml import etree

from evalmeta import limits
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lxml.etree import ParserTarget
    from lxml.etree import _Element as Element
    from lxml.etree import _LogEntry as LogEntry

    from evalmeta.xmlio.reader import Document


XML_BLANKS: Final = " \t\r\n"
BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_INT: Final = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,10})")
_INT_RANGE: Final = range(-(2**31), 2**31)
_XS: Final = "{http://www.w3.org/2001/XMLSchema}"
_SLICE_BYTES: Final = 2_048


class _NoTree:
    """A parser target that builds nothing."""

    def close(self) -> None:
        """End the document."""


class Field(NamedTuple):
    """A descendant that occurs at most once: its tags from the parent down, and whether it is required."""

    tags: tuple[str, ...]
    is_required: bool


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a schema declares about an element.

    Attributes:
        children: the declarations of its children by tag; None for an element that contains text.
        fields: descendants that occur at most once.
        base: the name of its type, such as `int`.
        enumeration: the only valid texts; empty if every text is valid.
    """

    children: Mapping[str, Declaration] | None
    fields: tuple[Field, ...] = ()
    base: str = "string"
    enumeration: tuple[str, ...] = ()

    def accepts(self, text: str) -> bool:
        """Return whether a text is a valid value of the element."""
        match self.base:
            case "int":
                return parse_integer(text) is not None
            case "boolean":
                return text.strip(XML_BLANKS) in BOOLEANS
            case _:
                return not self.enumeration or text in self.enumeration


def schema_dir() -> Path:
    """Return the folder of the schemas: inside an installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "xsd"
    return installed if installed.is_dir() else package.parent.parent / "xsd"


def find_fault(document: Document, xsd: str) -> LogEntry | None:
    """Return one error that libxml2 finds in a document, None if the document fits the schema."""
    schema = _schema(xsd)
    # libxml2 logs every error of a tree with its path, which takes quadratic time: a file that may have very many
    # errors is parsed again as a stream, up to the first one. Every element has at least four bytes.
    data, most = document.data, limits.MAX_LOGGED_ELEMENTS
    if len(data) > 4 * most and (data.count(b"<") > 2 * most or data.count(b"=") > limits.MAX_PROBLEMS):
        return find_fault_in_stream(data, schema)
    return None if schema.validate(document.root) else schema.error_log[0]


def find_fault_in_stream(data: bytes, schema: etree.XMLSchema) -> LogEntry | None:
    """Return the first error in document order, without a tree and without a log of the others."""
    target = cast("ParserTarget[None]", _NoTree())
    parser = etree.XMLParser(target=target, schema=schema, resolve_entities=False, no_network=True, load_dtd=False)
    for start in range(0, len(data), _SLICE_BYTES):
        parser.feed(data[start : start + _SLICE_BYTES])
        for fault in parser.feed_error_log:
            return fault
    parser.close()
    return next(iter(parser.feed_error_log), None)


@cache
def declarations(xsd: str) -> Mapping[str, Declaration]:
    """Return the declarations of a schema's root elements by tag.

    Reads only the parts of XML Schema that the schemas in `xsd/` use: complex types that are one repeated choice,
    simple types, and identity constraints.
    """
    root = etree.parse(schema_dir() / xsd).getroot()
    types = {f"m:{each.get('name')}": each for each in root.iterchildren(f"{_XS}complexType", f"{_XS}simpleType")}
    return {_tag(each.get("name", "")): _declaration(each, types) for each in root.iterchildren(f"{_XS}element")}


def parse_integer(text: str) -> int | None:
    """Return a 32-bit integer (xs:int), None if the text is not one."""
    found = _INT.fullmatch(text.strip(XML_BLANKS))
    # Leading zeros are dropped, because Python parses at most 4,300 digits.
    if found and (number := int(found[1] + (found[2] or "0"))) in _INT_RANGE:
        return number
    return None


@cache
def _schema(xsd: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(schema_dir() / xsd))


def _declaration(element: Element, types: Mapping[str, Element]) -> Declaration:
    name = element.get("type", "")
    kind = types.get(name)
    if kind is None:
        return Declaration(None, base=name.rpartition(":")[2])
    if kind.tag == f"{_XS}simpleType":
        values = kind.iterfind(f"{_XS}restriction/{_XS}enumeration")
        return Declaration(None, enumeration=tuple(each.get("value", "") for each in values))
    children = kind.iterfind(f"{_XS}choice/{_XS}element")
    constraints = element.iterchildren(f"{_XS}key", f"{_XS}unique")
    return Declaration(
        {_tag(each.get("name", "")): _declaration(each, types) for each in children},
        tuple(_field(each) for each in constraints if each[0].get("xpath") == "."),
    )


def _field(constraint: Element) -> Field:
    """Read a field from a key, whose selector is the first child and whose field is the second."""
    steps = constraint[1].get("xpath", "").split("/")
    return Field(tuple(_tag(step.removeprefix("m:")) for step in steps), constraint.tag == f"{_XS}key")


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
