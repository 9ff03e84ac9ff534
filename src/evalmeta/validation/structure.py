"""Structure and simple types, by the schemas in `xsd/`: libxml2 decides, xmlschema explains.

Of a large document libxml2 looks for one fault only, and what xmlschema knows of the
schema explains it instead of xmlschema's walk: no document takes longer than a second.

What a schema's refusal means: the errors of libxml2 and xmlschema, each told of the element it is about.

Large documents explained: one pass over the elements, by what xmlschema says each of them is declared to be.

xmlschema's own walk takes 85 microseconds an element; this one takes 3 and says the same,
which a test holds it to. It knows what the schemas in `xsd/` use: types that are choices
without order or simple, and identity constraints.

What can be wrong with a document's structure, in words: each fault with its place and the way out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lxml import etree
from xmlschema import XMLSchemaChildrenValidationError, XMLSchemaDecodeError, XsdElement
from xmlschema.validators import XsdKey, XsdSimpleType

from evalmeta import limits
from evalmeta.model.problem import Problem, Severity
from evalmeta.validation.finding import Complaint, quote
from evalmeta.xmlio.fields import BOOLEANS, odd_attributes, parse_integer
from evalmeta.xmlio.lenient_reader import definition_type
from evalmeta.xmlio.reader import NAMESPACE, local_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from elementpath.protocols import ElementProtocol
    from lxml.etree import _Element as Element
    from lxml.etree import _LogEntry as LogEntry
    from xmlschema import XMLSchema, XMLSchemaValidationError

    from evalmeta.xmlio.reader import Document


def schema_dir() -> Path:
    """Finds the folder of the schemas: inside an installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "xsd"
    return installed if installed.is_dir() else package.parent.parent / "xsd"


def check_schema(document: Document, xsd: str) -> list[Complaint]:
    """Checks a document against a schema and lists the differences, each once, in document order; at most 1,000.

    Args:
        document: what to check; its root element must be the schema's.
        xsd: the schema's file name in `xsd/`.
    """
    is_large = _is_large(document.data)
    refusal = _stream_refusal(document, xsd) if is_large else _refusal(document, xsd)
    if not refusal:
        return []
    structure = _survey(document, xsd) if is_large else _explain(document, refusal, xsd)
    complaints = set(islice(_all_complaints(document, structure), limits.MAX_PROBLEMS))
    complaints = complaints or {_unexplained(document, refusal[0], xsd)}
    return sorted(complaints, key=lambda complaint: (complaint.problem.location, complaint.problem.message))


def _is_large(data: bytes) -> bool:
    """Tells whether libxml2's log of all faults, each with its path, and xmlschema's walk could take long."""
    most = limits.MAX_EXPLAINED_ELEMENTS
    # Every element takes four bytes or more.
    return len(data) > 4 * most and (data.count(b"<") > 2 * most or data.count(b"=") > limits.MAX_PROBLEMS)


def _refusal(document: Document, xsd: str) -> Sequence[LogEntry]:
    schema = _fast_schema(xsd)
    return () if schema.validate(document.root) else list(schema.error_log)


def _stream_refusal(document: Document, xsd: str) -> Sequence[LogEntry]:
    from evalmeta.xmlio.reader import find_fault  # noqa: PLC0415 - for large documents only

    fault = find_fault(document, _fast_schema(xsd))
    return [fault] if fault else ()


@cache
def _fast_schema(xsd: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(schema_dir() / xsd))


@cache
def _explaining_schema(xsd: str) -> XMLSchema:
    from xmlschema import XMLSchema  # noqa: PLC0415 - 180 ms, needed for refused files only

    return XMLSchema(schema_dir() / xsd, allow="local", defuse="always")


def _all_complaints(document: Document, structure: Iterable[Complaint]) -> Iterator[Complaint]:

    yield from explain_attributes(document)
    yield from structure
    yield from explain_numbers(document)


def _explain(document: Document, refusal: Iterable[LogEntry], xsd: str) -> Iterator[Complaint]:

    for error in _errors(document, xsd):
        yield from explain_structure(document, error)
    yield from explain_values(document, refusal)


def _errors(document: Document, xsd: str) -> Iterator[XMLSchemaValidationError]:
    from xmlschema import XMLSchemaException  # noqa: PLC0415 - as above

    try:
        yield from _explaining_schema(xsd).iter_errors(cast("ElementProtocol", document.root))
    except XMLSchemaException:
        # An xsi:type that names no type ends the iteration; the attribute is complained about anyway.
        return


def _survey(document: Document, xsd: str) -> Iterator[Complaint]:

    declared = _explaining_schema(xsd).maps.elements.get(str(document.root.tag))
    if declared is not None:
        yield from survey_elements(document, read_declaration(declared))


def _unexplained(document: Document, entry: LogEntry, xsd: str) -> Complaint:
    line = f"line {entry.line}: " if entry.line else ""
    message = line + entry.message.replace(f"{{{NAMESPACE}}}", "")
    problem = Problem("value-invalid", Severity.ERROR, document.location(), message, f"Compare the file with {xsd}.")
    return Complaint(problem)


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
        yield tell_unknown(document, element[error.index], element, known)
    elif field is not None:
        yield from tell_count(document, element, field)
    elif reason.startswith("character data"):
        yield from tell_stray_text(document, element)
    elif reason.startswith("a simple content"):
        yield tell_not_text(document, element)
    elif isinstance(error, XMLSchemaDecodeError) or reason.startswith("value must"):
        yield tell_value(document, element)


