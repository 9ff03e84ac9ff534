"""The structure of metadata files: what does not fit the schemas in `xsd/`, where, and what to do about it.

libxml2 decides quickly whether a document fits. xmlschema says what the schema declares, to explain a document that
does not fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from lxml import etree

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Location, Problem, Severity, quote
from evalmeta.model.registry import TESTING_DEFINITION, TYPES, MetadataType
from evalmeta.xmlio.reader import NAMESPACE, Document, local_name, read_xml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from lxml.etree import ParserTarget
    from lxml.etree import _Element as Element
    from lxml.etree import _LogEntry as LogEntry


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
_VALUES: Final = {"int": "a whole number of at most 9 digits", "boolean": "true or false"}
_Declared: TypeAlias = "list[tuple[Element, Declaration]]"


class StructureProblem(NamedTuple):
    """A problem of structure."""

    problem: Problem
    # An element that cannot be read completely: what a rule finds there would only follow from the problem.
    unreadable: Location | None = None


def read_rooted(data: bytes, label: str, root: str) -> Document:
    """Return the document of a file; raise InvalidMetadata if it cannot be read or has another root."""
    document = read_xml(data, label=label)
    if document.root.tag != root:
        actual, name = local_name(document.root), root.rpartition("}")[2]
        message = f"the root element is <{actual}>, not <{name}>"
        if actual == name:
            message = f"<{name}> is not in the namespace {NAMESPACE}"
        raise _invalid("xml-root", document.location(), message, f'Begin the file with <{name} xmlns="{NAMESPACE}">.')
    # Every element has its tag: a file with few tags cannot have an element with many children.
    if data.count(b"<") > limits.MAX_XML_CHILDREN:
        widest = max(document.root.iter(), key=len)
        if len(widest) > limits.MAX_XML_CHILDREN:
            count = f"<{local_name(widest)}> contains {len(widest):,} elements"
            message = f"{count}; at most {limits.MAX_XML_CHILDREN:,} are allowed"
            raise _invalid("xml-too-large", document.location(widest), message, "Split the file into several files.")
    return document


def _invalid(code: str, location: Location, message: str, hint: str) -> InvalidMetadata:
    problem = Problem(code, Severity.ERROR, location, message, hint)
    return InvalidMetadata(str(problem), problems=[problem], actions=[hint])


def check_structure(document: Document, xsd: str) -> list[StructureProblem]:
    """Return what does not fit a schema in `xsd/`, in document order; at most 1,000 problems."""
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
    root = declarations(xsd).get(str(document.root.tag))
    parents, texts = _declared_elements(document, root) if root else ([], [])
    checks = [
        find_attributes(document),
        _find_numbers(document),
        _find_elements_in_texts(document, texts),
        _find_values(document, texts),
        _find_unknown(document, parents),
        _find_text(document, parents),
        _find_missing(document, parents),
        _find_repeated(document, parents),
    ]
    # Each check has an equal share of the limit, so that no kind of problem hides the others.
    rounds = zip_longest(*(dict.fromkeys(islice(check, limits.MAX_PROBLEMS)) for check in checks))
    problems = islice(filter(None, chain.from_iterable(rounds)), limits.MAX_PROBLEMS)
    return sorted(problems, key=lambda misfit: (misfit.problem.location, misfit.problem.message))


def definition_type(document: Document) -> MetadataType | None:
    """Return the type of definition that a document's root element names, None for other documents."""
    return _TYPES.get(str(document.root.tag))


def odd_attributes(element: Element) -> list[str]:
    """Return the names of an element's attributes that metadata does not have.

    Hints at a schema's location are ignored. `xsi:type` and `xsi:nil` are not: they would change the element's type.
    """
    names = (str(name) for name in element.attrib if name not in _SCHEMA_HINTS)
    return [f"xsi:{name.removeprefix(_XSI)}" if name.startswith(_XSI) else name for name in names]


