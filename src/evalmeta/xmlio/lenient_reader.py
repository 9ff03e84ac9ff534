"""Definitions read quickly and leniently: all of one that fits its schema, what can be read of any other.

Unknown elements are passed over, the first of a repeated field counts, what is missing
is empty. One pass over the children of each element; `definitions.read_definition` is
the strict reader, at several times the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
)
from evalmeta.model.registry import EVALUATION_DEFINITION, TYPES
from evalmeta.xmlio.fields import BOOLEANS, parse_integer
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from evalmeta.model.registry import MetadataType
    from evalmeta.xmlio.reader import Document


_TYPES: Final = {f"{{{NAMESPACE}}}{row.name}": row for row in TYPES}
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

_Texts: TypeAlias = "dict[object, str]"


def definition_type(document: Document) -> MetadataType | None:
    """Tells by a document's root element which type of definition it is; None for all else."""
    return _TYPES.get(str(document.root.tag))


def sketch_definition(document: Document) -> Definition:
    """Reads what can be read of a definition; all of it when it fits its schema."""
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
    name = value = label = scorer_type = None
    parameters: list[Parameter] = []
    for child in element:
        tag = child.tag
        if tag == _NAME:
            name = (child.text or "") if name is None else name
        elif tag == _EXPECTED_VALUE:
            value = (child.text or "") if value is None else value
        elif tag == _PARAMETER:
            parameters.append(_parameter(child))
        elif tag == _LABEL:
            label = (child.text or "") if label is None else label
        elif tag == _SCORER_TYPE:
            scorer_type = (child.text or "") if scorer_type is None else scorer_type
    return Expectation(name or "", value, label, tuple(parameters), scorer_type)


def _parameter(element: Element) -> Parameter:
    texts = _texts(element)
    is_reference = texts.get(_IS_REFERENCE)
    return Parameter(
        texts.get(_NAME, ""),
        texts.get(_VALUE, ""),
        None if is_reference is None else BOOLEANS.get(is_reference.strip(" \t\r\n")),
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
            history.append(_message(_texts(child)))
        elif tag == _PROMPT_INPUT:
            texts = _texts(child)
            prompt_inputs = (*prompt_inputs, PromptInput(texts.get(_REFERENCE_NAME, ""), texts.get(_VALUE, "")))
    return Inputs(utterance or "", tuple(variables), tuple(history), prompt_inputs)


def _message(texts: _Texts) -> HistoryMessage:
    index = texts.get(_INDEX)
    number = None if index is None else parse_integer(index)
    return HistoryMessage(texts.get(_ROLE), texts.get(_MESSAGE), texts.get(_TOPIC), number)


def _texts(element: Element) -> _Texts:
    texts: _Texts = {}
    for child in element:
        texts.setdefault(child.tag, child.text or "")
    return texts
