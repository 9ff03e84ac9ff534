"""Specs and definitions that these tests share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

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
from evalmeta.model.expectations import METRICS, OPERATORS, render_actions
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from strategies import xml_texts

if TYPE_CHECKING:
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import MetadataType


def shown(problem: Problem) -> str:
    """Return a problem on one line: its place, message, code and hint."""
    return f"{problem.location} {problem.message} [{problem.code}] {problem.hint}".rstrip()


SPEC = """\
name: Desk Test
description: What the desk must know
subjectType: AGENT
subjectName: Desk
subjectVersion: v2
testCases:
  - utterance: "Where's my order 7?"
    expectedTopic: Orders
    expectedActions: [FindOrder, 'Ask Carrier']
    expectedOutcome: The order is on its way.
    contextVariables:
      - {name: CaseId, value: "500000000000001"}
    conversationHistory:
      - {role: user, message: Hi}
      - {role: agent, message: Hello, topic: Greeting, index: 4}
    customEvaluations:
      - label: Order id used
        name: string_comparison
        parameters:
          - {name: operator, value: equals, isReference: false}
          - {name: actual, value: $.generatedData.outcome, isReference: true}
          - {name: expected, value: 7}
    metrics: [factuality, output_latency_milliseconds]
  - utterance: Refund me
    expectedActions: []
    expectedOutcome:
"""
OWN_SPEC = """\
subject: agents:answer
defaults: {latency_ms: 500, tags: smoke, context: {id: 7}}
testCases:
  - input: Where is my order?
    name: order
    contains: [order, 7]
    not_contains: sorry
    contains_any: [a, b]
    equals: x
    matches: (?i)^order \\d+
    json: [{path: $.a, at_least: 1.5}, {path: $.b, equals: {c: [1, null]}}]
    rubric: Is polite
    function: checks:short
    tokens: 5
    topic: Orders
    actions: [A, B]
  - turns: [{input: Hi, starts_with: H}, {utterance: Bye, ends_with: e}]
cases: [{input: One}]
"""
STUDIO_SPEC = """\
name: Desk_Studio
subjectType: AGENT
subjectName: Desk
testCases:
  - inputs:
      - utterance: Where is it?
      - utterance: And now?
        conversationHistory:
          - {role: user, message: Hi, index: 0}
    scorers:
      - {name: topic_sequence_match, expected: Orders}
      - name: coherence
  - inputs:
      - promptInput:
          - {referenceName: Input:Case, value: "500"}
    scorers:
      - {name: response_match, expected: Yes.}
"""

_texts = xml_texts | st.sampled_from(["7", "007", "true", "null", "~", "- a", "é #x"])
_maybe = st.none() | _texts
_variables = st.lists(st.builds(ContextVariable, _texts, _texts), max_size=2).map(tuple)
_prompt_inputs = st.lists(st.builds(PromptInput, _texts, _texts), min_size=1, max_size=2).map(tuple)
_parameters = st.lists(st.builds(Parameter, _texts, _texts, st.none() | st.booleans()), max_size=3).map(tuple)
_custom = st.builds(Expectation, st.sampled_from(sorted(OPERATORS)), label=_maybe, parameters=_parameters)
_actions = st.lists(_texts.map(str.strip).filter(bool), max_size=3).map(render_actions)


def _history(indexes: st.SearchStrategy[int | None]) -> st.SearchStrategy[tuple[HistoryMessage, ...]]:
    message = st.builds(HistoryMessage, _texts, _texts, _maybe, indexes)
    return st.lists(message, max_size=3).map(tuple)


@st.composite
def _expectations(draw: st.DrawFn) -> tuple[Expectation, ...]:
    standard = [
        Expectation("topic_sequence_match", draw(_maybe)),
        Expectation("action_sequence_match", draw(st.none() | _actions)),
        Expectation("bot_response_rating", draw(_maybe)),
    ]
    metrics = draw(st.lists(st.sampled_from(METRICS), max_size=3))
    kept = [each for each in standard if draw(st.booleans())]
    return (*draw(st.lists(_custom, max_size=2)), *kept, *map(Expectation, metrics))


_cases = st.builds(TestCase, st.builds(Inputs, _texts, _variables, _history(st.integers(0, 9))), _expectations())
_studio_inputs = st.builds(Inputs, _texts, _variables, _history(st.none() | st.integers(0, 9)))
_prompts = st.builds(Inputs, _texts, _variables, prompt_inputs=_prompt_inputs)
_scorers = st.lists(st.builds(Expectation, _texts, _maybe), max_size=3).map(tuple)
_studio_cases = st.builds(TestCase, _studio_inputs | _prompts, _scorers)


@st.composite
def held_by_specs(draw: st.DrawFn, kind: MetadataType) -> Definition:
    """Draws a definition that a spec can hold wholly."""
    is_studio = kind == TESTING_DEFINITION
    cases = draw(st.lists(_studio_cases if is_studio else _cases, min_size=int(is_studio), max_size=3))
    numbered = tuple(replace(case, number=place) for place, case in enumerate(cases, 1))
    return Definition(
        *(draw(_texts), draw(_texts), draw(st.sampled_from(kind.subject_types)), draw(_maybe), draw(_maybe)),
        numbered,
        kind,
    )


kinds = st.sampled_from([EVALUATION_DEFINITION, TESTING_DEFINITION])