def find_attributes(document: Document) -> Iterator[StructureProblem]:
    """Yield a problem for each attribute that metadata does not have."""
    for element in cast("list[Element]", _WITH_ATTRIBUTES(document.root)):
        for name in odd_attributes(element):
            message = f"<{local_name(element)}> has an attribute {quote(name)}; metadata elements have none"
            yield _problem(document, element, "attribute-unknown", message, f"Remove {quote(name)}.")


def _declared_elements(document: Document, root: Declaration) -> tuple[_Declared, _Declared]:
    """Return the elements that the schema knows: those that contain elements, and those that contain text."""
    parents: _Declared = [(document.root, root)]
    texts: _Declared = []
    for element, declared in parents:
        # iterchildren compares tags in C and keeps them out of Python's memory.
        for tag, below in (declared.children or {}).items():
            known = texts if below.children is None else parents
            known += [(child, below) for child in element.iterchildren(tag)]
    return parents, texts


def _find_elements_in_texts(document: Document, texts: _Declared) -> Iterator[StructureProblem]:
    for element, _ in texts:
        if len(element):
            message = f"<{local_name(element)}> contains <{local_name(element[0])}>; only text is valid there"
            hint = "Write text, with &lt; for < and &amp; for &."
            yield _problem(document, element[0], "element-unknown", message, hint, unreadable=element)


def _find_values(document: Document, texts: _Declared) -> Iterator[StructureProblem]:
    for element, declared in texts:
        if not declared.accepts(element.text or ""):
            name = local_name(element)
            hint = f"Write {_valid_values(declared)}."
            message = f"<{name}> is {quote(element.text or '')}"
            yield _problem(document, element, "value-invalid", message, hint, unreadable=element)


def _valid_values(declared: Declaration) -> str:
    if declared.base in _VALUES:
        return _VALUES[declared.base]
    # Some tools call standard scorers OOTB (out of the box).
    *others, last = (value for value in declared.enumeration if value != "OOTB")
    return f"{', '.join(others)} or {last}" if others else f"{last}, the only supported type"


def _find_unknown(document: Document, parents: _Declared) -> Iterator[StructureProblem]:
    for parent, declared in parents:
        known = declared.children or {}
        if sum(1 for _ in parent.iterchildren(*known)) < len(parent):
            names = {tag.rpartition("}")[2] for tag in known}
            for child in parent:
                if child.tag not in known:
                    yield _unknown_element(document, child, parent, names)


def _find_text(document: Document, parents: _Declared) -> Iterator[StructureProblem]:
    for parent, _ in parents:
        texts = (parent.text, *(child.tail for child in parent))
        if any(text and text.strip(XML_BLANKS) for text in texts):
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
        hint = _unwrap(child, parent, known)
    if not hint:
        mistake = _COMMON_MISTAKES.get(name)
        near = [mistake] if mistake in known else get_close_matches(name, sorted(known), n=1)
        hint = f"Did you mean <{near[0]}>?" if near else f"Known elements: {', '.join(sorted(known))}."
    return _problem(document, child, "element-unknown", message, hint, unreadable=parent)


def _unwrap(child: Element, parent: Element, known: Collection[str]) -> str:
    """Return the hint for an element that only wraps children of its parent, such as <testCases>; else an empty one."""
    inside = {local_name(element) for element in child}
    (only,) = inside if len(inside) == 1 else ("",)
    if only not in known or not any(len(element) for element in child):
        return ""
    return f"Remove <{local_name(child)}> and keep its contents: <{only}> belongs directly in <{local_name(parent)}>."


def _find_missing(document: Document, parents: _Declared) -> Iterator[StructureProblem]:
    for parent, declared in parents:
        for field in _fields(document, parent, declared):
            name = field.tags[0].rpartition("}")[2]
            # An element of that name in another namespace is already reported as unknown.
            if (
                field.is_required
                and next(parent.iterchildren(field.tags[0]), None) is None
                and all(local_name(child) != name for child in parent)
            ):
                message = f"<{local_name(parent)}> has no <{name}>"
                hint = f"Add <{name}>; it is required."
                yield _problem(document, parent, "element-missing", message, hint, unreadable=parent)