def explain_values(document: Document, errors: Iterable[LogEntry]) -> Iterator[Complaint]:
    """Puts libxml2's errors about values and text into words: xmlschema takes `1_0` and exotic digits and blanks."""
    prefixes = {prefix: uri for each in document.root.iter() for prefix, uri in each.nsmap.items() if prefix}
    known = (error for error in errors if error.type_name in _OF_TEXT and not _OF_ATTRIBUTE.match(error.message))
    for error in known:
        found = document.root.getroottree().xpath(error.path or "", namespaces=prefixes)
        element = cast("list[Element]", found)[0]
        if error.type_name == _STRAY_TEXT:
            yield from tell_stray_text(document, element)
        else:
            yield tell_value(document, element)


def explain_attributes(document: Document) -> Iterator[Complaint]:
    """Finds every attribute that metadata does not have."""
    for element in cast("list[Element]", _WITH_ATTRIBUTES(document.root)):
        for name in odd_attributes(element):
            yield tell_attribute(document, element, name)


def explain_numbers(document: Document) -> Iterator[Complaint]:
    """Finds every test case that has the number of an earlier one."""
    seen: set[int] = set()
    for element in cast("list[Element]", _NUMBERS(document.root)):
        number = parse_integer(element.text or "")
        if number in seen:
            yield tell_duplicate(document, element)
        elif number is not None:
            seen.add(number)


def _key_field(reason: str) -> str | None:
    """Gives the first step of the field that a key misses or finds twice, None for other errors."""
    if reason.startswith("missing key field") or "selects multiple values" in reason:
        return reason.split("'", maxsplit=2)[1].partition("/")[0].removeprefix("m:")
    return None


_BLANKS: Final = " \t\r\n"


class Field(NamedTuple):
    """What stands in an element at most once: the way to it, by tags, and whether it must be there."""

    tags: tuple[str, ...]
    is_required: bool


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a schema says of an element.

    Attributes:
        children: what may stand in it, by tag; None when it takes text.
        base: the built-in type of its text, such as `int`.
        listed: the only texts it takes; empty when any will do.
    """

    children: Mapping[str, Declaration] | None
    fields: tuple[Field, ...] = ()
    base: str = "string"
    listed: tuple[str, ...] = ()

    def takes(self, text: str) -> bool:
        """Tells whether a text is one of the element's values."""
        match self.base:
            case "int":
                return parse_integer(text) is not None
            case "boolean":
                return text.strip(_BLANKS) in BOOLEANS
            case _:
                return not self.listed or text in self.listed


def read_declaration(element: XsdElement) -> Declaration:
    """Reads what a schema says of an element and of all that stands in it."""
    kind = element.type
    if isinstance(kind, XsdSimpleType):
        return Declaration(None, base=kind.local_name or "", listed=tuple(map(str, kind.enumeration or ())))
    group = kind.model_group
    known = [each for each in group.iter_elements() if isinstance(each, XsdElement)] if group else []
    own = [each for each in element.identities if each.selector and each.selector.path == "."]
    return Declaration(
        {each.name: read_declaration(each) for each in known},
        tuple(Field(_tags(each.fields[0].path), isinstance(each, XsdKey)) for each in own),
    )


def survey_elements(document: Document, declaration: Declaration) -> Iterator[Complaint]:
    """Finds what is wrong with elements and their texts, in no order."""
    pending = [(document.root, declaration)]
    while pending:
        element, declared = pending.pop()
        known = declared.children
        if known is None:
            yield from _survey_text(document, element, declared)
        else:
            yield from _survey_children(document, element, known)
            yield from _survey_fields(document, element, declared.fields)
            pending += [(each, below) for tag, below in known.items() for each in element.iterchildren(tag)]


def _survey_text(document: Document, element: Element, declared: Declaration) -> Iterator[Complaint]:
    if len(element):
        yield tell_not_text(document, element)
    if not declared.takes(element.text or ""):
        yield tell_value(document, element)


def _survey_children(document: Document, parent: Element, known: Collection[str]) -> Iterator[Complaint]:
    # Elements keep the tags that they are asked for: libxml2 compares them without.
    if sum(1 for _ in parent.iterchildren(*known)) < len(parent):
        names = {tag.rpartition("}")[2] for tag in known}
        for child in parent:
            if child.tag not in known:
                yield tell_unknown(document, child, parent, names)
    if _is_text(parent.text) or any(_is_text(child.tail) for child in parent):
        yield from tell_stray_text(document, parent)


def _survey_fields(document: Document, parent: Element, fields: Collection[Field]) -> Iterator[Complaint]:
    for field in fields:
        found = [parent]
        for tag in field.tags:
            found = [child for each in found for child in each.iterchildren(tag)]
        if len(found) > 1 or (field.is_required and not found):
            yield from tell_count(document, parent, field.tags[0].rpartition("}")[2])


def _is_text(text: str | None) -> bool:
    return bool(text and text.strip(_BLANKS))


def _tags(path: str) -> tuple[str, ...]:
    return tuple(f"{{{NAMESPACE}}}{step.removeprefix('m:')}" for step in path.split("/"))


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
