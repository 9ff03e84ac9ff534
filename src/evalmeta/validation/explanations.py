"""What a schema's refusal means: the errors of libxml2 and xmlschema, each told of the element it is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from lxml import etree
from xmlschema import XMLSchemaChildrenValidationError, XMLSchemaDecodeError

from evalmeta.validation import wording
from evalmeta.xmlio.parts import odd_attributes, parse_integer
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml.etree import _Element as Element
    from lxml.etree import _LogEntry as LogEntry
    from xmlschema import XMLSchemaValidationError

    from evalmeta.validation.finding import Complaint
    from evalmeta.xmlio.document import Document

__all__ = ["explain_attributes", "explain_numbers", "explain_structure", "explain_values"]

_INVALID: Final = "SCHEMAV_CVC_DATATYPE_VALID_1_2_1"
_NOT_LISTED: Final = "SCHEMAV_CVC_ENUMERATION_VALID"
_STRAY_TEXT: Final = "SCHEMAV_CVC_COMPLEX_TYPE_2_3"
_OF_TEXT: Final = frozenset({_INVALID, _NOT_LISTED, _STRAY_TEXT})
_OF_ATTRIBUTE: Final = re.compile("Element '[^']*', attribute ")
_NUMBERS: Final = etree.XPath("m:testCase/m:number[1]", namespaces={"m": NAMESPACE})
_WITH_ATTRIBUTES: Final = etree.XPath("descendant-or-self::*[@*]")


def explain_structure(document: Document, error: XMLSchemaValidationError) -> Iterator[Complaint]:
    """Puts an error of xmlschema into words; attributes and equal numbers are left to functions of their own.

    xmlschema tells the second of equal numbers only, and stops at an `xsi:type` that names no type.
    """
    element = cast("Element", error.elem)
    reason = error.reason or ""
    field = _key_field(reason)
    if isinstance(error, XMLSchemaChildrenValidationError):
        known = {each.local_name for each in error.validator.iter_elements()}  # type: ignore[union-attr]
        yield wording.tell_unknown(document, element[error.index], element, known)
    elif field is not None:
        yield from wording.tell_count(document, element, field)
    elif reason.startswith("character data"):
        yield from wording.tell_stray_text(document, element)
    elif reason.startswith("a simple content"):
        yield wording.tell_not_text(document, element)
    elif isinstance(error, XMLSchemaDecodeError) or reason.startswith("value must"):
        yield wording.tell_value(document, element)


def explain_values(document: Document, errors: Iterable[LogEntry]) -> Iterator[Complaint]:
    """Puts libxml2's errors about values and text into words: xmlschema takes `1_0` and exotic digits and blanks."""
    prefixes = {prefix: uri for each in document.root.iter() for prefix, uri in each.nsmap.items() if prefix}
    known = (error for error in errors if error.type_name in _OF_TEXT and not _OF_ATTRIBUTE.match(error.message))
    for error in known:
        found = document.root.getroottree().xpath(error.path or "", namespaces=prefixes)
        element = cast("list[Element]", found)[0]
        if error.type_name == _STRAY_TEXT:
            yield from wording.tell_stray_text(document, element)
        else:
            yield wording.tell_value(document, element)


def explain_attributes(document: Document) -> Iterator[Complaint]:
    """Finds every attribute that metadata does not have."""
    for element in cast("list[Element]", _WITH_ATTRIBUTES(document.root)):
        for name in odd_attributes(element):
            yield wording.tell_attribute(document, element, name)


def explain_numbers(document: Document) -> Iterator[Complaint]:
    """Finds every test case that has the number of an earlier one."""
    seen: set[int] = set()
    for element in cast("list[Element]", _NUMBERS(document.root)):
        number = parse_integer(element.text or "")
        if number in seen:
            yield wording.tell_duplicate(document, element)
        elif number is not None:
            seen.add(number)


def _key_field(reason: str) -> str | None:
    """Gives the first step of the field that a key misses or finds twice, None for other errors."""
    if reason.startswith("missing key field") or "selects multiple values" in reason:
        return reason.split("'", maxsplit=2)[1].partition("/")[0].removeprefix("m:")
    return None
