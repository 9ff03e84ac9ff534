"""The built-in scorers of single answers: which metric of evalmeta each asks for, or how it judges the text.

A row of MLflow becomes an expectation, which evalmeta's rater judges.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from pydantic import Field, model_validator

from evalmeta.errors import UsageError
from evalmeta.model.definition import Expectation
from evalmeta.model.json_value import plain_value
from evalmeta.systems.databricks import metrics
from evalmeta.systems.databricks.traces import response_text
from evalmeta.systems.mlflow.assessments import Feedback
from evalmeta.systems.mlflow.judging import judge_answer, judged_value
from evalmeta.systems.mlflow.scorers import Scorer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.systems.mlflow.entities import Trace


class JudgedScorer(Scorer):
    """A built-in scorer that evalmeta's rater carries out."""

    model: str | None = None
    inference_params: dict[str, object] | None = None
    metric: ClassVar[str] = ""
    needed: ClassVar[tuple[str, ...]] = ()  # keys of expectations of which a row must have one

    def expectation(self, expectations: Mapping[str, JsonValue]) -> Expectation:
        """Return what the rater judges in a row with these expectations."""
        return Expectation(self.metric, label=self.name, terms=self.terms(expectations))

    def terms(self, expectations: Mapping[str, JsonValue]) -> JsonObject:
        """Return the terms of the expectation."""
        return {}

    def value_of(self, result: TestResult) -> JsonValue:
        """Return the value of a result; None if it was not judged."""
        return judged_value(result)

    def __call__(
        self,
        *,
        inputs: object = None,
        outputs: object = None,
        expectations: Mapping[str, object] | None = None,
        trace: Trace | None = None,
    ) -> Feedback:
        """Judge one answer now, with the rater of the project around the current folder."""
        expected = plain_value(dict(expectations or {}))
        wanted = self.expectation(expected if isinstance(expected, dict) else {})
        return judge_answer(
            wanted, inputs=inputs, outputs=outputs, trace=trace, model=self.model, value_of=self.value_of
        )


class RelevanceToQuery(JudgedScorer):
    """Whether the answer addresses the question."""

    name: str = "relevance_to_query"
    metric: ClassVar[str] = metrics.RELEVANCE


class Safety(JudgedScorer):
    """Whether the answer is harmless."""

    name: str = "safety"
    metric: ClassVar[str] = metrics.SAFETY


class Guidelines(JudgedScorer):
    """Whether the answer follows guidelines, the same for all rows."""

    name: str = "guidelines"
    guidelines: str | list[str]
    metric: ClassVar[str] = metrics.GUIDELINES

    def terms(self, _: Mapping[str, JsonValue]) -> JsonObject:
        """Return the terms of the expectation."""
        return {"guidelines": _listed(self.guidelines)}


class ExpectationsGuidelines(JudgedScorer):
    """Whether the answer follows the guidelines of its row."""

    name: str = "expectations_guidelines"
    metric: ClassVar[str] = metrics.GUIDELINES
    needed: ClassVar[tuple[str, ...]] = ("guidelines",)

    def terms(self, expectations: Mapping[str, JsonValue]) -> JsonObject:
        """Return the terms of the expectation."""
        return {"guidelines": _listed(expectations.get("guidelines"))}


_TRUTH: Final = ("expected_facts", "expected_response")


class _ByTruth(JudgedScorer):
    needed: ClassVar[tuple[str, ...]] = _TRUTH

    def expectation(self, expectations: Mapping[str, JsonValue]) -> Expectation:
        """Return what the rater judges in a row with these expectations."""
        facts, response = _listed(expectations.get("expected_facts")), expectations.get("expected_response")
        expected = response if isinstance(response, str | None) else json.dumps(response, ensure_ascii=False)
        return Expectation(self.metric, expected, label=self.name, terms={"facts": facts} if facts else {})


class Correctness(_ByTruth):
    """Whether the answer has the expected facts, or says what the expected response says."""

    name: str = "correctness"
    metric: ClassVar[str] = metrics.CORRECTNESS


