"""The simple fields of a definition's parts as texts, named and ordered as an org writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.definition import (
        ContextVariable,
        Definition,
        Expectation,
        HistoryMessage,
        Parameter,
        PromptInput,
    )

__all__ = [
    "Fields",
    "definition_fields",
    "expectation_fields",
    "message_fields",
    "number_text",
    "parameter_fields",
    "prompt_input_fields",
    "variable_fields",
]

Fields: TypeAlias = "Mapping[str, str | None]"
"""Texts by the names of their elements; None where the element is missing."""


def definition_fields(definition: Definition) -> Fields:
    """Gives the fields of a definition without its test cases."""
    return {
        "description": definition.description,
        "name": definition.name,
        "subjectName": definition.subject_name,
        "subjectType": definition.subject_type,
        "subjectVersion": definition.subject_version,
    }


def expectation_fields(expectation: Expectation) -> Fields:
    """Gives the fields of an expectation without its parameters."""
    return {
        "expectedValue": expectation.expected_value,
        "label": expectation.label,
        "name": expectation.name,
        "scorerType": expectation.scorer_type,
    }


def parameter_fields(parameter: Parameter) -> Fields:
    """Gives the fields of a parameter."""
    reference = None if parameter.is_reference is None else str(parameter.is_reference).lower()
    return {"isReference": reference, "name": parameter.name, "value": parameter.value}


def variable_fields(variable: ContextVariable) -> Fields:
    """Gives the fields of a context variable."""
    return {"variableName": variable.name, "variableValue": variable.value}


def prompt_input_fields(prompt_input: PromptInput) -> Fields:
    """Gives the fields of a prompt template's input."""
    return {"referenceName": prompt_input.reference_name, "value": prompt_input.value}


def message_fields(message: HistoryMessage) -> Fields:
    """Gives the fields of a message of the conversation history."""
    index = number_text(message.index)
    return {"index": index, "message": message.message, "role": message.role, "topic": message.topic}


def number_text(value: int | None) -> str | None:
    """Gives a number as text; None stays None."""
    return None if value is None else str(value)
