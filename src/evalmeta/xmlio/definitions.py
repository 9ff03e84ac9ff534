"""Definitions, of both types of tests, and manifests (package.xml, destructive changes): XML to the model and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from lxml import etree

from evalmeta.errors import InvalidMetadata
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
    fields_of,
)
from evalmeta.model.problem import Problem, Severity
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, Manifest, ManifestTypes, MetadataType
from evalmeta.xmlio.reader import NAMESPACE, Document, local_name, read_xml
from evalmeta.xmlio.structure import (
    BOOLEANS,
    XML_BLANKS,
    check_structure,
    definition_type,
    explain_structure,
    find_attributes,
    parse_integer,
)
from evalmeta.xmlio.writer import Node, node, optional, render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lxml.etree import _Element as Element

    from evalmeta.model.definition import Fields
    from evalmeta.xmlio.structure import StructureProblem


_NAME: Final = f"{{{NAMESPACE}}}name"
_SUBJECT_NAME: Final = f"{{{NAMESPACE}}}subjectName"
_SUBJECT_TYPE: Final = f"{{{NAMESPACE}}}subjectType"
_SUBJECT_VERSION: Final = f"{{{NAMESPACE}}}subjectVersion"
_DESCRIPTION: Final = f"{{{NAMESPACE}}}description"
_TEST_CASE: Final = f"{{{NAMESPACE}}}testCase"
_EXPECTED_VALUE: Final = f"{{{NAMESPACE}}}expectedValue"
_SCORER_TYPE: Final = f"{{{NAMESPACE}}}scorerType"
_LABEL: Final = f"{{{NAMESPACE}}}label"
_PARAMETER: Final = f"{{{NAMESPACE}}}parameter"
_VALUE: Final = f"{{{NAMESPACE}}}value"
_IS_REFERENCE: Final = f"{{{NAMESPACE}}}isReference"
_NUMBER: Final = f"{{{NAMESPACE}}}number"
_INPUTS: Final = f"{{{NAMESPACE}}}inputs"
_UTTERANCE: Final = f"{{{NAMESPACE}}}utterance"
_PROMPT_INPUT: Final = f"{{{NAMESPACE}}}promptInput"
_REFERENCE_NAME: Final = f"{{{NAMESPACE}}}referenceName"
_CONTEXT_VARIABLE: Final = f"{{{NAMESPACE}}}contextVariable"
_VARIABLE_NAME: Final = f"{{{NAMESPACE}}}variableName"
_VARIABLE_VALUE: Final = f"{{{NAMESPACE}}}variableValue"
_HISTORY: Final = f"{{{NAMESPACE}}}conversationHistory"
_ROLE: Final = f"{{{NAMESPACE}}}role"
_MESSAGE: Final = f"{{{NAMESPACE}}}message"
_TOPIC: Final = f"{{{NAMESPACE}}}topic"
_INDEX: Final = f"{{{NAMESPACE}}}index"
_NO_INPUTS: Final = Inputs("")

# The end of xsi:type under any prefix. A namespace may be written with character references, a name may not.
_TYPE_ATTRIBUTE: Final = b":type"
_WITHOUT_ONE_INPUTS: Final = etree.XPath("boolean(m:testCase[count(m:inputs) != 1])", namespaces={"m": NAMESPACE})

_Texts: TypeAlias = "dict[object, str]"


def read_definition(document: Document) -> Definition:
    """Return a definition with the document's bytes; raise InvalidMetadata, with all problems, if it does not fit."""
    kind = definition_type(document)
    if kind is None or not kind.is_test:
        hint = f"Compare it with {EVALUATION_DEFINITION.name} in the Metadata API reference."
        message = f"the root element is <{local_name(document.root)}>"
        if kind is not None:
            message = f"{kind.name} is not the type of a test"
            hint = "Name a test that uses the scorer."
        problems = [Problem("xml-root", Severity.ERROR, document.location(), message, hint)]
    else:
        definition, structure = parse_definition(document, kind)
        if not structure:
            return replace(definition, source=document.data)
        problems = [problem.problem for problem in structure]
    raise invalid_file(document, problems)


def invalid_file(document: Document, problems: Sequence[Problem]) -> InvalidMetadata:
    """Return the error of a file that does not fit its type."""
    first = problems[0]
    action = f"Run `evalmeta validate {document.label}`."
    return InvalidMetadata(f"{first.location}: {first.message}", problems=problems, actions=[action])