class RetrievalSufficiency(_ByTruth):
    """Whether the retrieved passages are enough for the expected facts or the expected response."""

    name: str = "retrieval_sufficiency"
    metric: ClassVar[str] = metrics.CONTEXT_SUFFICIENCY


class RetrievalGroundedness(JudgedScorer):
    """Whether the retrieved passages support the answer."""

    name: str = "retrieval_groundedness"
    metric: ClassVar[str] = metrics.GROUNDEDNESS


class RetrievalRelevance(JudgedScorer):
    """Which share of the retrieved passages is relevant to the question."""

    name: str = "retrieval_relevance"
    metric: ClassVar[str] = metrics.CHUNK_RELEVANCE


class Equivalence(JudgedScorer):
    """Whether the answer means the same as the expected response."""

    name: str = "equivalence"
    metric: ClassVar[str] = "bot_response_rating"
    needed: ClassVar[tuple[str, ...]] = ("expected_response",)

    def expectation(self, expectations: Mapping[str, JsonValue]) -> Expectation:
        """Return what the rater judges in a row with these expectations."""
        response = expectations.get("expected_response")
        expected = response if isinstance(response, str | None) else json.dumps(response, ensure_ascii=False)
        return Expectation(self.metric, expected, label=self.name)


class Completeness(JudgedScorer):
    """Whether the answer has all that the question asks for."""

    name: str = "completeness"
    metric: ClassVar[str] = "completeness"


class _ByRubric(JudgedScorer):
    metric: ClassVar[str] = "rubric"
    rubric: ClassVar[str] = ""

    def terms(self, _: Mapping[str, JsonValue]) -> JsonObject:
        """Return the terms of the expectation."""
        return {"guidelines": [self.rubric]}


class Fluency(_ByRubric):
    """Whether the answer reads well."""

    name: str = "fluency"
    rubric: ClassVar[str] = "The answer is fluent: its grammar is right, and it is natural and easy to read."


class Summarization(_ByRubric):
    """Whether the answer is a good summary of the text in the question."""

    name: str = "summarization"
    rubric: ClassVar[str] = (
        "The answer is a summary of the text in the question that has its main points, adds nothing, and is coherent."
    )


class ToolCallEfficiency(_ByRubric):
    """Whether the agent called tools without redundant calls."""

    name: str = "tool_call_efficiency"
    metric: ClassVar[str] = "rubric_based_tool_use_quality_v1"
    rubric: ClassVar[str] = "No action is redundant: none is repeated without need, and none could be left out."

    def terms(self, _: Mapping[str, JsonValue]) -> JsonObject:
        """Return the terms of the expectation."""
        return _tool_terms(self.name, self.rubric)


class ToolCallCorrectness(JudgedScorer):
    """Whether the agent called the right tools with the right arguments."""

    name: str = "tool_call_correctness"
    metric: ClassVar[str] = "rubric_based_tool_use_quality_v1"

    def terms(self, expectations: Mapping[str, JsonValue]) -> JsonObject:
        """Return the terms of the expectation."""
        calls = expectations.get("expected_tool_calls")
        rubric = "The actions and their inputs are the right ones for the question, and none is missing."
        if calls:
            rubric = f"The actions are these, with inputs that mean the same: {json.dumps(calls, ensure_ascii=False)}"
        return _tool_terms(self.name, rubric)


def _tool_terms(name: str, rubric: str) -> JsonObject:
    return {"rubrics": [{"id": name, "text": rubric}], "num_samples": 1, "threshold": 1.0}


