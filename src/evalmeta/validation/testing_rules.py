"""Rules about an AiTestingDefinition as a whole, beside those about every definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.model.expectations import scorer_kind, scorer_names
from evalmeta.validation.definition_rules import is_api_name
from evalmeta.validation.finding import Finding, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.validation.definition_rules import DefinitionScope

__all__ = [
    "find_description_too_long",
    "find_history_missing",
    "find_name_elsewhere",
    "find_number_gap",
    "find_prompt_inputs_missing",
    "find_unsupported_scorers",
]


def find_name_elsewhere(scope: DefinitionScope) -> Iterator[Finding]:
    """`name` of an AiTestingDefinition is the file's name."""
    name = scope.definition.name
    if is_api_name(name) and name != scope.full_name:
        hint = f"Write {scope.full_name}, or rename the file."
        yield Finding((("name", 0),), f"the name {quote(name)} is not the file's, {quote(scope.full_name)}", hint)


def find_description_too_long(scope: DefinitionScope) -> Iterator[Finding]:
    """`description` of an AiTestingDefinition, which becomes its label, has at most 100 characters."""
    length, most = len(scope.definition.description or ""), limits.MAX_LABEL_CHARS
    if length > most:
        message = f"the description has {length} characters; orgs make a label of it, which has at most {most}"
        yield Finding((("description", 0),), message, "Shorten it.")


def find_number_gap(scope: DefinitionScope) -> Iterator[Finding]:
    """Test cases of an AiTestingDefinition are numbered 1, 2, 3 and so on, in any order."""
    count = len(scope.definition.test_cases)
    for place, case in enumerate(scope.definition.test_cases):
        if case.number is not None and not 1 <= case.number <= count:
            message = f"the test case has the number {case.number}; there are {count}, numbered from 1 without gaps"
            yield Finding((("testCase", place), ("number", 0)), message, "Number the test cases 1, 2, 3 and so on.")
            return


def find_prompt_inputs_missing(scope: DefinitionScope) -> Iterator[Finding]:
    """A test case of a prompt template has prompt inputs."""
    if scope.definition.subject_type != "PROMPT":
        return
    for place, case in enumerate(scope.definition.test_cases):
        if not case.inputs.prompt_inputs:
            steps = (("testCase", place), ("inputs", 0), ("promptInput", 0))
            hint = "Add a <promptInput> with <referenceName> and <value> for each input of the template."
            yield Finding(steps, "the test case has no prompt input", hint)


def find_unsupported_scorers(scope: DefinitionScope) -> Iterator[Finding]:
    """A scorer judges subjects of the definition's type."""
    subject_type = scope.definition.subject_type
    for place, case in enumerate(scope.definition.test_cases):
        for index, scorer in enumerate(case.expectations):
            kind = None if scorer.is_custom else scorer_kind(scorer.name)
            if kind and subject_type not in kind.subjects and subject_type in scope.definition.type.subject_types:
                message = f"{scorer.name} does not judge subjects of the type {subject_type}"
                hint = f"Those that do: {', '.join(scorer_names(subject_type))}."
                yield Finding((("testCase", place), ("scorer", index), ("name", 0)), message, hint)


def find_history_missing(scope: DefinitionScope) -> Iterator[Finding]:
    """The scorer `task_resolution` judges a conversation, so its test case has a history."""
    for place, case in enumerate(scope.definition.test_cases):
        if case.inputs.conversation_history:
            continue
        for index, scorer in enumerate(case.expectations):
            kind = None if scorer.is_custom else scorer_kind(scorer.name)
            if kind and kind.needs_history:
                message = f"{scorer.name} judges a conversation, and the test case has no history"
                hint = "Add <conversationHistory> to its <inputs>, or remove the scorer."
                yield Finding((("testCase", place), ("scorer", index), ("name", 0)), message, hint)
