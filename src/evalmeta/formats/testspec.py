"""The YAML test specs of the sf CLI: Testing Center's and Agentforce Studio's.

Source: Agentforce DX, "Customize the Agent Test Spec", and the types TestSpec and NgtTestSpec of
@salesforce/agents. A spec of Agentforce Studio is recognised by the `inputs` or `scorers` of its first test case.
Keys that a spec omits expect nothing; sf writes an empty topic, response and action list for them instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.document import Document, Reading, read_bytes
from evalmeta.formats.yaml_source import YamlRecord, read_yaml
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
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.expectations import ACTIONS, METRICS, OPERATORS, OUTCOME, TOPIC, render_actions
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.registry import MetadataType


_INPUTS: Final = ("utterance", "contextVariables", "conversationHistory")
_STUDIO_CASE: Final = ("inputs", "scorers")
_PARAMETERS_HINT: Final = "Write a list of parameters: operator, actual (isReference: true) and expected."
_CUSTOM_HINTS: Final = dict.fromkeys(("JSONPath", "jsonPath", "operator", "expectedValue", "actual"), _PARAMETERS_HINT)
_CASE_HINTS: Final = {
    "expectations": "Use expectedTopic, expectedActions, expectedOutcome, metrics or customEvaluations.",
    "expectedSubagent": "Did you mean 'expectedTopic'?",
    "expectedResponse": "Did you mean 'expectedOutcome'?",
}
_SPEC_HINTS: Final = dict.fromkeys(("agentType", "topics"), "This is an agent spec; a test spec has testCases.")


def read_testspec(data: bytes, *, label: str) -> Definition:
    """Read a test spec of either kind; its test cases are numbered from 1 in the order of the file.

    Args:
        data: the file's bytes, YAML or JSON.
        label: the file's name as messages show it.

    Raises:
        FormatError: it is not valid YAML, or does not fit the format; `problems` has every reason with line and column.
    """
    return _read(data, label)[0]


def read_file(path: Path, *, label: str, name: str, reading: Reading) -> Document:
    """Read a test spec as `files.read_document` does."""
    definition, records = _read(read_bytes(path, limits.MAX_SPEC_BYTES), label)
    lines = {number: each.source.place(each.path)[0] for number, each in enumerate(records, 1)}
    return Document(evaluation_of(definition, name=name), lines=lines)


def _read(data: bytes, label: str) -> tuple[Definition, Iterator[YamlRecord]]:
    """Return a definition, and the records of its test cases in the file."""
    diagnostics = Diagnostics(label)
    file = read_yaml(data, label=label)
    root = YamlRecord(file, (), file.value, diagnostics, called="a test spec")
    root.check_keys(
        *("name", "description", "subjectType", "subjectName", "subjectVersion", "testCases"), hints=_SPEC_HINTS
    )
    subject_type = root.required_text("subjectType")
    kind = _kind(root.items("testCases"), subject_type)
    if subject_type and subject_type not in kind.subject_types:
        message = f"'subjectType' is {subject_type!r}, not {' or '.join(kind.subject_types)}"
        root.error("spec-value", message, "subjectType")
    if "testCases" not in root.values:
        root.require("testCases")
    definition = Definition(
        name=root.required_text("name"),
        subject_name=root.required_text("subjectName"),
        subject_type=subject_type,
        subject_version=root.text("subjectVersion"),
        description=root.text("description"),
        test_cases=tuple(_studio_cases(root) if kind == TESTING_DEFINITION else _cases(root)),
        type=kind,
    )
    diagnostics.check()
    cases = root.records("testCases", called="a test case")
    if kind == TESTING_DEFINITION:
        return definition, (each for case in cases for each in case.records("inputs", called="an input"))
    return definition, cases


def _kind(cases: Sequence[JsonValue], subject_type: str) -> MetadataType:
    if not cases:
        return next((row for row in TYPES if subject_type in row.subject_types), EVALUATION_DEFINITION)
    is_studio = isinstance(cases[0], dict) and not cases[0].keys().isdisjoint(_STUDIO_CASE)
    return TESTING_DEFINITION if is_studio else EVALUATION_DEFINITION


def _cases(root: YamlRecord) -> Iterator[TestCase]:
    for number, case in enumerate(root.records("testCases", called="a test case"), 1):
        expected = ("expectedTopic", "expectedActions", "expectedOutcome", "metrics", "customEvaluations")
        case.check_keys(*_INPUTS, *expected, hints=_CASE_HINTS)
        inputs = Inputs(case.required_text("utterance"), _variables(case), _history(case, numbers_messages=True))
        yield TestCase(inputs, tuple(_expectations(case)), number)


def _expectations(case: YamlRecord) -> Iterator[Expectation]:
    """Yield expectations in the order in which sf writes them; a key without a value expects a missing value."""
    yield from map(_custom, case.records("customEvaluations", called="a custom evaluation"))
    if "expectedTopic" in case.values:
        yield Expectation(TOPIC, case.text("expectedTopic"))
    if "expectedActions" in case.values:
        actions = dict(case.texts("expectedActions"))
        for place, name in actions.items():
            if not name.strip():
                case.error("spec-missing", "an action has no name", "expectedActions", place)
        names = render_actions(map(str.strip, actions.values()))
        yield Expectation(ACTIONS, names if case.has("expectedActions") else None)
    if "expectedOutcome" in case.values:
        yield Expectation(OUTCOME, case.text("expectedOutcome"))
    for place, name in case.texts("metrics"):
        if name not in METRICS:
            hint = case.diagnostics.suggest(name, METRICS)
            case.error("spec-value", f"{name!r} is not a valid metric", "metrics", place, hint=hint)
        yield Expectation(name)


def _custom(record: YamlRecord) -> Expectation:
    record.check_keys("label", "name", "parameters", hints=_CUSTOM_HINTS)
    name = record.required_text("name")
    if name and name not in OPERATORS:
        hint = record.diagnostics.suggest(name, OPERATORS)
        record.error("spec-value", f"{name!r} is not a valid custom evaluation", "name", hint=hint)
    parameters = tuple(
        Parameter(*_pair(each, "name", "isReference"), each.boolean("isReference"))
        for each in record.records("parameters", called="a parameter")
    )
    return Expectation(name, label=record.text("label"), parameters=parameters)


def _variables(inputs: YamlRecord) -> tuple[ContextVariable, ...]:
    return tuple(ContextVariable(*_pair(each)) for each in inputs.records("contextVariables", called="a variable"))


def _pair(record: YamlRecord, name: str = "name", *others: str) -> tuple[str, str]:
    record.check_keys(name, "value", *others)
    return record.required_text(name), record.required_text("value")


def _history(inputs: YamlRecord, *, numbers_messages: bool) -> tuple[HistoryMessage, ...]:
    messages = []
    for place, each in enumerate(inputs.records("conversationHistory", called="a message")):
        each.check_keys("role", "message", "topic", "index")
        index = each.integer("index")
        index = place if index is None and numbers_messages else index
        role, message = each.required_text("role"), each.required_text("message")
        messages.append(HistoryMessage(role, message, each.text("topic"), index))
    return tuple(messages)


def _studio_cases(root: YamlRecord) -> Iterator[TestCase]:
    number = 0
    for case in root.records("testCases", called="a test case of Agentforce Studio"):
        case.check_keys(*_STUDIO_CASE)
        scorers = []
        for each in case.records("scorers", called="a scorer"):
            each.check_keys("name", "expected")
            scorers.append(Expectation(each.required_text("name"), each.text("expected")))
        if not case.items("inputs"):
            case.error("spec-missing", f"{case.called} needs 'inputs'")
        if "scorers" not in case.values:
            case.require("scorers")
        for each in case.records("inputs", called="an input"):
            number += 1
            yield TestCase(_studio_inputs(each), tuple(scorers), number)


def _studio_inputs(record: YamlRecord) -> Inputs:
    record.check_keys(*_INPUTS, "promptInput")
    prompts = record.records("promptInput", called="an input")
    prompt_inputs = tuple(PromptInput(*_pair(each, "referenceName")) for each in prompts)
    utterance = record.text("utterance") if prompt_inputs else record.required_text("utterance")
    history = _history(record, numbers_messages=False)
    return Inputs(utterance or "", _variables(record), history, prompt_inputs)
