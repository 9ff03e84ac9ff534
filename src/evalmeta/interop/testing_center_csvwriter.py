"""Definitions written as CSV files for the Testing Center, every loss named."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final

from evalmeta.interop.losses import Loss, Written, number_losses, place_of
from evalmeta.interop.testing_center_csv import VARIABLE_PREFIX
from evalmeta.interop.testspec import ACTIONS, OUTCOME, TOPIC
from evalmeta.model.actions import is_action_list
from evalmeta.model.expectations import canonical_name
from evalmeta.model.registry import TESTING_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Definition, Expectation, HistoryMessage, Inputs, TestCase

__all__ = ["write_testing_center_csv"]

_HISTORY: Final = "Conversation History"
_UTTERANCE: Final = "Utterance"
_TITLES: Final = {TOPIC: "Expected Topic", ACTIONS: "Expected Actions", OUTCOME: "Expected Response"}


def write_testing_center_csv(definition: Definition) -> Written:
    """Writes the test cases of a definition; what the Testing Center's wizard asks for is no loss."""
    losses = list(_definition_losses(definition))
    variables = _variables(definition.test_cases)
    titles = [
        *([_HISTORY] if any(case.inputs.conversation_history for case in definition.test_cases) else []),
        *(_UTTERANCE, *_TITLES.values(), *(VARIABLE_PREFIX + name for name in variables)),
    ]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, titles, restval="")
    writer.writeheader()
    for place, case in enumerate(definition.test_cases, 1):
        losses += _case_losses(case, place, variables)
        writer.writerow(_row(case, variables))
    return Written(text.getvalue().encode(), tuple(losses))


def _variables(cases: Sequence[TestCase]) -> list[str]:
    """Lists the names of variables that can stand in a title, in the order in which they come."""
    names = (each.name for case in cases for each in case.inputs.context_variables)
    return list(dict.fromkeys(name for name in names if name == " ".join(name.split()) and name))


def _row(case: TestCase, variables: Sequence[str]) -> dict[str, str]:
    row = {_UTTERANCE: case.inputs.utterance}
    if history := case.inputs.conversation_history:
        row[_HISTORY] = json.dumps([_message(each, place) for place, each in enumerate(history)], ensure_ascii=False)
    for expectation in _kept(case.expectations):
        row[_TITLES[canonical_name(expectation.name)]] = expectation.expected_value or ""
    for variable in case.inputs.context_variables:
        if variable.name in variables:
            row.setdefault(VARIABLE_PREFIX + variable.name, variable.value)
    return row


def _message(message: HistoryMessage, place: int) -> dict[str, str | int]:
    fields: dict[str, str | int] = {"role": message.role or "", "message": message.message or ""}
    if message.topic is not None:
        fields["topic"] = message.topic
    if message.index not in {None, place}:
        fields["index"] = message.index or 0
    return fields


def _kept(expectations: Sequence[Expectation]) -> Iterator[Expectation]:
    """Yields the expectations that have a column, of each the first."""
    seen = set()
    for each in expectations:
        name = canonical_name(each.name)
        is_held = bool(each.expected_value) and (name != ACTIONS or is_action_list(each.expected_value or ""))
        if name in _TITLES and name not in seen and is_held:
            seen.add(name)
            yield each


def _definition_losses(definition: Definition) -> Iterator[Loss]:
    if definition.type == TESTING_DEFINITION:
        yield Loss("definition", "the type; it reads as an AiEvaluationDefinition")


def _case_losses(case: TestCase, place: int, variables: Sequence[str]) -> Iterator[Loss]:
    yield from number_losses(case, place)
    texts = (*_expectation_losses(case.expectations), *_input_losses(case.inputs, variables))
    yield from (Loss(place_of(case, place), text) for text in texts)


def _expectation_losses(expectations: Sequence[Expectation]) -> Iterator[str]:
    kept = list(_kept(expectations))
    for each in expectations:
        if not any(each is other for other in kept):
            yield f"the expectation {each.name!r}; a row has one topic, action list and response with a value"
            continue
        if each.label is not None:
            yield f"the label {each.label!r} of {each.name!r}"
        if each.parameters:
            yield f"the parameters of {each.name!r}"
        if each.is_custom:
            yield f"that the scorer {each.name!r} is a custom one"
        if each.name not in _TITLES:
            yield f"the name {each.name!r}; it reads as {canonical_name(each.name)!r}, which means the same"
    order = [list(_TITLES).index(canonical_name(each.name)) for each in kept]
    if order != sorted(order):
        yield "the order of the expectations; they come as topic, actions, response"


def _input_losses(inputs: Inputs, variables: Sequence[str]) -> Iterator[str]:
    if not inputs.utterance:
        yield "an empty utterance, which no row may have"
    if inputs.prompt_inputs:
        yield "the inputs of a prompt template"
    for message in inputs.conversation_history:
        if message.role is None or message.message is None:
            yield "that a message of the history has no role or no message; it is written with an empty one"
    names = [each.name for each in inputs.context_variables]
    for place, variable in enumerate(inputs.context_variables):
        if variable.name not in variables or variable.name in names[:place]:
            yield f"the variable {variable.name!r}, which no column or another one of the case stands for"
        elif not variable.value:
            yield f"the variable {variable.name!r}, whose value is empty"
    if len(set(names)) == len(names) and [name for name in variables if name in names] != [
        name for name in names if name in variables
    ]:
        yield "the order of the variables; they come in the order of the columns"
