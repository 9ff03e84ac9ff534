"""Definitions written as the sf CLI's YAML test specs, with a list of losses."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from evalmeta.formats.diagnostics import Loss, Written, case_name, number_losses
from evalmeta.formats.yaml_source import Yaml, write_yaml
from evalmeta.model.expectations import ACTIONS, METRICS, OPERATORS, OUTCOME, TOPIC, canonical_name, parse_actions
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase


def write_testspec(definition: Definition) -> Written:
    """Write a definition as a test spec: Agentforce Studio's for an AiTestingDefinition, else Testing Center's.

    Neighbouring test cases of an AiTestingDefinition with the same scorers become one with several inputs.
    """
    losses: list[Loss] = []
    is_studio = definition.type == TESTING_DEFINITION
    if is_studio and not definition.test_cases and definition.subject_type in EVALUATION_DEFINITION.subject_types:
        losses.append(Loss("definition", "the type; without test cases the spec is read as an AiEvaluationDefinition"))
    cases = _studio_cases if is_studio else _cases
    spec: dict[str, Yaml] = {
        "name": definition.name,
        **_given(description=definition.description),
        "subjectType": definition.subject_type,
        "subjectName": definition.subject_name,
        **_given(subjectVersion=definition.subject_version),
        "testCases": list(cases(definition.test_cases, losses)),
    }
    return Written(write_yaml(spec), tuple(losses))


def _given(**values: Yaml) -> dict[str, Yaml]:
    return {name: value for name, value in values.items() if value is not None and value != []}


def _cases(cases: Sequence[TestCase], losses: list[Loss]) -> Iterator[dict[str, Yaml]]:
    for place, case in enumerate(cases, 1):
        losses += number_losses(case, place)
        where = case_name(case, place)
        yield {**_inputs(case.inputs, losses, where), **_Sorted(case.expectations, losses, where).spec()}


def _inputs(inputs: Inputs, losses: list[Loss], where: str, *, numbers_messages: bool = True) -> dict[str, Yaml]:
    variables: list[Yaml] = [{"name": variable.name, "value": variable.value} for variable in inputs.context_variables]
    history: list[Yaml] = []
    for place, message in enumerate(inputs.conversation_history):
        required: dict[str, Yaml] = {}
        for name, value in (("role", message.role), ("message", message.message)):
            required[name] = value or ""
            if value is None:
                what = f"the missing {name} of a message of the history; it is written as an empty text"
                losses.append(Loss(where, what))
        index = None if numbers_messages and message.index == place else message.index
        history.append({**required, **_given(topic=message.topic, index=index)})
    return {"utterance": inputs.utterance, **_given(contextVariables=variables, conversationHistory=history)}


class _Sorted:
    """The expectations of a test case by the keys of a spec; those without a key are losses."""

    def __init__(self, expectations: Sequence[Expectation], losses: list[Loss], where: str) -> None:
        self._losses = losses
        self._where = where
        self._custom: list[Yaml] = []
        self._standard: dict[str, Yaml] = {}
        self._metrics: list[Yaml] = []
        ranks = [rank for expectation in expectations if (rank := self._take(expectation)) is not None]
        if ranks != sorted(ranks):
            self._lose("the order of the expectations; they are written as custom, topic, actions, outcome, metrics")

    def spec(self) -> dict[str, Yaml]:
        return {**self._standard, **_given(customEvaluations=self._custom, metrics=self._metrics)}

    def _take(self, expectation: Expectation) -> int | None:
        """Return the rank of an expectation in the order of a spec; None for one that is lost."""
        name = canonical_name(expectation.name)
        if name in OPERATORS:
            return self._take_custom(expectation)
        if expectation.parameters:
            return self._drop(f"the expectation {expectation.name!r}: only comparisons have parameters")
        if expectation.label is not None:
            self._lose(f"the label {expectation.label!r} of {expectation.name!r}")
        if expectation.name in METRICS:
            if expectation.expected_value is not None:
                self._lose(f"the expectedValue of {expectation.name!r}, which needs none")
            self._metrics.append(expectation.name)
            return len(_STANDARD) + 1
        if name not in _STANDARD:
            return self._drop(f"the expectation {expectation.name!r}, for which the format has no key")
        return self._take_standard(expectation, name)

    def _take_custom(self, expectation: Expectation) -> int:
        if expectation.expected_value is not None:
            self._lose(f"the expectedValue of {expectation.name!r}; its parameters are kept")
        parameters: list[Yaml] = [
            {"name": parameter.name, "value": parameter.value, **_given(isReference=parameter.is_reference)}
            for parameter in expectation.parameters
        ]
        label = _given(label=expectation.label)
        self._custom.append({**label, "name": expectation.name, "parameters": parameters})
        return 0

    def _take_standard(self, expectation: Expectation, name: str) -> int | None:
        rank, key = _STANDARD[name]
        if key in self._standard:
            return self._drop(f"the expectation {expectation.name!r}, of which a test case of a spec has one")
        value: Yaml = expectation.expected_value
        if name == ACTIONS and expectation.expected_value is not None:
            if (actions := parse_actions(expectation.expected_value)) is None:
                return self._drop(f"the actions {expectation.expected_value!r}, which are not a valid list")
            value = list(actions)
        if expectation.name != name:
            self._lose(f"the name {expectation.name!r}; it is written as {name!r}, which means the same")
        self._standard[key] = value
        return rank

    def _lose(self, what: str) -> None:
        self._losses.append(Loss(self._where, what))

    def _drop(self, what: str) -> int | None:
        self._lose(what)
        return None


_STANDARD = {TOPIC: (1, "expectedTopic"), ACTIONS: (2, "expectedActions"), OUTCOME: (3, "expectedOutcome")}


def _studio_cases(cases: Sequence[TestCase], losses: list[Loss]) -> Iterator[dict[str, Yaml]]:
    for place, case in enumerate(cases, 1):
        losses += number_losses(case, place)
        custom = (expectation.name for expectation in case.expectations if expectation.is_custom)
        kept = "its name is kept"
        losses += (Loss(case_name(case, place), f"the type of the custom scorer {name!r}; {kept}") for name in custom)
    for scorers, group in groupby(enumerate(cases, 1), key=lambda numbered: _scorers(numbered[1].expectations)):
        inputs: list[Yaml] = [_studio_inputs(case, losses, case_name(case, place)) for place, case in group]
        yield {"inputs": inputs, "scorers": scorers}


def _studio_inputs(case: TestCase, losses: list[Loss], where: str) -> dict[str, Yaml]:
    prompts = case.inputs.prompt_inputs
    fields = _inputs(case.inputs, losses, where, numbers_messages=False)
    if prompts and not case.inputs.utterance:
        del fields["utterance"]
    given: list[Yaml] = [{"referenceName": prompt.reference_name, "value": prompt.value} for prompt in prompts]
    return {**fields, **_given(promptInput=given)}


def _scorers(scorers: Sequence[Expectation]) -> list[Yaml]:
    return [{"name": scorer.name, **_given(expected=scorer.expected_value)} for scorer in scorers]