def parse_definition(document: Document, kind: MetadataType) -> tuple[Definition, list[StructureProblem]]:
    """Return what can be read of a definition, with everything that does not fit its type."""
    definition = read_leniently(document)
    problems = check_structure(document, kind.xsd)
    if not problems and _may_be_invalid(document, definition):
        problems = explain_structure(document, kind.xsd)
    return definition, problems


def subject_of(document: Document) -> tuple[str, str]:
    """Return the name and the type of the subject of a definition, without reading the rest."""
    root = document.root
    return root.findtext(_SUBJECT_NAME, "").strip(), root.findtext(_SUBJECT_TYPE, "AGENT").strip()


def given_numbers(document: Document) -> list[int | None]:
    """Return the numbers of the test cases of a definition, without reading the rest; None for those without one."""
    texts = (case.findtext(_NUMBER) for case in document.root.iterchildren(_TEST_CASE))
    return [None if text is None else parse_integer(text) for text in texts]


def read_leniently(document: Document) -> Definition:
    """Return what can be read of a definition: all of one that fits its type.

    Unknown elements are ignored, the first of a repeated field is used, and what is missing is empty.
    """
    # One pass over the children of each element: this decides how fast files are validated.
    kind = definition_type(document) or EVALUATION_DEFINITION
    expectation = f"{{{NAMESPACE}}}{kind.expectation}"
    texts: _Texts = {}
    cases: list[TestCase] = []
    for child in document.root:
        tag = child.tag
        if tag == _TEST_CASE:
            cases.append(_test_case(child, expectation))
        else:
            texts.setdefault(tag, child.text or "")
    return Definition(
        texts.get(_NAME, ""),
        texts.get(_SUBJECT_NAME, ""),
        texts.get(_SUBJECT_TYPE, ""),
        texts.get(_SUBJECT_VERSION),
        texts.get(_DESCRIPTION),
        tuple(cases),
        kind,
    )


def write_definition(definition: Definition) -> bytes:
    """Return a definition as XML.

    A definition that was read and not changed returns the bytes that it was read from. Any other is written in the
    order and form that orgs use.
    """
    source = definition.source
    if source is not None and read_definition(read_xml(source, label=definition.name)) == definition:
        return source
    cases = [_test_case_node(case, definition.type) for case in definition.test_cases]
    root = _element(definition.type.name, fields_of(definition), cases)
    return render(root._replace(attributes={"xmlns": NAMESPACE}), indent=4)


def _may_be_invalid(document: Document, definition: Definition) -> bool:
    """Return whether a definition that libxml2 accepts may break what the schema cannot express."""
    numbers = [case.number for case in definition.test_cases if case.number is not None]
    return (
        (_TYPE_ATTRIBUTE in document.data and any(find_attributes(document)))
        or len(set(numbers)) < len(numbers)
        or (definition.type == TESTING_DEFINITION and bool(_WITHOUT_ONE_INPUTS(document.root)))
    )


def _test_case(element: Element, expectation: str) -> TestCase:
    inputs = number = None
    expectations = []
    for child in element:
        tag = child.tag
        if tag == expectation:
            expectations.append(_expectation(child))
        elif tag == _INPUTS and inputs is None:
            inputs = _inputs(child)
        elif tag == _NUMBER and number is None:
            number = parse_integer(child.text or "")
    return TestCase(inputs or _NO_INPUTS, tuple(expectations), number)


def _expectation(element: Element) -> Expectation:
    texts: _Texts = {}
    parameters: list[Parameter] = []
    for child in element:
        tag = child.tag
        if tag == _PARAMETER:
            parameters.append(_parameter(child))
        else:
            texts.setdefault(tag, child.text or "")
    return Expectation(
        texts.get(_NAME, ""), texts.get(_EXPECTED_VALUE), texts.get(_LABEL), tuple(parameters), texts.get(_SCORER_TYPE)
    )


def _parameter(element: Element) -> Parameter:
    texts = _texts(element)
    is_reference = texts.get(_IS_REFERENCE)
    return Parameter(
        texts.get(_NAME, ""),
        texts.get(_VALUE, ""),
        None if is_reference is None else BOOLEANS.get(is_reference.strip(XML_BLANKS)),
    )


