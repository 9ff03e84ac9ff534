"""A test definition as a value: every type and field of AiEvaluationDefinition and AiTestingDefinition.

Names are the Metadata API reference's own in snake case; repeated elements become
tuples with plural names. Text is kept as the file has it, numbers are Python integers.
The two types say the same things, so there is one model of both: a `scorer` of an
AiTestingDefinition is an expectation here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta.model.registry import EVALUATION_DEFINITION

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.registry import MetadataType

__all__ = [
    "SCORER_TYPES",
    "ContextVariable",
    "Definition",
    "Expectation",
    "HistoryMessage",
    "Inputs",
    "Parameter",
    "PromptInput",
    "TestCase",
]

SCORER_TYPES: Final = ("Standard", "OOTB", "Custom")
"""Standard scorers have two names: the metadata says Standard, some tools say OOTB (out of the box)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One criterion parameter of a custom expectation (AiEvaluationTestCaseCritParam, API 64.0)."""

    name: str
    value: str
    is_reference: bool | None = None


def _no_terms() -> JsonObject:
    return {}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a test case expects (AiEvaluationExpectation, AiTestCaseScorer).

    Attributes:
        expected_value: what to compare with.
        label: what results call a custom criterion.
        parameters: of a custom criterion.
        scorer_type: Standard or Custom, for scorers only.
        terms: what definitions have no place for and other formats tell a scorer, as JSON by name.
    """

    name: str
    expected_value: str | None = None
    label: str | None = None
    parameters: tuple[Parameter, ...] = ()
    scorer_type: str | None = None
    terms: JsonObject = field(default_factory=_no_terms)

    @property
    def is_custom(self) -> bool:
        """Says whether it is a scorer that only the org knows (AiAgentScorerDefinition)."""
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
    """What stands for one of a prompt template's inputs (subject type PROMPT)."""

    reference_name: str
    value: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is sent to the agent (AiEvaluationAgentTestCaseInput, AiTestCaseInput); a prompt has no utterance."""

    utterance: str
    context_variables: tuple[ContextVariable, ...] = ()
    conversation_history: tuple[HistoryMessage, ...] = ()
    prompt_inputs: tuple[PromptInput, ...] = ()


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test case (AiEvaluationTestCase, AiTestCase); a missing number is its place in the file, from 1."""

    __test__ = False

    inputs: Inputs
    expectations: tuple[Expectation, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A test definition.

    Attributes:
        type: the metadata type it is of.
        source: the bytes the definition was read from, so that writing it back
            unchanged gives the same file; no part of equality.
    """

    name: str
    subject_name: str
    subject_type: str = "AGENT"
    subject_version: str | None = None
    description: str | None = None
    test_cases: tuple[TestCase, ...] = ()
    type: MetadataType = EVALUATION_DEFINITION
    source: bytes | None = field(default=None, repr=False, compare=False)
