"""What the engine runs: a subject's name, cases, turns and expectations, whatever file they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalmeta.model.definition import ContextVariable, Definition, Expectation, HistoryMessage

__all__ = ["Case", "Evaluation", "Turn", "evaluation_of"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One question to the agent and what its answer must satisfy."""

    utterance: str
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One case: turns in one session, begun with history and context variables."""

    number: int
    turns: tuple[Turn, ...]
    history: tuple[HistoryMessage, ...] = ()
    context_variables: tuple[ContextVariable, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A named set of cases for one subject; case numbers are unique."""

    name: str
    subject_name: str
    cases: tuple[Case, ...]
    subject_version: str | None = None


def evaluation_of(definition: Definition, *, name: str) -> Evaluation:
    """Turns a definition into what the engine runs; `name` is its API name (the file's full name).

    A test case without a number gets the lowest number from its place on that no
    other case has (reference, AiEvaluationTestCase: "automatically calculated").
    """
    taken = {case.number for case in definition.test_cases if case.number is not None}
    cases = []
    for place, case in enumerate(definition.test_cases, 1):
        number = case.number
        if number is None:
            number = place
            while number in taken:
                number += 1
            taken.add(number)
        turns = (Turn(case.inputs.utterance, case.expectations),)
        cases.append(Case(number, turns, case.inputs.conversation_history, case.inputs.context_variables))
    return Evaluation(name, definition.subject_name, tuple(cases), definition.subject_version)
