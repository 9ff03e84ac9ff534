"""The structure of metadata files: what does not fit the schema, where, and what to do about it.

libxml2 decides quickly whether a document fits. A document that does not is explained in one pass over its elements.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lxml import etree

from evalmeta import limits
from evalmeta.model.problem import Problem, Severity, quote
from evalmeta.model.registry import TESTING_DEFINITION, TYPES
from evalmeta.xmlio.reader import NAMESPACE, local_name
from evalmeta.xmlio.schema import XML_BLANKS, declarations, find_fault, parse_integer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from lxml.etree import _Element as Element

    from evalmeta.model.problem import Location
    from evalmeta.model.registry import MetadataType
    from evalmeta.xmlio.reader import Document
    from evalmeta.xmlio.schema import Declaration, Field


_TYPES: Final = {f"{{{NAMESPACE}}}{row.name}": row for row in TYPES}
_TESTING: Final = f"{{{NAMESPACE}}}{TESTING_DEFINITION.name}"
_TEST_CASE: Final = f"{{{NAMESPACE}}}testCase"
_INPUTS: Final = f"{{{NAMESPACE}}}inputs"
_NUMBERS: Final = etree.XPath("m:testCase/m:number[1]", namespaces={"m": NAMESPACE})
_WITH_ATTRIBUTES: Final = etree.XPath("descendant-or-self::*[@*]")
_XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
# They only name a schema, which evalmeta does not look up.
_SCHEMA_HINTS: Final = frozenset({f"{_XSI}schemaLocation", f"{_XSI}noNamespaceSchemaLocation"})
# Names that people often write, with the element's real name.
_COMMON_MISTAKES: Final = {
    "testCases": "testCase",
    "contextVariables": "contextVariable",
    "expectations": "expectation",
    "input": "inputs",
    "parameters": "parameter",
    "masterLabel": "name",
    "expectation": "scorer",
    "scorer": "expectation",
}
_VALID_VALUES: Final = {"isReference": "true or false", "scorerType": "Standard or Custom"}


class StructureProblem(NamedTuple):
    """A problem of structure.

    Attributes:
        unreadable: the location of the element that cannot be read completely because of the problem. What a rule
            finds there would only follow from the problem.
    """

    problem: Problem
    unreadable: Location | None = None


def check_structure(document: Document, xsd: str) -> list[StructureProblem]:
    """Return what does not fit a schema, in document order; at most 1,000 problems.

    Args:
        document: the document; its root element must be the schema's.
        xsd: the schema's file name in `xsd/`.
    """
    fault = find_fault(document, xsd)
    if fault is None:
        return []
    problems = explain_structure(document, xsd)
    if not problems:
        line = f"line {fault.line}: " if fault.line else ""
        message = line + fault.message.replace(f"{{{NAMESPACE}}}", "")
        problems = [_problem(document, document.root, "value-invalid", message, f"Compare the file with {xsd}.")]
    return problems


def explain_structure(document: Document, xsd: str) -> list[StructureProblem]:
    """Return what does not fit a schema, without asking libxml2.

    Stricter than libxml2, which obeys xsi:type, and for which the numbers 0 and -0 differ.
    """
    declared = declarations(xsd).get(str(document.root.tag))
    found = chain(
        _check_attributes(document),
        _check_elements(document, declared) if declared else (),
        _check_inputs(document),
        _check_numbers(document),
    )
    return sorted(
        set(islice(found, limits.MAX_PROBLEMS)), key=lambda each: (each.problem.location, each.problem.message)
    )


def definition_type(document: Document) -> MetadataType | None:
    """Return the type of definition that a document's root element names, None for other documents."""
    return _TYPES.get(str(document.root.tag))


def odd_attributes(element: Element) -> list[str]:
    """Return the names of an element's attributes that metadata does not have.

    Hints at a schema's location are ignored. `xsi:type` and `xsi:nil` are not: they would change the element's type.
    """
    names = (str(name) for name in element.attrib if name not in _SCHEMA_HINTS)
    return [f"xsi:{name.removeprefix(_XSI)}" if name.startswith(_XSI) else name for name in names]


def _check_attributes(document: Document) -> Iterator[StructureProblem]:
    for element in cast("list[Element]", _WITH_ATTRIBUTES(document.root)):
        for name in odd_attributes(element):
            message = f"<{local_name(element)}> has an attribute {quote(name)}; metadata elements have none"
            yield _problem(document, element, "attribute-unknown", message, f"Remove {quote(name)}.")


def _check_elements(document: Document, root: Declaration) -> Iterator[StructureProblem]:
    """Find problems of elements and texts, in no order."""
    pending = [(document.root, root)]
    while pending:
        element, declared = pending.pop()
        known = declared.children
        if known is None:
            yield from _check_text(document, element, declared)
        else:
            yield from _check_children(document, element, known)
            for field in declared.fields:
                yield from _check_field(document, element, field)
            pending += [(each, below) for tag, below in known.items() for each in element.iterchildren(tag)]


