"""What the engine runs: a subject's name, cases, turns and expectations, whatever file they came from.

Lists of test cases as people write them: `3`, `1,4-7`, `Order_Desk:3` for one definition's, and labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.model.definition import ContextVariable
from evalmeta.model.expectations import parse_actions, render_actions, scorer_kind
from evalmeta.model.registry import TESTING_DEFINITION, metadata_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.definition import Definition, Expectation, HistoryMessage, Inputs
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject


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


_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_LIST: Final = re.compile(r"[\d,\s-]+", re.ASCII)
_SHARD: Final = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)


class CaseList(NamedTuple):
    """Which cases are meant.

    Attributes:
        name: of the definition, `Type:Name` where two have it; empty for every definition.
        numbers: None for all of them.
        label: what the case, or `FILE:` and the case, is called; then the numbers are not known yet.
    """

    name: str
    numbers: frozenset[int] | None
    label: str = ""


def parse_case_list(text: str, *, is_named: bool = False, takes_labels: bool = False) -> CaseList:
    """Reads a list.

    Args:
        text: the list.
        is_named: whether a definition's name alone means all its cases.
        takes_labels: whether what is no list of numbers is the label of a case.

    Raises:
        ValueError: it is none; says what one looks like.
    """
    name, colon, numbers = text.strip().rpartition(":")
    if takes_labels and text.strip() and not _LIST.fullmatch(numbers):
        return CaseList("", None, text.strip())
    if is_named and not _RANGE.match(numbers) and (not colon or metadata_type(name)):
        return CaseList(text.strip(), None)
    if (colon and not name) or not numbers:
        raise ValueError(_wrong(text))
    return CaseList(name, frozenset(number for part in numbers.split(",") for number in _numbers(part, text)))


def parse_shard(text: str) -> tuple[int, int]:
    """Reads `2/5`, the second of five parts.

    Raises:
        ValueError: it is none, or there is no such part.
    """
    found = _SHARD.fullmatch(text.strip())
    part, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= part <= parts <= limits.MAX_SHARDS:
        raise ValueError(f"{text!r} is no part such as 2/5, the second of five (at most {limits.MAX_SHARDS})")
    return part, parts


def _numbers(part: str, text: str) -> range:
    found = _RANGE.fullmatch(part.strip())
    if not found:
        raise ValueError(_wrong(text))
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first or last - first > limits.MAX_TEST_CASES:
        raise ValueError(_wrong(text))
    return range(first, last + 1)


def _wrong(text: str) -> str:
    return f"{text!r} is no list of cases such as 3, 1,4-7 or Order_Desk:3"
