"""Comparing two definitions, by test case and expectation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from evalmeta.model.change import Change, ChangeKind
from evalmeta.model.expectations import canonical_name
from evalmeta.model.fields import (
    definition_fields,
    expectation_fields,
    message_fields,
    number_text,
    parameter_fields,
    prompt_input_fields,
    variable_fields,
)
from evalmeta.model.matching import in_order, pair_up
from evalmeta.model.registry import TESTING_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

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
    from evalmeta.model.fields import Fields

__all__ = ["compare"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Place:
    case: int | None
    what: tuple[str, ...] = ()

    def inside(self, name: str) -> _Place:
        return replace(self, what=(*self.what, name))

    def change(self, before: str | None, after: str | None) -> Change:
        return Change(ChangeKind.CHANGED, self.case, self.what, before, after)

    def added(self, text: str | None) -> Change:
        return Change(ChangeKind.ADDED, self.case, self.what, None, text)

    def removed(self, text: str | None) -> Change:
        return Change(ChangeKind.REMOVED, self.case, self.what, text, None)


@dataclass(frozen=True, slots=True)
class _Kind(Generic[_T]):
    """How the items of one kind of list are told apart, named, summed up and compared."""

    order: str
    title: Callable[[_T], str]
    summary: Callable[[_T], str | None]
    keys: tuple[Callable[[int, _T], Hashable | None], ...]
    inside: Callable[[_T, _T, _Place], Iterator[Change]]


def compare(before: Definition, after: Definition) -> tuple[Change, ...]:
    """Lists what changed; empty exactly when the definitions are equal.

    Test cases are the same by number, else by utterance; expectations by name (either
    vocabulary) and label, the n-th with the n-th. Only what has changed its order among
    others of its kind is told as that.
    """
    return tuple(_definition_changes(before, after))


def _definition_changes(before: Definition, after: Definition) -> Iterator[Change]:
    nowhere = _Place(None)
    if before.type != after.type:
        yield nowhere.inside("type").change(before.type.name, after.type.name)
    yield from _field_changes(definition_fields(before), definition_fields(after), nowhere)
    old, new = _numbered(before.test_cases), _numbered(after.test_cases)
    expected = _SCORERS if after.type == TESTING_DEFINITION else _EXPECTATIONS
    pairs = pair_up(before.test_cases, after.test_cases, keys=_CASE_KEYS)
    for pair in pairs:
        match pair:
            case int(one), int(other):
                yield from _case_changes(before.test_cases[one], after.test_cases[other], _Place(old[one]), expected)
            case int(one), None:
                yield _Place(old[one]).removed(_inputs_text(before.test_cases[one].inputs))
            case None, int(other):
                yield _Place(new[other]).added(_inputs_text(after.test_cases[other].inputs))
    if not in_order(pairs):
        yield nowhere.inside("order of test cases").change(", ".join(map(str, old)), ", ".join(map(str, new)))


def _case_changes(before: TestCase, after: TestCase, place: _Place, expected: _Kind[Expectation]) -> Iterator[Change]:
    yield from _field_changes({"number": number_text(before.number)}, {"number": number_text(after.number)}, place)
    yield from _inputs_changes(before.inputs, after.inputs, place)
    yield from _list_changes(expected, before.expectations, after.expectations, place)


def _inputs_changes(before: Inputs, after: Inputs, place: _Place) -> Iterator[Change]:
    yield from _field_changes({"utterance": before.utterance}, {"utterance": after.utterance}, place)
    yield from _history_changes(before.conversation_history, after.conversation_history, place)
    yield from _list_changes(_VARIABLES, before.context_variables, after.context_variables, place)
    yield from _list_changes(_PROMPT_INPUTS, before.prompt_inputs, after.prompt_inputs, place)


def _history_changes(
    before: Sequence[HistoryMessage], after: Sequence[HistoryMessage], place: _Place
) -> Iterator[Change]:
    # A message put in between moves the index of all that follow: that is one change.
    for pair in pair_up(_shifted(before), _shifted(after), keys=(lambda position, _: position,)):
        match pair:
            case int(one), int(other):
                moved = replace(after[other], index=_moved(after[other].index, one - other))
                here = place.inside(f"conversationHistory {one}")
                yield from _field_changes(message_fields(before[one]), message_fields(moved), here)
            case int(one), None:
                yield place.inside(f"conversationHistory {one}").removed(_message_text(before[one]))
            case None, int(other):
                yield place.inside(f"conversationHistory {other}").added(_message_text(after[other]))


def _list_changes(kind: _Kind[_T], before: Sequence[_T], after: Sequence[_T], place: _Place) -> Iterator[Change]:
    pairs = pair_up(before, after, keys=kind.keys)
    for pair in pairs:
        match pair:
            case int(one), int(other):
                yield from kind.inside(before[one], after[other], place.inside(_title(kind, before, one)))
            case int(one), None:
                yield place.inside(_title(kind, before, one)).removed(kind.summary(before[one]))
            case None, int(other):
                yield place.inside(_title(kind, after, other)).added(kind.summary(after[other]))
    if not in_order(pairs):
        titles = (", ".join(map(kind.title, items)) for items in (before, after))
        yield place.inside(f"order of {kind.order}").change(*titles)


def _expectation_changes(before: Expectation, after: Expectation, place: _Place) -> Iterator[Change]:
    yield from _field_changes(expectation_fields(before), expectation_fields(after), place)
    yield from _list_changes(_PARAMETERS, before.parameters, after.parameters, place)


def _variable_changes(before: ContextVariable, after: ContextVariable, place: _Place) -> Iterator[Change]:
    yield from _field_changes(variable_fields(before), variable_fields(after), place)


def _prompt_input_changes(before: PromptInput, after: PromptInput, place: _Place) -> Iterator[Change]:
    yield from _field_changes(prompt_input_fields(before), prompt_input_fields(after), place)


def _parameter_changes(before: Parameter, after: Parameter, place: _Place) -> Iterator[Change]:
    yield from _field_changes(parameter_fields(before), parameter_fields(after), place)


def _field_changes(before: Fields, after: Fields, place: _Place) -> Iterator[Change]:
    for name, old in before.items():
        new, here = after[name], place.inside(name)
        if old is None and new is not None:
            yield here.added(new)
        elif old is not None and new is None:
            yield here.removed(old)
        elif old != new:
            yield here.change(old, new)


def _inputs_text(inputs: Inputs) -> str:
    return inputs.utterance or ", ".join(f"{each.reference_name} {each.value}" for each in inputs.prompt_inputs)


def _message_text(message: HistoryMessage) -> str:
    return f"{message.role or '?'}: {message.message or ''}"


def _expectation_text(expectation: Expectation) -> str | None:
    if expectation.expected_value is not None or not expectation.parameters:
        return expectation.expected_value
    return ", ".join(f"{each.name} {each.value}" for each in expectation.parameters)


def _expectation_title(expectation: Expectation) -> str:
    label = f" '{expectation.label}'" if expectation.label else ""
    return f"expectation {expectation.name}{label}"


def _title(kind: _Kind[_T], items: Sequence[_T], position: int) -> str:
    own = kind.title(items[position])
    earlier = sum(kind.title(each) == own for each in items[:position])
    return f"{own} #{earlier + 1}" if earlier else own


def _numbered(cases: Sequence[TestCase]) -> list[int]:
    return [_case_number(place, case) for place, case in enumerate(cases)]


def _case_number(place: int, case: TestCase) -> int:
    return place + 1 if case.number is None else case.number


def _shifted(messages: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    return [replace(each, index=_moved(each.index, -place)) for place, each in enumerate(messages)]


def _moved(index: int | None, by: int) -> int | None:
    return None if index is None else index + by


_CASE_KEYS: Final[tuple[Callable[[int, TestCase], Hashable | None], ...]] = (
    lambda _, case: case.number,
    lambda _, case: case.inputs.utterance,
    _case_number,
)
_PARAMETERS: Final[_Kind[Parameter]] = _Kind(
    order="parameters",
    title=lambda each: f"parameter {each.name}",
    summary=lambda each: each.value,
    keys=(lambda _, each: each.name, lambda _, each: (each.value, each.is_reference)),
    inside=_parameter_changes,
)
_VARIABLES: Final[_Kind[ContextVariable]] = _Kind(
    order="context variables",
    title=lambda each: f"contextVariable {each.name}",
    summary=lambda each: each.value,
    keys=(lambda _, each: each.name, lambda _, each: each.value),
    inside=_variable_changes,
)
_PROMPT_INPUTS: Final[_Kind[PromptInput]] = _Kind(
    order="prompt inputs",
    title=lambda each: f"promptInput {each.reference_name}",
    summary=lambda each: each.value,
    keys=(lambda _, each: each.reference_name, lambda _, each: each.value),
    inside=_prompt_input_changes,
)
_EXPECTATIONS: Final[_Kind[Expectation]] = _Kind(
    order="expectations",
    title=_expectation_title,
    summary=_expectation_text,
    keys=(
        lambda _, each: (each.name, each.label),
        lambda _, each: (canonical_name(each.name), each.label),
        lambda _, each: canonical_name(each.name),
        lambda _, each: (each.label, each.expected_value, each.parameters),
    ),
    inside=_expectation_changes,
)
_SCORERS: Final = replace(_EXPECTATIONS, order="scorers", title=lambda each: f"scorer {each.name}")
