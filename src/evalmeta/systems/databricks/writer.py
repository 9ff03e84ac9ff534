"""Definitions written as evaluation sets of Databricks (JSON Lines), with a list of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.formats.diagnostics import Loss, Written, case_name, detail_losses, number_losses, subject_losses
from evalmeta.model.expectations import OUTCOME, canonical_name
from evalmeta.systems.databricks.rows import is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Definition, Expectation, HistoryMessage, Inputs, TestCase
    from evalmeta.model.json_value import JsonObject, JsonValue


_ROLES: Final = {"user": "user", "agent": "assistant", "system": "system", "tool": "tool"}


def write_databricks(definition: Definition) -> Written:
    """Write the test cases of a definition as rows: request, request_id, and the expected response.

    Other expectations and variables have no column. The columns decide which judges are asked.
    """
    losses = [Loss("definition", f"the subject's name {definition.subject_name!r}; rows do not name their agent")]
    losses += subject_losses(definition)
    if definition.description is not None:
        losses.append(Loss("definition", "the description"))
    rows: list[JsonObject] = []
    for place, case in enumerate(definition.test_cases, 1):
        losses += (Loss(case_name(case, place), what) for what in _case_losses(case))
        if case.inputs.utterance.strip():
            row: dict[str, JsonValue] = {"request_id": str(len(rows) + 1), "request": _request(case.inputs)}
            if (response := _response(case.expectations)) is not None:
                row["expected_response"] = response.expected_value
            rows.append(row)
            losses += number_losses(case, len(rows))
    if not rows:
        losses.append(Loss("definition", "all of it; an evaluation set without rows cannot be read"))
    return Written(b"".join(orjson.dumps(row) + b"\n" for row in rows), tuple(losses))


def _request(inputs: Inputs) -> JsonValue:
    """Return a plain text if there is no history and the text would not be read as a request, or else messages."""
    if not inputs.conversation_history and is_plain(inputs.utterance):
        return inputs.utterance
    messages = [
        (_ROLES.get(message.role or "", "user"), message.message or "") for message in inputs.conversation_history
    ]
    return {"messages": [{"role": role, "content": text} for role, text in (*messages, ("user", inputs.utterance))]}


def _response(expectations: Sequence[Expectation]) -> Expectation | None:
    """Return the first expected answer; only one has a column."""
    answers = (expectation for expectation in expectations if canonical_name(expectation.name) == OUTCOME)
    return next((answer for answer in answers if answer.expected_value is not None), None)


def _case_losses(case: TestCase) -> Iterator[str]:
    inputs = case.inputs
    if not inputs.utterance.strip():
        yield "all of it; a row needs something that is asked"
        return
    for variable in inputs.context_variables:
        yield f"the context variable {variable.name!r}"
    for prompt_input in inputs.prompt_inputs:
        yield f"the input {prompt_input.reference_name!r} of a prompt"
    for place, message in enumerate(inputs.conversation_history):
        yield from _message_losses(message, place)
    yield from _expectation_losses(case.expectations)


def _expectation_losses(expectations: Sequence[Expectation]) -> Iterator[str]:
    kept = _response(expectations)
    for expectation in expectations:
        if expectation is not kept:
            yield f"the expectation {expectation.name!r}; a row expects one response only"
            continue
        if expectation.name != OUTCOME:
            yield f"the name {expectation.name!r}; it reads as {OUTCOME!r}, which means the same"
        yield from detail_losses(expectation)


def _message_losses(message: HistoryMessage, place: int) -> Iterator[str]:
    if message.role not in _ROLES:
        yield f"the role {message.role!r} of a message; it is written as the user's"
    if message.message is None:
        yield "that a message of the history has no text; it is written with an empty one"
    if message.topic is not None:
        yield f"the topic {message.topic!r} of a message"
    if message.index not in {None, place}:
        yield f"the index {message.index} of a message; by its place it gets {place}"
