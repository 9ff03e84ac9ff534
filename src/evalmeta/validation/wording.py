"""What can be wrong with a document's structure, in words: each fault with its place and the way out."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from evalmeta.model.problem import Problem, Severity
from evalmeta.validation.finding import Complaint, quote
from evalmeta.xmlio.document import local_name
from evalmeta.xmlio.reader import NAMESPACE
from evalmeta.xmlio.sketch import definition_type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from lxml.etree import _Element as Element

    from evalmeta.xmlio.document import Document

__all__ = [
    "tell_attribute",
    "tell_count",
    "tell_duplicate",
    "tell_not_text",
    "tell_stray_text",
    "tell_unknown",
    "tell_value",
]

_HABITS: Final = {
    "testCases": "testCase",
    "contextVariables": "contextVariable",
    "expectations": "expectation",
    "input": "inputs",
    "parameters": "parameter",
    "masterLabel": "name",
    "expectation": "scorer",
    "scorer": "expectation",
}
_DUE: Final = {"isReference": "true or false", "scorerType": "Standard or Custom"}


def tell_attribute(document: Document, element: Element, name: str) -> Complaint:
    """Says that an element has an attribute."""
    message = f"<{local_name(element)}> has an attribute {quote(name)}; metadata elements have none"
    return Complaint(_problem(document, element, "attribute-unknown", message, f"Remove {quote(name)}."))


def tell_unknown(document: Document, child: Element, parent: Element, known: Collection[str]) -> Complaint:
    """Says that an element is none of those that its parent may have, and which was probably meant."""
    name, names = local_name(child), sorted(known)
    if name in known:
        message = f"<{name}> is not in the namespace {NAMESPACE}"
        hint = f'Put xmlns="{NAMESPACE}" on the root element only.'
    else:
        message = f"<{name}> is not known inside <{local_name(parent)}>"
        hint = _unwrap(child, parent, known) or _near(name, names)
    return Complaint(_problem(document, child, "element-unknown", message, hint), document.location(parent))


def _unwrap(child: Element, parent: Element, known: Collection[str]) -> str:
    """Says that an element only wraps what may stand in its parent by itself; nothing when it does not."""
    inside = {local_name(each) for each in child}
    (only,) = inside if len(inside) == 1 else ("",)
    if only not in known or not any(len(each) for each in child):
        return ""
    return f"Remove <{local_name(child)}> and keep what it holds: <{only}> stands directly in <{local_name(parent)}>."


def _near(name: str, known: Sequence[str]) -> str:
    near = [_HABITS[name]] if _HABITS.get(name) in known else get_close_matches(name, known, n=1)
    return f"Did you mean <{near[0]}>?" if near else f"Known here: {', '.join(known)}."


def tell_count(document: Document, parent: Element, field: str) -> Iterator[Complaint]:
    """Says that a field is missing, or each place where it stands again."""
    if all(local_name(child) != field for child in parent):
        message = f"<{local_name(parent)}> has no <{field}>"
        problem = _problem(document, parent, "element-missing", message, f"Add <{field}>; it is required.")
        yield Complaint(problem, problem.location)
    found = [child for child in parent if child.tag == f"{{{NAMESPACE}}}{field}"]
    for extra in found[1:]:
        message = f"<{field}> stands more than once in <{local_name(parent)}>"
        hint = f"Keep one; the first is at line {document.location(found[0]).line}."
        yield Complaint(_problem(document, extra, "element-repeated", message, hint))


def tell_duplicate(document: Document, number: Element) -> Complaint:
    """Says that a test case has the number of another."""
    message = f"number {quote((number.text or '').strip())} is taken by an earlier test case"
    hint = "Give every test case a number of its own."
    return Complaint(_problem(document, number, "number-duplicate", message, hint))


def tell_stray_text(document: Document, element: Element) -> Iterator[Complaint]:
    """Says each place where there is text and only elements may stand."""
    message = f"text stands between the elements of <{local_name(element)}>"
    hint = "Remove it, or put it into the element it belongs to."
    for place in document.texts(element):
        yield Complaint(Problem("text-stray", Severity.ERROR, place, message, hint))


def tell_not_text(document: Document, element: Element) -> Complaint:
    """Says that there is an element where only text may stand."""
    message = f"<{local_name(element)}> holds <{local_name(element[0])}>; it takes text only"
    hint = "Write text; &lt; and &amp; stand for < and & in it."
    return Complaint(_problem(document, element[0], "element-unknown", message, hint), document.location(element))


def tell_value(document: Document, element: Element) -> Complaint:
    """Says that an element's text is none of the values it takes."""
    name = local_name(element)
    message = f"<{name}> is {quote(element.text or '')}"
    hint = f"Write {_due(document, name)}."
    problem = _problem(document, element, "value-invalid", message, hint)
    return Complaint(problem, problem.location)


def _due(document: Document, name: str) -> str:
    if name != "subjectType":
        return _DUE.get(name, "a whole number of at most 9 digits")
    kind = definition_type(document)
    *others, last = kind.subject_types if kind else ("AGENT",)
    return f"{', '.join(others)} or {last}" if others else f"{last}, the only supported type"


def _problem(document: Document, element: Element, code: str, message: str, hint: str) -> Problem:
    return Problem(code, Severity.ERROR, document.location(element), message, hint)