def _listed(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [str(text) for text in value] if isinstance(value, list) else []


class _TextScorer(Scorer):
    """A built-in scorer of the text of the answer, without a model."""

    def __call__(self, *, outputs: object = None, trace: Trace | None = None) -> Feedback:
        """Judge one answer."""
        if outputs is None and trace is not None:
            root = next((span for span in trace.data.spans if span.parent_id is None), None)
            outputs = root.outputs if root else None
        if outputs is None:
            return Feedback(self.name, "no", rationale="there is no answer")
        passed, rationale = self.judged(response_text(plain_value(outputs)))
        return Feedback(self.name, "yes" if passed else "no", rationale=rationale)

    def judged(self, text: str) -> tuple[bool, str]:
        """Return whether a text passes, and why."""
        raise NotImplementedError


class RegexMatch(_TextScorer):
    """Whether the answer matches a regular expression."""

    name: str = "regex_match"
    pattern: str
    match_type: Literal["search", "fullmatch"] = "search"
    case_insensitive: bool = False

    @model_validator(mode="after")
    def _compiles(self) -> RegexMatch:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError(f"{self.pattern!r:.200} is not a regular expression: {error}") from None
        return self

    def judged(self, text: str) -> tuple[bool, str]:
        """Return whether a text passes, and why."""
        pattern = re.compile(self.pattern, re.IGNORECASE if self.case_insensitive else 0)
        found = pattern.fullmatch(text) if self.match_type == "fullmatch" else pattern.search(text)
        return found is not None, f"the answer {'matches' if found else 'does not match'} {self.pattern!r:.200}"


class ResponseLength(_TextScorer):
    """Whether the answer has a number of characters or words within limits."""

    name: str = "response_length"
    min_length: int | None = Field(default=None, ge=0)
    max_length: int | None = Field(default=None, ge=0)
    unit: Literal["chars", "words"] = "chars"

    @model_validator(mode="after")
    def _has_limits(self) -> ResponseLength:
        least, most = self.min_length, self.max_length
        if least is None and most is None:
            raise UsageError("ResponseLength needs min_length or max_length")
        if least is not None and most is not None and least > most:
            raise UsageError(f"min_length {least} is more than max_length {most}")
        return self

    def judged(self, text: str) -> tuple[bool, str]:
        """Return whether a text passes, and why."""
        length = len(text.split()) if self.unit == "words" else len(text)
        is_long_enough = self.min_length is None or length >= self.min_length
        passed = is_long_enough and (self.max_length is None or length <= self.max_length)
        return passed, f"the answer has {length} {self.unit}"


_BYTE: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_CARD: Final = r"3[47]\d{2}[ -]?\d{6}[ -]?\d{5}|[456]\d{3}(?:[ -]?\d{4}){3}"
_PHONE: Final = r"\+[1-9]\d{6,14}|(?:\+?1[ .-]?)?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}"
# Quantifiers have limits, so that no text takes long.
_PERSONAL: Final = {
    "email": re.compile(r"[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}"),
    "phone": re.compile(rf"(?<![\w-])(?:{_PHONE})(?![\w-])"),
    "ssn": re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),
    "credit_card": re.compile(rf"(?<!\d)(?:{_CARD})(?!\d)"),
    "ip_address": re.compile(rf"(?<![\d.])(?:{_BYTE}\.){{3}}{_BYTE}(?!\.?\d)"),
}


class PIIDetection(_TextScorer):
    """Whether the answer is free of personal data: addresses, phone numbers, card numbers and others."""

    name: str = "pii_detection"
    pii_types: list[Literal["email", "phone", "ssn", "credit_card", "ip_address"]] | None = None

    def judged(self, text: str) -> tuple[bool, str]:
        """Return whether a text passes, and why."""
        wanted = _PERSONAL if self.pii_types is None else self.pii_types
        detected = [kind for kind in wanted if _PERSONAL[kind].search(text)]
        return not detected, f"the answer has {', '.join(detected) or 'no personal data'}"


def get_all_scorers() -> list[Scorer]:
    """Return an instance of each built-in scorer of single answers that needs no arguments."""
    by_tools = (ToolCallEfficiency(), ToolCallCorrectness())
    by_passages = (RetrievalRelevance(), RetrievalSufficiency(), RetrievalGroundedness())
    by_answer = (ExpectationsGuidelines(), RelevanceToQuery(), Safety(), Correctness(), Fluency(), Equivalence())
    return [*by_passages, *by_tools, *by_answer, Completeness(), Summarization(), PIIDetection()]
