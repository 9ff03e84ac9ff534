"""A test definition as a value: every type and field of AiEvaluationDefinition and AiTestingDefinition.

Names are those of the Metadata API reference in snake case; repeated elements are tuples with plural names. Text is
unchanged, numbers are integers. Both types have the same model: a `scorer` of an AiTestingDefinition is an expectation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject


class Parameter(NamedTuple):
    """One criterion parameter of a custom expectation (AiEvaluationTestCaseCritParam, API 64.0)."""

    name: str
    value: str
    is_reference: bool | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a test case expects (AiEvaluationExpectation, AiTestCaseScorer).

    Attributes:
        expected_value: what to compare with.
        label: the name of a custom criterion in results.
        parameters: the parameters of a custom criterion.
        scorer_type: Standard, which some tools call OOTB (out of the box), or Custom; for scorers only.
        terms: settings of a scorer that only other formats have, as JSON by name.
    """

    name: str
    expected_value: str | None = None
    label: str | None = None
    parameters: tuple[Parameter, ...] = ()
    scorer_type: str | None = None
    terms: JsonObject = field(default_factory=dict)

    @property
    def is_custom(self) -> bool:
        """Return whether it is a scorer that only the org has (AiAgentScorerDefinition)."""
        return self.scorer_type == "Custom"


@dataclass(frozen=True, slots=True)
class ContextVariable:
    """A variable sent to the agent with the utterance (AiEvalCopilotTestCaseCntxtVar)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One earlier message of the conversation (AiEvalCopilotTestCaseConv)."""

    role: str | None = None
    message: str | None = None
    topic: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class PromptInput:
    """The value of one input of a prompt template (subject type PROMPT)."""

    reference_name: str
    value: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is sent to the agent (AiEvaluationAgentTestCaseInput, AiTestCaseInput); a prompt has no utterance."""

    utterance: str
    context_variables: tuple[ContextVariable, ...] = ()
    conversation_history: tuple[HistoryMessage, ...] = ()
    prompt_inputs: tuple[PromptInput, ...] = ()

    @property
    def conversation(self) -> tuple[HistoryMessage, ...]:
        """Return the history in the order of the conversation."""
        return tuple(self.conversation_history[place] for place in self.conversation_places())

    def conversation_places(self) -> list[int]:
        """Return the places of the messages in the file, in the order of their indices if these are 0, 1, 2 and so on.

        If the indices are not complete, the order is that of the file.
        """
        indices = [message.index for message in self.conversation_history]
        in_file = list(range(len(indices)))
        ordered = sorted(in_file, key=lambda place: indices[place] or 0)
        return ordered if [indices[place] for place in ordered] == in_file else in_file


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test case (AiEvaluationTestCase, AiTestCase); a missing number means its position in the file, from 1."""

    __test__ = False

    inputs: Inputs
    expectations: tuple[Expectation, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A test definition.

    Attributes:
        type: the metadata type.
        source: the bytes from which the definition was read, so that writing it unchanged returns the same file; not
            compared.
    """

    name: str
    subject_name: str
    subject_type: str = "AGENT"
    subject_version: str | None = None
    description: str | None = None
    test_cases: tuple[TestCase, ...] = ()
    type: MetadataType = EVALUATION_DEFINITION
    source: bytes | None = field(default=None, repr=False, compare=False)


Fields: TypeAlias = "Mapping[str, str | None]"
"""Texts by element name, in the order of orgs; None if the element is missing."""
# The elements with the texts of each kind of value, and its attributes.
_ELEMENTS: Final[Mapping[type, Mapping[str, str]]] = {
    Definition: {
        "description": "description",
        "name": "name",
        "subjectName": "subject_name",
        "subjectType": "subject_type",
        "subjectVersion": "subject_version",
    },
    TestCase: {"number": "number"},
    Inputs: {"utterance": "utterance"},
    Expectation: {"expectedValue": "expected_value", "label": "label", "name": "name", "scorerType": "scorer_type"},
    Parameter: {"isReference": "is_reference", "name": "name", "value": "value"},
    ContextVariable: {"variableName": "name", "variableValue": "value"},
    PromptInput: {"referenceName": "reference_name", "value": "value"},
    HistoryMessage: {"index": "index", "message": "message", "role": "role", "topic": "topic"},
}


def fields_of(value: object) -> Fields:
    """Return the texts of a definition, or of a part of one, without those of the parts inside it."""
    return {element: _text(getattr(value, attribute)) for element, attribute in _ELEMENTS[type(value)].items()}


def _text(value: str | int | None) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
