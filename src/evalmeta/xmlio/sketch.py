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
    TestCase,
)
from evalmeta.xmlio.parts import BOOLEANS, parse_integer
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from evalmeta.xmlio.document import Document

__all__ = ["ROOT", "sketch_definition"]

ROOT: Final = f"{{{NAMESPACE}}}AiEvaluationDefinition"
"""The root element of a definition."""

_NAME: Final = f"{{{NAMESPACE}}}name"
_SUBJECT_NAME: Final = f"{{{NAMESPACE}}}subjectName"
_SUBJECT_TYPE: Final = f"{{{NAMESPACE}}}subjectType"
_SUBJECT_VERSION: Final = f"{{{NAMESPACE}}}subjectVersion"
_DESCRIPTION: Final = f"{{{NAMESPACE}}}description"
_TEST_CASE: Final = f"{{{NAMESPACE}}}testCase"
_EXPECTATION: Final = f"{{{NAMESPACE}}}expectation"
_EXPECTED_VALUE: Final = f"{{{NAMESPACE}}}expectedValue"
_LABEL: Final = f"{{{NAMESPACE}}}label"
_PARAMETER: Final = f"{{{NAMESPACE}}}parameter"
_VALUE: Final = f"{{{NAMESPACE}}}value"
_IS_REFERENCE: Final = f"{{{NAMESPACE}}}isReference"
_NUMBER: Final = f"{{{NAMESPACE}}}number"
_INPUTS: Final = f"{{{NAMESPACE}}}inputs"
_UTTERANCE: Final = f"{{{NAMESPACE}}}utterance"
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


def sketch_definition(document: Document) -> Definition:
    """Reads what can be read of a definition; all of it when it fits its schema."""
    texts: _Texts = {}
    cases: list[TestCase] = []
    for child in document.root:
        tag = child.tag
        if tag == _TEST_CASE:
            cases.append(_test_case(child))
        else:
            texts.setdefault(tag, child.text or "")
    return Definition(
        texts.get(_NAME, ""),
        texts.get(_SUBJECT_NAME, ""),
        texts.get(_SUBJECT_TYPE, ""),
        texts.get(_SUBJECT_VERSION),
        texts.get(_DESCRIPTION),
        tuple(cases),
    )


def _test_case(element: Element) -> TestCase:
    inputs = number = None
    expectations = []
    for child in element:
        tag = child.tag
        if tag == _EXPECTATION:
            expectations.append(_expectation(child))
        elif tag == _INPUTS and inputs is None:
            inputs = _inputs(child)
        elif tag == _NUMBER and number is None:
            number = parse_integer(child.text or "")
    return TestCase(inputs or _NO_INPUTS, tuple(expectations), number)


def _expectation(element: Element) -> Expectation:
    name = value = label = None
    parameters: tuple[Parameter, ...] = ()
    for child in element:
        tag = child.tag
        if tag == _NAME:
            name = (child.text or "") if name is None else name
        elif tag == _EXPECTED_VALUE:
            value = (child.text or "") if value is None else value
        elif tag == _PARAMETER:
            parameters = (*parameters, _parameter(child))
        elif tag == _LABEL:
            label = (child.text or "") if label is None else label
    return Expectation(name or "", value, label, parameters)


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
    for child in element:
        tag = child.tag
        if tag == _UTTERANCE:
            utterance = child.text or "" if utterance is None else utterance
        elif tag == _CONTEXT_VARIABLE:
            texts = _texts(child)
            variables.append(ContextVariable(texts.get(_VARIABLE_NAME, ""), texts.get(_VARIABLE_VALUE, "")))
        elif tag == _HISTORY:
            history.append(_message(_texts(child)))
    return Inputs(utterance or "", tuple(variables), tuple(history))


def _message(texts: _Texts) -> HistoryMessage:
    index = texts.get(_INDEX)
    number = None if index is None else parse_integer(index)
    return HistoryMessage(texts.get(_ROLE), texts.get(_MESSAGE), texts.get(_TOPIC), number)


def _texts(element: Element) -> _Texts:
    texts: _Texts = {}
    for child in element:
        texts.setdefault(child.tag, child.text or "")
    return texts
