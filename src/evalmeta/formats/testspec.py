"""The YAML test specs of the sf CLI, read: Testing Center's and Agentforce Studio's.

Source: Agentforce DX, "Customize the Agent Test Spec", and the types TestSpec and
NgtTestSpec of @salesforce/agents. A spec of Agentforce Studio is known by the `inputs`
or `scorers` of its first test case. What a spec leaves out is not expected: sf writes an
empty topic, response and action list into the definition instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.yaml_source import Record, YamlMapping, read_yaml
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
from evalmeta.model.expectations import ACTIONS, METRICS, OPERATORS, OUTCOME, TOPIC, render_actions
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.formats.yaml_source import YamlNode
    from evalmeta.model.registry import MetadataType


_DEFINITION: Final = ("name", "description", "subjectType", "subjectName", "subjectVersion", "testCases")
_INPUTS: Final = ("utterance", "contextVariables", "conversationHistory")
_CASE: Final = (*_INPUTS, "expectedTopic", "expectedActions", "expectedOutcome", "metrics", "customEvaluations")
_STUDIO_CASE: Final = ("inputs", "scorers")
_STUDIO_INPUTS: Final = (*_INPUTS, "promptInput")
_SCORER: Final = ("name", "expected")
_CUSTOM: Final = ("label", "name", "parameters")
_PARAMETER: Final = ("name", "value", "isReference")
_HISTORY: Final = ("role", "message", "topic", "index")
_VARIABLE: Final = ("name", "value")
_PROMPT_INPUT: Final = ("referenceName", "value")
_PARAMETERS_HINT: Final = "Write a list of parameters: operator, actual (isReference: true) and expected."
_CUSTOM_HINTS: Final = dict.fromkeys(("JSONPath", "jsonPath", "operator", "expectedValue", "actual"), _PARAMETERS_HINT)
_CASE_HINTS: Final = {
    "expectations": "Use expectedTopic, expectedActions, expectedOutcome, metrics or customEvaluations.",
    "expectedSubagent": "Did you mean 'expectedTopic'?",
    "expectedResponse": "Did you mean 'expectedOutcome'?",
}
_SPEC_HINTS: Final = {
    "agentType": "This is an agent spec; a test spec has testCases.",
    "topics": "This is an agent spec; a test spec has testCases.",
}


def read_testspec(data: bytes, *, label: str) -> Definition:
    """Reads a test spec of either kind; its test cases are numbered from 1 in the order of the file.

    Args:
        data: the file's bytes, YAML or JSON.
        label: the file's name as messages show it.

    Raises:
        FormatError: it is no YAML, or does not fit the format; `problems` has every reason with line and column.
    """
    diagnostics = Diagnostics(label)
    root = Record(read_yaml(data, label=label), diagnostics, _DEFINITION, called="a test spec", hints=_SPEC_HINTS)
    nodes = root.items("testCases")
    subject_type = root.required("subjectType")
    kind = _kind(nodes, subject_type)
    if subject_type and subject_type not in kind.subject_types:
        message = f"'subjectType' is {subject_type!r}, not {' or '.join(kind.subject_types)}"
        root.refuse(root["subjectType"], "spec-value", message)
    if "testCases" not in root and isinstance(root.node, YamlMapping):
        root.refuse(root.node, "spec-missing", "a test spec needs 'testCases'")
    definition = Definition(
        name=root.required("name"),
        subject_name=root.required("subjectName"),
        subject_type=subject_type,
        subject_version=root.text("subjectVersion"),
        description=root.text("description"),
        test_cases=tuple(
            _studio_cases(nodes, diagnostics) if kind == TESTING_DEFINITION else _cases(nodes, diagnostics)
        ),
        type=kind,
    )
    diagnostics.check()
    return definition


def _kind(nodes: tuple[YamlNode, ...], subject_type: str) -> MetadataType:
    if not nodes:
        return next((row for row in TYPES if subject_type in row.subject_types), EVALUATION_DEFINITION)
    first = nodes[0]
    is_studio = isinstance(first, YamlMapping) and any(key.text in _STUDIO_CASE for key, _ in first.entries)
    return TESTING_DEFINITION if is_studio else EVALUATION_DEFINITION


def _cases(nodes: tuple[YamlNode, ...], diagnostics: Diagnostics) -> Iterator[TestCase]:
    for number, node in enumerate(nodes, 1):
        case = Record(node, diagnostics, _CASE, called="a test case", hints=_CASE_HINTS)
        inputs = Inputs(
            case.required("utterance"), _variables(case, diagnostics), _history(case, diagnostics, fill=True)
        )
        yield TestCase(inputs, tuple(_expectations(case, diagnostics)), number)


def _expectations(case: Record, diagnostics: Diagnostics) -> Iterator[Expectation]:
    """Yields expectations in the order in which sf writes them."""
    for node in case.items("customEvaluations"):
        yield _custom(node, diagnostics)
    if "expectedTopic" in case:
        yield Expectation(TOPIC, case.text("expectedTopic"))
    if "expectedActions" in case:
        yield Expectation(ACTIONS, _actions(case))
    if "expectedOutcome" in case:
        yield Expectation(OUTCOME, case.text("expectedOutcome"))
    for node, name in case.texts("metrics"):
        if name not in METRICS:
            case.refuse(node, "spec-value", f"{name!r} is no metric", hint=diagnostics.suggest(name, METRICS))
        yield Expectation(name)


def _actions(case: Record) -> str | None:
    if case.is_null("expectedActions"):
        return None
    names = []
    for node, text in case.texts("expectedActions"):
        if not text.strip():
            case.refuse(node, "spec-missing", "an action has no name")
        names.append(text.strip())
    return render_actions(names)


def _custom(node: YamlNode, diagnostics: Diagnostics) -> Expectation:
    record = Record(node, diagnostics, _CUSTOM, called="a custom evaluation", hints=_CUSTOM_HINTS)
    name = record.required("name")
    if name and name not in OPERATORS:
        record.refuse(
            node, "spec-value", f"{name!r} is no custom evaluation", hint=diagnostics.suggest(name, OPERATORS)
        )
    parameters = tuple(_parameter(each, diagnostics) for each in record.items("parameters"))
    return Expectation(name, label=record.text("label"), parameters=parameters)


def _parameter(node: YamlNode, diagnostics: Diagnostics) -> Parameter:
    record = Record(node, diagnostics, _PARAMETER, called="a parameter")
    return Parameter(record.required("name"), record.required("value"), record.boolean("isReference"))


def _variables(record: Record, diagnostics: Diagnostics) -> tuple[ContextVariable, ...]:
    items = (Record(each, diagnostics, _VARIABLE, called="a variable") for each in record.items("contextVariables"))
    return tuple(ContextVariable(each.required("name"), each.required("value")) for each in items)


def _history(record: Record, diagnostics: Diagnostics, *, fill: bool) -> tuple[HistoryMessage, ...]:
    messages = []
    for place, node in enumerate(record.items("conversationHistory")):
        each = Record(node, diagnostics, _HISTORY, called="a message")
        index = each.integer("index")
        index = place if index is None and fill else index
        messages.append(HistoryMessage(each.required("role"), each.required("message"), each.text("topic"), index))
    return tuple(messages)


def _studio_cases(nodes: tuple[YamlNode, ...], diagnostics: Diagnostics) -> Iterator[TestCase]:
    number = 0
    for node in nodes:
        case = Record(node, diagnostics, _STUDIO_CASE, called="a test case of Agentforce Studio")
        scorers = tuple(_scorer(each, diagnostics) for each in case.items("scorers"))
        if not (inputs := case.items("inputs")):
            case.refuse(node, "spec-missing", "a test case of Agentforce Studio needs 'inputs'")
        if "scorers" not in case:
            case.refuse(node, "spec-missing", "a test case of Agentforce Studio needs 'scorers'")
        for each in inputs:
            number += 1
            yield TestCase(_studio_inputs(each, diagnostics), scorers, number)


def _studio_inputs(node: YamlNode, diagnostics: Diagnostics) -> Inputs:
    record = Record(node, diagnostics, _STUDIO_INPUTS, called="an input")
    prompts = (Record(each, diagnostics, _PROMPT_INPUT, called="an input") for each in record.items("promptInput"))
    prompt_inputs = tuple(PromptInput(each.required("referenceName"), each.required("value")) for each in prompts)
    utterance = record.text("utterance") if prompt_inputs else record.required("utterance")
    return Inputs(
        utterance or "", _variables(record, diagnostics), _history(record, diagnostics, fill=False), prompt_inputs
    )


def _scorer(node: YamlNode, diagnostics: Diagnostics) -> Expectation:
    record = Record(node, diagnostics, _SCORER, called="a scorer")
    return Expectation(record.required("name"), record.text("expected"))
