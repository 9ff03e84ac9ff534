"""AiEvaluationDefinition files: XML to the model and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.errors import InvalidMetadata
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    TestCase,
)
from evalmeta.model.problem import Problem, Severity
from evalmeta.xmlio.document import local_name
from evalmeta.xmlio.parts import Misfit, Parts
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from evalmeta.xmlio.sketch import ROOT
from evalmeta.xmlio.writer import Node, node, optional, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element as Element

    from evalmeta.xmlio.document import Document

__all__ = ["read_definition", "write_definition"]


_DEFINITION: Final = frozenset({"description", "name", "subjectName", "subjectType", "subjectVersion", "testCase"})
_TEST_CASE: Final = frozenset({"expectation", "inputs", "number"})
_EXPECTATION: Final = frozenset({"expectedValue", "label", "name", "parameter"})
_PARAMETER: Final = frozenset({"isReference", "name", "value"})
_INPUTS: Final = frozenset({"contextVariable", "conversationHistory", "utterance"})
_CONTEXT_VARIABLE: Final = frozenset({"variableName", "variableValue"})
_HISTORY: Final = frozenset({"index", "message", "role", "topic"})


def read_definition(document: Document) -> Definition:
    """Reads a definition that fits the type exactly; it keeps the document's bytes.

    Raises:
        InvalidMetadata: with the place of the first thing that does not fit.
    """
    try:
        return _definition(document.root, document.data)
    except Misfit as misfit:
        location = document.location(misfit.element)
        hint = "Compare it with AiEvaluationDefinition in the Metadata API reference."
        problem = Problem(misfit.code, Severity.ERROR, location, str(misfit), hint)
        raise InvalidMetadata(
            f"{location}: {misfit}", problems=[problem], actions=[f"Run `evalmeta validate {document.label}`."]
        ) from None


def write_definition(definition: Definition) -> bytes:
    """Writes a definition.

    One that was read and not changed gives the bytes it was read from; any other is
    written in the order and form in which an org hands it out.
    """
    if definition.source is not None and _unchanged(definition, definition.source):
        return definition.source
    children = [
        *optional("description", definition.description),
        node("name", definition.name),
        node("subjectName", definition.subject_name),
        node("subjectType", definition.subject_type),
        *optional("subjectVersion", definition.subject_version),
        *(_test_case_node(case) for case in definition.test_cases),
    ]
    return render(node("AiEvaluationDefinition", children, xmlns=NAMESPACE), indent=4)


def _unchanged(definition: Definition, source: bytes) -> bool:
    return read_definition(read_xml(source, label=definition.name)) == definition


def _definition(root: Element, source: bytes) -> Definition:
    if root.tag != ROOT:
        raise Misfit("xml-root", f"the root element is <{local_name(root)}>", root)
    parts = Parts(root, _DEFINITION, strict=True)
    definition = Definition(
        name=parts.required("name"),
        subject_name=parts.required("subjectName"),
        subject_type=parts.required("subjectType"),
        subject_version=parts.text("subjectVersion"),
        description=parts.text("description"),
        test_cases=tuple(_test_case(each) for each in parts.many("testCase")),
        source=source,
    )
    _check_definition(definition, parts)
    return definition


def _check_definition(definition: Definition, parts: Parts) -> None:
    if definition.subject_type != "AGENT":
        message = f"subjectType is {definition.subject_type!r}, not AGENT"
        raise Misfit("value-invalid", message, parts.many("subjectType")[0])
    seen: set[int] = set()
    for case, element in zip(definition.test_cases, parts.many("testCase"), strict=True):
        if case.number in seen:
            raise Misfit("number-duplicate", f"number {case.number} is taken by an earlier test case", element)
        if case.number is not None:
            seen.add(case.number)


def _test_case(element: Element) -> TestCase:
    parts = Parts(element, _TEST_CASE, strict=True)
    inputs = parts.one("inputs")
    if inputs is None:
        raise Misfit("element-missing", "<inputs> is missing", element)
    return TestCase(
        inputs=_inputs(inputs),
        expectations=tuple(_expectation(each) for each in parts.many("expectation")),
        number=parts.integer("number"),
    )


def _expectation(element: Element) -> Expectation:
    parts = Parts(element, _EXPECTATION, strict=True)
    return Expectation(
        name=parts.required("name"),
        expected_value=parts.text("expectedValue"),
        label=parts.text("label"),
        parameters=tuple(_parameter(each) for each in parts.many("parameter")),
    )


def _parameter(element: Element) -> Parameter:
    parts = Parts(element, _PARAMETER, strict=True)
    return Parameter(parts.required("name"), parts.required("value"), parts.boolean("isReference"))


def _inputs(element: Element) -> Inputs:
    parts = Parts(element, _INPUTS, strict=True)
    return Inputs(
        utterance=parts.required("utterance"),
        context_variables=tuple(_context_variable(each) for each in parts.many("contextVariable")),
        conversation_history=tuple(_history(each) for each in parts.many("conversationHistory")),
    )


def _context_variable(element: Element) -> ContextVariable:
    parts = Parts(element, _CONTEXT_VARIABLE, strict=True)
    return ContextVariable(parts.required("variableName"), parts.required("variableValue"))


def _history(element: Element) -> HistoryMessage:
    parts = Parts(element, _HISTORY, strict=True)
    return HistoryMessage(parts.text("role"), parts.text("message"), parts.text("topic"), parts.integer("index"))


def _test_case_node(case: TestCase) -> Node:
    return node(
        "testCase",
        [
            *(_expectation_node(each) for each in case.expectations),
            _inputs_node(case.inputs),
            *_number("number", case.number),
        ],
    )


def _expectation_node(expectation: Expectation) -> Node:
    return node(
        "expectation",
        [
            *optional("expectedValue", expectation.expected_value),
            *optional("label", expectation.label),
            node("name", expectation.name),
            *(_parameter_node(each) for each in expectation.parameters),
        ],
    )


def _parameter_node(parameter: Parameter) -> Node:
    reference = None if parameter.is_reference is None else str(parameter.is_reference).lower()
    children = [*optional("isReference", reference), node("name", parameter.name), node("value", parameter.value)]
    return node("parameter", children)


def _inputs_node(inputs: Inputs) -> Node:
    return node(
        "inputs",
        [
            *(_context_variable_node(each) for each in inputs.context_variables),
            *(_history_node(each) for each in inputs.conversation_history),
            node("utterance", inputs.utterance),
        ],
    )


def _context_variable_node(variable: ContextVariable) -> Node:
    return node("contextVariable", [node("variableName", variable.name), node("variableValue", variable.value)])


def _history_node(message: HistoryMessage) -> Node:
    return node(
        "conversationHistory",
        [
            *_number("index", message.index),
            *optional("message", message.message),
            *optional("role", message.role),
            *optional("topic", message.topic),
        ],
    )


def _number(name: str, value: int | None) -> Iterator[Node]:
    return optional(name, None if value is None else str(value))