def _inputs(element: Element) -> Inputs:
    utterance = None
    variables: list[ContextVariable] = []
    history: list[HistoryMessage] = []
    prompt_inputs: tuple[PromptInput, ...] = ()
    for child in element:
        tag = child.tag
        if tag == _UTTERANCE:
            utterance = child.text or "" if utterance is None else utterance
        elif tag == _CONTEXT_VARIABLE:
            texts = _texts(child)
            variables.append(ContextVariable(texts.get(_VARIABLE_NAME, ""), texts.get(_VARIABLE_VALUE, "")))
        elif tag == _HISTORY:
            texts = _texts(child)
            index = None if (text := texts.get(_INDEX)) is None else parse_integer(text)
            history.append(HistoryMessage(texts.get(_ROLE), texts.get(_MESSAGE), texts.get(_TOPIC), index))
        elif tag == _PROMPT_INPUT:
            texts = _texts(child)
            prompt_inputs = (*prompt_inputs, PromptInput(texts.get(_REFERENCE_NAME, ""), texts.get(_VALUE, "")))
    return Inputs(utterance or "", tuple(variables), tuple(history), prompt_inputs)


def _texts(element: Element) -> _Texts:
    texts: _Texts = {}
    for child in element:
        texts.setdefault(child.tag, child.text or "")
    return texts


def _test_case_node(case: TestCase, kind: MetadataType) -> Node:
    expectations = (
        _element(
            kind.expectation,
            fields_of(expectation),
            [_element("parameter", fields_of(parameter)) for parameter in expectation.parameters],
        )
        for expectation in case.expectations
    )
    inputs = case.inputs
    children = (
        *(_element("contextVariable", fields_of(variable)) for variable in inputs.context_variables),
        *(_element("conversationHistory", fields_of(message)) for message in inputs.conversation_history),
        *(_element("promptInput", fields_of(given)) for given in inputs.prompt_inputs),
    )
    utterance = None if inputs.prompt_inputs and not inputs.utterance else inputs.utterance
    inputs_node = _element("inputs", {"utterance": utterance}, children)
    return _element("testCase", fields_of(case), [*expectations, inputs_node])


def _element(name: str, fields: Fields, children: Iterable[Node] = ()) -> Node:
    """Return an element with its children in the order of their names, as orgs write them."""
    texts = (node(key, text) for key, text in fields.items() if text is not None)
    return node(name, sorted([*texts, *children], key=lambda child: child.name))


Locate: TypeAlias = "Callable[[str, str], tuple[int, int]]"

MANIFEST_ROOT: Final = f"{{{NAMESPACE}}}Package"
_TYPES: Final = f"{{{NAMESPACE}}}types"
_MEMBERS: Final = f"{{{NAMESPACE}}}members"


def read_manifest(document: Document) -> Manifest:
    """Return a manifest that fits its schema; blanks around names, members and the version are removed."""
    root = document.root
    version = root.findtext(f"{{{NAMESPACE}}}version")
    return Manifest(
        types=tuple(_types(element) for element in root.iterchildren(_TYPES)),
        version=None if version is None else version.strip(),
        full_name=root.findtext(f"{{{NAMESPACE}}}fullName"),
        api_access_level=root.findtext(f"{{{NAMESPACE}}}apiAccessLevel"),
        description=root.findtext(f"{{{NAMESPACE}}}description"),
        namespace_prefix=root.findtext(f"{{{NAMESPACE}}}namespacePrefix"),
    )


def index_members(document: Document) -> Locate:
    """Return a function that returns line and column of a type's member, those of the root if it is not listed.

    An empty member means the type's name, an empty type the manifest.
    """
    places: dict[tuple[str, str], Element] = {}
    for block in document.root:
        if local_name(block) != "types":
            continue
        name = _types(block).name
        for element in block:
            member = (element.text or "").strip() if local_name(element) == "members" else ""
            places.setdefault((name, member), element)

    def locate(type_name: str, member: str) -> tuple[int, int]:
        place = document.location(places.get((type_name, member), document.root))
        return place.line, place.column

    return locate


def write_manifest(manifest: Manifest) -> bytes:
    """Return a manifest as XML, in the order and form that orgs use.

    A manifest that was read from that form returns the same bytes; from any other form, the same meaning.
    """
    children = [
        *optional("fullName", manifest.full_name),
        *optional("apiAccessLevel", manifest.api_access_level),
        *optional("description", manifest.description),
        *optional("namespacePrefix", manifest.namespace_prefix),
    ]
    for types in manifest.types:
        members = [node("members", member) for member in types.members]
        children.append(node("types", [*members, node("name", types.name)]))
    children += optional("version", manifest.version)
    return render(node("Package", children, xmlns=NAMESPACE), indent=4)


def _types(element: Element) -> ManifestTypes:
    members = tuple((member.text or "").strip() for member in element.iterchildren(_MEMBERS))
    return ManifestTypes((element.findtext(f"{{{NAMESPACE}}}name") or "").strip(), members)
