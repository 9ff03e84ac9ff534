"""What a schema's refusal means: the errors of libxml2 and xmlschema put into words, each with its place."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, cast

from xmlschema import XMLSchemaChildrenValidationError, XMLSchemaDecodeError

from evalmeta.model.problem import Problem, Severity
from evalmeta.validation.finding import Complaint, quote
from evalmeta.xmlio.document import local_name
from evalmeta.xmlio.parts import odd_attributes
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml.etree import _Element as Element
    from lxml.etree import _LogEntry as LogEntry
    from xmlschema import XMLSchemaValidationError

    from evalmeta.xmlio.document import Document

__all__ = ["explain_attributes", "explain_structure", "explain_values"]

_HABITS: Final = {
    "testCases": "testCase",
    "contextVariables": "contextVariable",
    "expectations": "expectation",
    "input": "inputs",
    "parameters": "parameter",
    "masterLabel": "name",
}
_INVALID: Final = "SCHEMAV_CVC_DATATYPE_VALID_1_2_1"
_NOT_LISTED: Final = "SCHEMAV_CVC_ENUMERATION_VALID"
_STRAY_TEXT: Final = "SCHEMAV_CVC_COMPLEX_TYPE_2_3"
_OF_ATTRIBUTE: Final = re.compile("Element '[^']*', attribute ")
_DUE: Final = {"subjectType": "AGENT, the only supported type", "isReference": "true or false"}


def explain_structure(document: Document, error: XMLSchemaValidationError) -> Iterator[Complaint]:
    """Puts an error of xmlschema into words; errors that concern attributes are left to `explain_attributes`."""
    element = cast("Element", error.elem)
    reason = error.reason or ""
    field = _key_field(reason)
    if isinstance(error, XMLSchemaChildrenValidationError):
        yield _unknown_child(document, element, error)
    elif field is not None:
        yield from _wrong_count(document, element, field)
    elif reason.startswith("duplicated value"):
        yield _duplicate_number(document, element)
    elif reason.startswith("character data"):
        yield _stray_text(document, element)
    elif reason.startswith("a simple content"):
        yield _not_text(document, element)
    elif isinstance(error, XMLSchemaDecodeError) or reason.startswith("value must"):
        yield _wrong_value(document, element)


def explain_values(document: Document, errors: Iterable[LogEntry]) -> Iterator[Complaint]:
    """Puts libxml2's errors about values and text into words: xmlschema takes `1_0` and exotic digits and blanks."""
    explain = {_INVALID: _wrong_value, _NOT_LISTED: _wrong_value, _STRAY_TEXT: _stray_text}
    prefixes = {prefix: uri for each in document.root.iter() for prefix, uri in each.nsmap.items() if prefix}
    known = (error for error in errors if error.type_name in explain and not _OF_ATTRIBUTE.match(error.message))
    for error in known:
        found = document.root.getroottree().xpath(error.path or "", namespaces=prefixes)
        yield explain[error.type_name](document, cast("list[Element]", found)[0])


def explain_attributes(document: Document) -> Iterator[Complaint]:
    """Finds every attribute that metadata does not have."""
    for element in document.root.iter():
        for name in odd_attributes(element):
            message = f"<{local_name(element)}> has an attribute {quote(name)}; metadata elements have none"
            yield Complaint(_problem(document, element, "attribute-unknown", message, f"Remove {quote(name)}."))


def _key_field(reason: str) -> str | None:
    """Gives the first step of the field that a key misses or finds twice, None for other errors."""
    if reason.startswith("missing key field") or "selects multiple values" in reason:
        return reason.split("'", maxsplit=2)[1].partition("/")[0].removeprefix("m:")
    return None


def _unknown_child(document: Document, parent: Element, error: XMLSchemaChildrenValidationError) -> Complaint:
    known = sorted({each.local_name for each in error.validator.iter_elements()})  # type: ignore[union-attr]
    child = parent[error.index]
    name = local_name(child)
    if name in known:
        message = f"<{name}> is not in the namespace {NAMESPACE}"
        hint = f'Put xmlns="{NAMESPACE}" on the root element only.'
    else:
        message = f"<{name}> is not known inside <{local_name(parent)}>"
        near = [_HABITS[name]] if _HABITS.get(name) in known else get_close_matches(name, known, n=1)
        hint = f"Did you mean <{near[0]}>?" if near else f"Known here: {', '.join(known)}."
    return Complaint(_problem(document, child, "element-unknown", message, hint), document.location(parent))


def _wrong_count(document: Document, parent: Element, field: str) -> Iterator[Complaint]:
    if all(local_name(child) != field for child in parent):
        message = f"<{local_name(parent)}> has no <{field}>"
        problem = _problem(document, parent, "element-missing", message, f"Add <{field}>; it is required.")
        yield Complaint(problem, problem.location)
    found = [child for child in parent if child.tag == f"{{{NAMESPACE}}}{field}"]
    for extra in found[1:]:
        message = f"<{field}> stands more than once in <{local_name(parent)}>"
        hint = f"Keep one; the first is at line {document.location(found[0]).line}."
        yield Complaint(_problem(document, extra, "element-repeated", message, hint))


def _duplicate_number(document: Document, case: Element) -> Complaint:
    number = next(child for child in case if local_name(child) == "number")
    message = f"number {quote((number.text or '').strip())} is taken by an earlier test case"
    hint = "Give every test case a number of its own."
    return Complaint(_problem(document, number, "number-duplicate", message, hint))


def _stray_text(document: Document, element: Element) -> Complaint:
    message = f"text stands between the elements of <{local_name(element)}>"
    hint = "Remove it, or put it into the element it belongs to."
    return Complaint(_problem(document, element, "text-stray", message, hint))


def _not_text(document: Document, element: Element) -> Complaint:
    message = f"<{local_name(element)}> holds <{local_name(element[0])}>; it takes text only"
    hint = "Write text; &lt; and &amp; stand for < and & in it."
    return Complaint(_problem(document, element[0], "element-unknown", message, hint), document.location(element))


def _wrong_value(document: Document, element: Element) -> Complaint:
    name = local_name(element)
    message = f"<{name}> is {quote(element.text or '')}"
    hint = f"Write {_DUE.get(name, 'a whole number of at most 9 digits')}."
    problem = _problem(document, element, "value-invalid", message, hint)
    return Complaint(problem, problem.location)


def _problem(document: Document, element: Element, code: str, message: str, hint: str) -> Problem:
    return Problem(code, Severity.ERROR, document.location(element), message, hint)
