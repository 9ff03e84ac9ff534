"""Comparing two definitions, by test case and expectation.

Changes between two versions of a definition, as values.

Which items of one list are which of another, when some were changed, added, removed or moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from evalmeta.model.definition import (
    definition_fields,
    expectation_fields,
    message_fields,
    number_text,
    parameter_fields,
    prompt_input_fields,
    variable_fields,
)
from evalmeta.model.expectations import canonical_name
from evalmeta.model.registry import TESTING_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.definition import (
        ContextVariable,
        Definition,
        Expectation,
        Fields,
        HistoryMessage,
        Inputs,
        Parameter,
        PromptInput,
        TestCase,
    )
    from evalmeta.model.problem import Problem


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


class ChangeKind(StrEnum):
    """What became of something."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        case: the number of the test case it is in; a case without one has that of its
            place in the file. None for the definition's own fields.
        what: the way to it, such as `("expectation coherence", "expectedValue")`, fields
            named as in files; empty when it is the whole test case.
        before: the old text, None where there was none.
        after: the new text; of something added, the text that tells most.
    """

    kind: ChangeKind
    case: int | None
    what: tuple[str, ...]
    before: str | None
    after: str | None


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


Pair: TypeAlias = "tuple[int | None, int | None]"


def pair_up(
    before: Sequence[_T], after: Sequence[_T], *, keys: Sequence[Callable[[int, _T], Hashable | None]]
) -> list[Pair]:
    """Pairs the items of two lists, each at most once, in the order of their places.

    Equal items at both ends are taken first, so one insertion or change disturbs nothing
    else. Those between are paired by each key in turn, the n-th of a key with the n-th.
    Exchanging the lists exchanges the places.

    Args:
        before: the one list.
        after: the other.
        keys: give a key of a place and its item, None where the key does not serve.
    """
    head = _common(zip(before, after, strict=False))
    tail = min(_common(zip(reversed(before), reversed(after), strict=False)), len(before) - head, len(after) - head)
    pairs: list[Pair] = [(place, place) for place in range(head)]
    pairs += [(len(before) - place, len(after) - place) for place in range(1, tail + 1)]
    left = {place: before[place] for place in range(head, len(before) - tail)}
    right = {place: after[place] for place in range(head, len(after) - tail)}
    for key in keys:
        for one, other in _paired(left, right, key):
            del left[one], right[other]
            pairs.append((one, other))
    pairs += [(place, None) for place in left]
    pairs += [(None, place) for place in right]
    return sorted(pairs, key=_place)


def in_order(pairs: Iterable[Pair]) -> bool:
    """Tells whether the items that both lists have stand in the same order in both."""
    shared = sorted((one, other) for one, other in pairs if one is not None and other is not None)
    return all(first[1] < second[1] for first, second in pairwise(shared))


def _common(couples: Iterable[tuple[_T, _T]]) -> int:
    count = 0
    for one, other in couples:
        if one != other:
            break
        count += 1
    return count


def _paired(
    left: Mapping[int, _T], right: Mapping[int, _T], key: Callable[[int, _T], Hashable | None]
) -> list[tuple[int, int]]:
    waiting: dict[Hashable, list[int]] = {}
    for place, item in reversed(list(left.items())):
        waiting.setdefault(key(place, item), []).append(place)
    waiting.pop(None, None)
    pairs = []
    for place, item in right.items():
        if places := waiting.get(key(place, item)):
            pairs.append((places.pop(), place))
    return pairs


def _place(pair: Pair) -> tuple[int, bool]:
    one, other = pair
    return (other or 0, True) if one is None else (one, False)


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


@dataclass(frozen=True, slots=True)
class Difference:
    """How two versions of a definition differ that have not the same bytes.

    Attributes:
        name: the component's full name; empty for two files.
        before: where the old version is, None when there is none.
        after: where the new version is, None when there is none.
        changes: what changed; none of two versions that differ in their form alone.
        problems: why the versions cannot be compared.
    """

    name: str
    before: str | None
    after: str | None
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_form_only(self) -> bool:
        """Says whether both versions are there and mean the same."""
        return self.before is not None and self.after is not None and not (self.changes or self.problems)


"""Places of one item, before and after; None where it is missing."""
