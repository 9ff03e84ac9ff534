"""What the engine runs: a subject's name, cases, turns and expectations, whatever file they came from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalmeta.model.actions import parse_actions, render_actions
from evalmeta.model.definition import ContextVariable
from evalmeta.model.expectations import scorer_kind
from evalmeta.model.registry import TESTING_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.definition import Definition, Expectation, HistoryMessage, Inputs
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["Case", "Evaluation", "Turn", "evaluation_of"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One question to the agent and what its answer must satisfy.

    Attributes:
        recorded: the answer that the file has already; None when there is none.
    """

    utterance: str
    expectations: tuple[Expectation, ...] = ()
    recorded: GeneratedData | None = None


def _no_state() -> JsonObject:
    return {}


@dataclass(frozen=True, slots=True)
class Case:
    """One case: turns in one session, begun with history, context variables and state.

    Attributes:
        label: what its file calls it, for people; the number is what tells it from others.
        state: what the session begins with, as JSON, by name; agents get it as context, beside the variables.
    """

    number: int
    turns: tuple[Turn, ...]
    history: tuple[HistoryMessage, ...] = ()
    context_variables: tuple[ContextVariable, ...] = ()
    tags: tuple[str, ...] = ()
    label: str = ""
    state: JsonObject = field(default_factory=_no_state)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A named set of cases for one subject; case numbers are unique.

    Attributes:
        cases: gone through once for every iteration, and not kept: they may come from a file of any length.
    """

    name: str
    subject_name: str
    cases: Iterable[Case]
    subject_version: str | None = None
    subject_type: str = "AGENT"


def evaluation_of(definition: Definition, *, name: str) -> Evaluation:
    """Turns a definition into what the engine runs; `name` is its API name (the file's full name).

    A test case without a number gets the lowest number from its place on that no
    other case has (reference, AiEvaluationTestCase: "automatically calculated"). A prompt
    template is asked with its inputs, a line each, and gets them as context variables too.
    """
    is_testing = definition.type == TESTING_DEFINITION
    taken = {case.number for case in definition.test_cases if case.number is not None}
    cases = []
    for place, case in enumerate(definition.test_cases, 1):
        number = case.number
        if number is None:
            number = place
            while number in taken:
                number += 1
            taken.add(number)
        expectations = tuple(map(_judged, case.expectations)) if is_testing else case.expectations
        turns = (Turn(_utterance(case.inputs), expectations),)
        cases.append(Case(number, turns, case.inputs.conversation_history, _context(case.inputs)))
    return Evaluation(name, definition.subject_name, tuple(cases), definition.subject_version, definition.subject_type)


def _judged(scorer: Expectation) -> Expectation:
    """Gives a scorer as an expectation: actions as a list, and what only the org knows as a custom one."""
    if scorer_kind(scorer.name) is None:
        return replace(scorer, scorer_type="Custom")
    value = (scorer.expected_value or "").strip()
    if scorer.name == "action_sequence_match" and value and parse_actions(value) is None and not value.startswith("["):
        return replace(scorer, expected_value=render_actions([value]))
    return scorer


def _utterance(inputs: Inputs) -> str:
    return inputs.utterance or "\n".join(f"{each.reference_name}: {each.value}" for each in inputs.prompt_inputs)


def _context(inputs: Inputs) -> tuple[ContextVariable, ...]:
    prompt_inputs = (ContextVariable(each.reference_name, each.value) for each in inputs.prompt_inputs)
    return (*inputs.context_variables, *prompt_inputs) if inputs.prompt_inputs else inputs.context_variables
