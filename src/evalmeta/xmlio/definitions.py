"""Definition files: XML to the model and back, for both types of definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import InvalidMetadata
from evalmeta.model.definition import (
    SCORER_TYPES,
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
)
from evalmeta.model.problem import Problem, Severity
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.xmlio.fields import Misfit, Parts
from evalmeta.xmlio.lenient_reader import definition_type
from evalmeta.xmlio.reader import NAMESPACE, local_name, read_xml
from evalmeta.xmlio.writer import Node, node, optional, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element as Element

    from evalmeta.model.registry import MetadataType
    from evalmeta.xmlio.reader import Document


class _Grammar(NamedTuple):
    """What may stand in those elements in which the types differ, and what must."""

    test_case: frozenset[str]
    expectation: frozenset[str]
    inputs: frozenset[str]
    needs_number: bool
    needs_utterance: bool


_GRAMMARS: Final = {
    EVALUATION_DEFINITION: _Grammar(
        test_case=frozenset({"expectation", "inputs", "number"}),
        expectation=frozenset({"expectedValue", "label", "name", "parameter"}),
        inputs=frozenset({"contextVariable", "conversationHistory", "utterance"}),
        needs_number=False,
        needs_utterance=True,
    ),
    TESTING_DEFINITION: _Grammar(
        test_case=frozenset({"inputs", "number", "scorer"}),
        expectation=frozenset({"expectedValue", "name", "scorerType"}),
        inputs=frozenset({"contextVariable", "conversationHistory", "promptInput", "utterance"}),
        needs_number=True,
        needs_utterance=False,
    ),
}
_DEFINITION: Final = frozenset({"description", "name", "subjectName", "subjectType", "subjectVersion", "testCase"})
_PARAMETER: Final = frozenset({"isReference", "name", "value"})
_CONTEXT_VARIABLE: Final = frozenset({"variableName", "variableValue"})
_HISTORY: Final = frozenset({"index", "message", "role", "topic"})
_PROMPT_INPUT: Final = frozenset({"referenceName", "value"})


def read_definition(document: Document) -> Definition:
    """Reads a definition that fits the type exactly; it keeps the document's bytes.

    Raises:
        InvalidMetadata: with the place of the first thing that does not fit.
    """
    try:
        return _definition(document)
    except Misfit as misfit:
        location = document.location(misfit.element)
        kind = definition_type(document) or EVALUATION_DEFINITION
        hint = f"Compare it with {kind.name} in the Metadata API reference."
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
        *(_test_case_node(case, definition.type) for case in definition.test_cases),
    ]
    return render(node(definition.type.name, children, xmlns=NAMESPACE), indent=4)


def _unchanged(definition: Definition, source: bytes) -> bool:
    return read_definition(read_xml(source, label=definition.name)) == definition


def _definition(document: Document) -> Definition:
    root, kind = document.root, definition_type(document)
    if kind is None:
        raise Misfit("xml-root", f"the root element is <{local_name(root)}>", root)
    parts = Parts(root, _DEFINITION, strict=True)
    definition = Definition(
        name=parts.required("name"),
        subject_name=parts.required("subjectName"),
        subject_type=parts.required("subjectType"),
        subject_version=parts.text("subjectVersion"),
        description=parts.text("description"),
        test_cases=tuple(_test_case(each, kind) for each in parts.many("testCase")),
        type=kind,
        source=document.data,
    )
    _check_definition(definition, parts)
    return definition


def _check_definition(definition: Definition, parts: Parts) -> None:
    known = definition.type.subject_types
    if definition.subject_type not in known:
        message = f"subjectType is {definition.subject_type!r}, not {' or '.join(known)}"
        raise Misfit("value-invalid", message, parts.many("subjectType")[0])
    seen: set[int] = set()
    for case, element in zip(definition.test_cases, parts.many("testCase"), strict=True):
        if case.number in seen:
            raise Misfit("number-duplicate", f"number {case.number} is taken by an earlier test case", element)
        if case.number is not None:
            seen.add(case.number)


def _test_case(element: Element, kind: MetadataType) -> TestCase:
    grammar = _GRAMMARS[kind]
    parts = Parts(element, grammar.test_case, strict=True)
    inputs, number = parts.one("inputs"), parts.integer("number")
    if inputs is None:
        raise Misfit("element-missing", "<inputs> is missing", element)
    if number is None and grammar.needs_number:
        raise Misfit("element-missing", "<number> is missing", element)
    return TestCase(
        inputs=_inputs(inputs, grammar),
        expectations=tuple(_expectation(each, grammar) for each in parts.many(kind.expectation)),
        number=number,
    )


def _expectation(element: Element, grammar: _Grammar) -> Expectation:
    parts = Parts(element, grammar.expectation, strict=True)
    return Expectation(
        name=parts.required("name"),
        expected_value=parts.text("expectedValue"),
        label=parts.text("label"),
        parameters=tuple(_parameter(each) for each in parts.many("parameter")),
        scorer_type=_scorer_type(parts),
    )


def _scorer_type(parts: Parts) -> str | None:
    text = parts.text("scorerType")
    if text is not None and text not in SCORER_TYPES:
        message = f"scorerType is {text!r}, not {', '.join(SCORER_TYPES)}"
        raise Misfit("value-invalid", message, parts.many("scorerType")[0])
    return text


def _parameter(element: Element) -> Parameter:
    parts = Parts(element, _PARAMETER, strict=True)
    return Parameter(parts.required("name"), parts.required("value"), parts.boolean("isReference"))


def _inputs(element: Element, grammar: _Grammar) -> Inputs:
    parts = Parts(element, grammar.inputs, strict=True)
    return Inputs(
        utterance=parts.required("utterance") if grammar.needs_utterance else parts.text("utterance") or "",
        context_variables=tuple(_context_variable(each) for each in parts.many("contextVariable")),
        conversation_history=tuple(_history(each) for each in parts.many("conversationHistory")),
        prompt_inputs=tuple(_prompt_input(each) for each in parts.many("promptInput")),
    )


def _context_variable(element: Element) -> ContextVariable:
    parts = Parts(element, _CONTEXT_VARIABLE, strict=True)
    return ContextVariable(parts.required("variableName"), parts.required("variableValue"))


def _history(element: Element) -> HistoryMessage:
    parts = Parts(element, _HISTORY, strict=True)
    return HistoryMessage(parts.text("role"), parts.text("message"), parts.text("topic"), parts.integer("index"))


def _prompt_input(element: Element) -> PromptInput:
    parts = Parts(element, _PROMPT_INPUT, strict=True)
    return PromptInput(parts.required("referenceName"), parts.required("value"))


def _test_case_node(case: TestCase, kind: MetadataType) -> Node:
    children = [
        *(_expectation_node(each, kind) for each in case.expectations),
        _inputs_node(case.inputs),
        *_number("number", case.number),
    ]
    return node("testCase", sorted(children, key=lambda child: child.name))


def _expectation_node(expectation: Expectation, kind: MetadataType) -> Node:
    return node(
        kind.expectation,
        [
            *optional("expectedValue", expectation.expected_value),
            *optional("label", expectation.label),
            node("name", expectation.name),
            *(_parameter_node(each) for each in expectation.parameters),
            *optional("scorerType", expectation.scorer_type),
        ],
    )


def _parameter_node(parameter: Parameter) -> Node:
    reference = None if parameter.is_reference is None else str(parameter.is_reference).lower()
    children = [*optional("isReference", reference), node("name", parameter.name), node("value", parameter.value)]
    return node("parameter", children)


def _inputs_node(inputs: Inputs) -> Node:
    utterance = [] if inputs.prompt_inputs and not inputs.utterance else [node("utterance", inputs.utterance)]
    return node(
        "inputs",
        [
            *(_context_variable_node(each) for each in inputs.context_variables),
            *(_history_node(each) for each in inputs.conversation_history),
            *(_prompt_input_node(each) for each in inputs.prompt_inputs),
            *utterance,
        ],
    )


def _prompt_input_node(prompt_input: PromptInput) -> Node:
    return node("promptInput", [node("referenceName", prompt_input.reference_name), node("value", prompt_input.value)])


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