def _find_repeated(document: Document, parents: _Declared) -> Iterator[StructureProblem]:
    for parent, declared in parents:
        for field in _fields(document, parent, declared):
            last = children = list(parent.iterchildren(field.tags[0]))
            for tag in field.tags[1:]:
                last = [child for holder in last for child in holder.iterchildren(tag)]
            if len(children) > 1 and (len(last) > 1 or (field.is_required and not last)):
                hint = f"Keep one; the first is at line {document.location(children[0]).line}."
                message = f"<{local_name(children[0])}> occurs more than once in <{local_name(parent)}>"
                for extra in children[1:]:
                    yield _problem(document, extra, "element-repeated", message, hint)


def _fields(document: Document, parent: Element, declared: Declaration) -> Sequence[Field]:
    # The schema cannot require the inputs of an AiTestingDefinition: those of agents and of prompt templates have no
    # element in common.
    if parent.tag == _TEST_CASE and document.root.tag == _TESTING:
        return (*declared.fields, Field((_INPUTS,), is_required=True))
    return declared.fields


def _find_numbers(document: Document) -> Iterator[StructureProblem]:
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


XML_BLANKS: Final = " \t\r\n"
BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_INT: Final = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,10})")
_INT_RANGE: Final = range(-(2**31), 2**31)
_SLICE_BYTES: Final = 2_048


class Field(NamedTuple):
    """A descendant that occurs at most once: its tags from the parent down, and whether it is required."""

    tags: tuple[str, ...]
    is_required: bool


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a schema declares about an element."""

    children: Mapping[str, Declaration] | None  # its children by tag; None for an element that contains text
    fields: tuple[Field, ...] = ()  # descendants that occur at most once
    base: str = "string"  # the name of its type, such as `int`
    enumeration: tuple[str, ...] = ()  # the only valid texts; empty if every text is valid

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
    target = cast("ParserTarget[None]", SimpleNamespace(close=lambda: None))
    parser = etree.XMLParser(target=target, schema=schema, resolve_entities=False, no_network=True, load_dtd=False)
    for start in range(0, len(data), _SLICE_BYTES):
        parser.feed(data[start : start + _SLICE_BYTES])
        for fault in parser.feed_error_log:
            return fault
    parser.close()
    return next(iter(parser.feed_error_log), None)


@cache
def declarations(xsd: str) -> Mapping[str, Declaration]:
    """Return the declarations of a schema's root elements by tag."""
    # This takes 180 ms, and only refused files need it.
    from xmlschema.validators import XMLSchema, XsdElement, XsdKey, XsdSimpleType

    def declaration(element: XsdElement) -> Declaration:
        kind = element.type
        if isinstance(kind, XsdSimpleType):
            return Declaration(None, base=kind.local_name or "", enumeration=tuple(map(str, kind.enumeration or ())))
        group = kind.model_group
        known = [child for child in group.iter_elements() if isinstance(child, XsdElement)] if group else []
        own = [identity for identity in element.identities if identity.selector and identity.selector.path == "."]
        return Declaration(
            {child.name: declaration(child) for child in known},
            tuple(Field(_tags(constraint.fields[0].path), isinstance(constraint, XsdKey)) for constraint in own),
        )

    schema = XMLSchema(schema_dir() / xsd, allow="local", defuse="always")
    return {element.name: declaration(element) for element in schema.elements.values()}


def _tags(path: str) -> tuple[str, ...]:
    return tuple(f"{{{NAMESPACE}}}{step.removeprefix('m:')}" for step in path.split("/"))


def parse_integer(text: str) -> int | None:
    """Return a 32-bit integer (xs:int), None if the text is not one."""
    match = _INT.fullmatch(text.strip(XML_BLANKS))
    # Leading zeros are dropped, because Python parses at most 4,300 digits.
    if match and (number := int(match[1] + (match[2] or "0"))) in _INT_RANGE:
        return number
    return None


@cache
def _schema(xsd: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(schema_dir() / xsd))
