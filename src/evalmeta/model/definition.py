"""An AiEvaluationDefinition as a value: every type and field of the Metadata API reference.

Names are the reference's own in snake case; repeated elements become tuples with
plural names. Text is kept as the file has it, numbers are Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ContextVariable", "Definition", "Expectation", "HistoryMessage", "Inputs", "Parameter", "TestCase"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One criterion parameter of a custom expectation (AiEvaluationTestCaseCritParam, API 64.0)."""

    name: str
    value: str
    is_reference: bool | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a test case expects (AiEvaluationExpectation): a value, or parameters for custom criteria."""

    name: str
    expected_value: str | None = None
    label: str | None = None
    parameters: tuple[Parameter, ...] = ()


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
class Inputs:
    """What is sent to the agent (AiEvaluationAgentTestCaseInput)."""

    utterance: str
    context_variables: tuple[ContextVariable, ...] = ()
    conversation_history: tuple[HistoryMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test case (AiEvaluationTestCase); a missing number is its place in the file, from 1."""

    __test__ = False

    inputs: Inputs
    expectations: tuple[Expectation, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A test definition (AiEvaluationDefinition).

    Attributes:
        source: the bytes the definition was read from, so that writing it back
            unchanged gives the same file; no part of equality.
    """

    name: str
    subject_name: str
    subject_type: str = "AGENT"
    subject_version: str | None = None
    description: str | None = None
    test_cases: tuple[TestCase, ...] = ()
    source: bytes | None = field(default=None, repr=False, compare=False)