def _check_text(document: Document, element: Element, declared: Declaration) -> Iterator[StructureProblem]:
    name = local_name(element)
    if len(element):
        message = f"<{name}> contains <{local_name(element[0])}>; only text is valid there"
        hint = "Write text, with &lt; for < and &amp; for &."
        yield _problem(document, element[0], "element-unknown", message, hint, unreadable=element)
    if not declared.accepts(element.text or ""):
        hint = f"Write {_valid_values(document, name)}."
        message = f"<{name}> is {quote(element.text or '')}"
        yield _problem(document, element, "value-invalid", message, hint, unreadable=element)


def _valid_values(document: Document, name: str) -> str:
    if name != "subjectType":
        return _VALID_VALUES.get(name, "a whole number of at most 9 digits")
    kind = definition_type(document)
    *others, last = kind.subject_types if kind else ("AGENT",)
    return f"{', '.join(others)} or {last}" if others else f"{last}, the only supported type"


def _check_children(document: Document, parent: Element, known: Collection[str]) -> Iterator[StructureProblem]:
    # iterchildren compares tags in C and keeps them out of Python's memory.
    if sum(1 for _ in parent.iterchildren(*known)) < len(parent):
        names = {tag.rpartition("}")[2] for tag in known}
        for child in parent:
            if child.tag not in known:
                yield _unknown_element(document, child, parent, names)
    if any(text and text.strip(XML_BLANKS) for text in (parent.text, *(child.tail for child in parent))):
        message = f"there is text between the elements of <{local_name(parent)}>"
        hint = "Remove it, or move it into the element that it belongs to."
        for place in document.texts(parent):
            yield StructureProblem(Problem("text-stray", Severity.ERROR, place, message, hint))


def _unknown_element(document: Document, child: Element, parent: Element, known: Collection[str]) -> StructureProblem:
    name = local_name(child)
    if name in known:
        message = f"<{name}> is not in the namespace {NAMESPACE}"
        hint = f'Put xmlns="{NAMESPACE}" on the root element only.'
    else:
        message = f"<{name}> is not a known element of <{local_name(parent)}>"
        hint = _unwrap(child, parent, known) or _nearest_element(name, sorted(known))
    return _problem(document, child, "element-unknown", message, hint, unreadable=parent)


def _unwrap(child: Element, parent: Element, known: Collection[str]) -> str:
    """Return the hint for an element that only wraps children of its parent, such as <testCases>; else an empty one."""
    inside = {local_name(each) for each in child}
    (only,) = inside if len(inside) == 1 else ("",)
    if only not in known or not any(len(each) for each in child):
        return ""
    return f"Remove <{local_name(child)}> and keep its contents: <{only}> belongs directly in <{local_name(parent)}>."


def _nearest_element(name: str, known: Sequence[str]) -> str:
    mistake = _COMMON_MISTAKES.get(name)
    near = [mistake] if mistake in known else get_close_matches(name, known, n=1)
    return f"Did you mean <{near[0]}>?" if near else f"Known elements: {', '.join(known)}."


def _check_field(document: Document, parent: Element, field: Field) -> Iterator[StructureProblem]:
    found = [parent]
    for tag in field.tags:
        found = [child for each in found for child in each.iterchildren(tag)]
    if len(found) > 1 or (field.is_required and not found):
        yield from _missing_or_repeated(document, parent, field.tags[0])


def _missing_or_repeated(document: Document, parent: Element, tag: str) -> Iterator[StructureProblem]:
    name = tag.rpartition("}")[2]
    # An element of that name in another namespace is already reported as unknown.
    if all(local_name(child) != name for child in parent):
        message = f"<{local_name(parent)}> has no <{name}>"
        hint = f"Add <{name}>; it is required."
        yield _problem(document, parent, "element-missing", message, hint, unreadable=parent)
    found = list(parent.iterchildren(tag))
    for extra in found[1:]:
        message = f"<{name}> occurs more than once in <{local_name(parent)}>"
        hint = f"Keep one; the first is at line {document.location(found[0]).line}."
        yield _problem(document, extra, "element-repeated", message, hint)


def _check_inputs(document: Document) -> Iterator[StructureProblem]:
    """Find test cases of an AiTestingDefinition that do not have inputs exactly once.

    The schema cannot say it, because the inputs of agents and of prompt templates have no element in common.
    """
    if document.root.tag == _TESTING:
        for case in document.root.iterchildren(_TEST_CASE):
            if len(case.findall(_INPUTS)) != 1:
                yield from _missing_or_repeated(document, case, _INPUTS)


def _check_numbers(document: Document) -> Iterator[StructureProblem]:
    seen: set[int] = set()
    for element in cast("list[Element]", _NUMBERS(document.root)):
        number = parse_integer(element.text or "")
        if number in seen:
            message = f"the number {quote((element.text or '').strip())} belongs to an earlier test case"
            yield _problem(document, element, "number-duplicate", message, "Assign a unique number to each test case.")
        elif number is not None:
            seen.add(number)


def _problem(
    document: Document, element: Element, code: str, message: str, hint: str, *, unreadable: Element | None = None
) -> StructureProblem:
    problem = Problem(code, Severity.ERROR, document.location(element), message, hint)
    return StructureProblem(problem, None if unreadable is None else document.location(unreadable))
