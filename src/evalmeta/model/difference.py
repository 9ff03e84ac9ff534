"""Comparison of two versions of a definition, by test case and expectation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from evalmeta.model.definition import fields_of
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
Pair: TypeAlias = "tuple[int | None, int | None]"
"""Positions of one item in two lists; None where it is missing."""


class ChangeKind(StrEnum):
    """What happened to a field, an item or a test case."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference."""

    kind: ChangeKind
    case: int | None  # the test case's number, else its position; None for the definition's own fields
    # The path to what changed, such as `("expectation coherence", "expectedValue")`; empty for a whole test case.
    what: tuple[str, ...]
    before: str | None  # the old text, None if there was none
    after: str | None  # the new text. The text of an item that was added or removed is its most telling field


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two versions of a definition whose bytes differ."""

    name: str  # the component's full name; empty for two files
    before: str | None  # the location of the old version, None if there is none; `after` is that of the new version
    after: str | None
    changes: tuple[Change, ...] = ()  # empty if only the form differs
    problems: tuple[Problem, ...] = ()  # why the versions cannot be compared

    @property
    def is_form_only(self) -> bool:
        """Return whether both versions exist and mean the same."""
        return self.before is not None and self.after is not None and not (self.changes or self.problems)


def compare_texts(before: Mapping[tuple[str, ...], str], after: Mapping[tuple[str, ...], str]) -> tuple[Change, ...]:
    """Compare two scorers by the texts of their elements, each with its path."""
    paths = sorted({*before, *after})
    return tuple(
        Change(_kind_of(old, new), None, path, old, new)
        for path in paths
        if (old := before.get(path)) != (new := after.get(path))
    )


def _kind_of(before: str | None, after: str | None) -> ChangeKind:
    if before is None:
        return ChangeKind.ADDED
    return ChangeKind.REMOVED if after is None else ChangeKind.CHANGED


def compare(before: Definition, after: Definition) -> tuple[Change, ...]:
    """Return what changed; empty exactly if the definitions are equal.

    Test cases are matched by number, else by utterance; expectations by name (of either vocabulary) and label, the
    nth with the nth. An item that only moved is reported only if its order among items of its kind changed.
    """
    return tuple(_definition_changes(before, after))


def pair_up(
    before: Sequence[_T], after: Sequence[_T], *, keys: Sequence[Callable[[int, _T], Hashable | None]]
) -> list[Pair]:
    """Pair the items of two lists, each at most once, and return their positions in order.

    Equal items at both ends are paired first, so that one insertion or change does not affect the others. The items
    in between are paired by each key in turn, the nth of a key with the nth. A key is a function of a position and its
    item; None means no key. Swapping the lists swaps the positions.
    """
    head = _count_equal(zip(before, after, strict=False))
    tail = _count_equal(zip(reversed(before), reversed(after), strict=False))
    tail = min(tail, len(before) - head, len(after) - head)
    pairs: list[Pair] = [(place, place) for place in range(head)]
    pairs += [(len(before) - place, len(after) - place) for place in range(1, tail + 1)]
    left = {place: before[place] for place in range(head, len(before) - tail)}
    right = {place: after[place] for place in range(head, len(after) - tail)}
    for key in keys:
        for one, other in _pairs_of_key(left, right, key):
            del left[one], right[other]
            pairs.append((one, other))
    pairs += [(place, None) for place in left]
    pairs += [(None, place) for place in right]
    return sorted(pairs, key=lambda pair: (pair[1] or 0, True) if pair[0] is None else (pair[0], False))


def in_order(pairs: Iterable[Pair]) -> bool:
    """Return whether the items of both lists have the same order in both."""
    shared = sorted((one, other) for one, other in pairs if one is not None and other is not None)
    return all(first[1] < second[1] for first, second in pairwise(shared))


def _count_equal(couples: Iterable[tuple[_T, _T]]) -> int:
    count = 0
    for one, other in couples:
        if one != other:
            break
        count += 1
    return count


def _pairs_of_key(
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


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a change: a test case and a path inside it."""

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
    """How items of one kind are matched (`keys`), named (`title`), summarised (`summary`) and compared (the rest)."""

    plural: str
    title: Callable[[_T], str]
    summary: Callable[[_T], str | None]
    keys: tuple[Callable[[int, _T], Hashable | None], ...]
    parameters: Callable[[_T], Sequence[Parameter]] = lambda _: ()

    def title_at(self, items: Sequence[_T], position: int) -> str:
        """Return the title of an item, numbered if an earlier item has the same."""
        own = self.title(items[position])
        earlier = sum(self.title(item) == own for item in items[:position])
        return f"{own} #{earlier + 1}" if earlier else own


_PARAMETERS: Final[_Kind[Parameter]] = _Kind(
    plural="parameters",
    title=lambda parameter: f"parameter {parameter.name}",
    summary=lambda parameter: parameter.value,
    keys=(lambda _, parameter: parameter.name, lambda _, parameter: (parameter.value, parameter.is_reference)),
)
_VARIABLES: Final[_Kind[ContextVariable]] = _Kind(
    plural="context variables",
    title=lambda variable: f"contextVariable {variable.name}",
    summary=lambda variable: variable.value,
    keys=(lambda _, variable: variable.name, lambda _, variable: variable.value),
)
_PROMPT_INPUTS: Final[_Kind[PromptInput]] = _Kind(
    plural="prompt inputs",
    title=lambda prompt_input: f"promptInput {prompt_input.reference_name}",
    summary=lambda prompt_input: prompt_input.value,
    keys=(lambda _, prompt_input: prompt_input.reference_name, lambda _, prompt_input: prompt_input.value),
)
_EXPECTATIONS: Final[_Kind[Expectation]] = _Kind(
    plural="expectations",
    title=lambda expectation: (
        f"expectation {expectation.name}" + (f" '{expectation.label}'" if expectation.label else "")
    ),
    summary=lambda expectation: (
        expectation.expected_value if expectation.expected_value is not None else _parameters_text(expectation)
    ),
    keys=(
        lambda _, expectation: (expectation.name, expectation.label),
        lambda _, expectation: (canonical_name(expectation.name), expectation.label),
        lambda _, expectation: canonical_name(expectation.name),
        lambda _, expectation: (expectation.label, expectation.expected_value, expectation.parameters),
    ),
    parameters=lambda expectation: expectation.parameters,
)
_SCORERS: Final = replace(_EXPECTATIONS, plural="scorers", title=lambda scorer: f"scorer {scorer.name}")


def _definition_changes(before: Definition, after: Definition) -> Iterator[Change]:
    nowhere = _Place(None)
    if before.type != after.type:
        yield nowhere.inside("type").change(before.type.name, after.type.name)
    yield from _field_changes(fields_of(before), fields_of(after), nowhere)
    old, new = (
        [_case_number(*numbered) for numbered in enumerate(definition.test_cases)] for definition in (before, after)
    )
    expected = _SCORERS if after.type == TESTING_DEFINITION else _EXPECTATIONS
    keys = (lambda _, case: case.number, lambda _, case: case.inputs.utterance, _case_number)
    pairs = pair_up(before.test_cases, after.test_cases, keys=keys)
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
    old, new = before.inputs, after.inputs
    yield from _field_changes({**fields_of(before), **fields_of(old)}, {**fields_of(after), **fields_of(new)}, place)
    yield from _history_changes(old.conversation_history, new.conversation_history, place)
    yield from _list_changes(_VARIABLES, old.context_variables, new.context_variables, place)
    yield from _list_changes(_PROMPT_INPUTS, old.prompt_inputs, new.prompt_inputs, place)
    yield from _list_changes(expected, before.expectations, after.expectations, place)


def _history_changes(
    before: Sequence[HistoryMessage], after: Sequence[HistoryMessage], place: _Place
) -> Iterator[Change]:
    # An inserted message moves the index of all later ones: that is one change.
    shifted = ([_shift(message, -index) for index, message in enumerate(every)] for every in (before, after))
    for pair in pair_up(*shifted, keys=(lambda position, _: position,)):
        match pair:
            case int(one), int(other):
                moved = _shift(after[other], one - other)
                here = place.inside(f"conversationHistory {one}")
                yield from _field_changes(fields_of(before[one]), fields_of(moved), here)
            case int(one), None:
                yield place.inside(f"conversationHistory {one}").removed(_message_text(before[one]))
            case None, int(other):
                yield place.inside(f"conversationHistory {other}").added(_message_text(after[other]))


def _list_changes(kind: _Kind[_T], before: Sequence[_T], after: Sequence[_T], place: _Place) -> Iterator[Change]:
    pairs = pair_up(before, after, keys=kind.keys)
    for pair in pairs:
        match pair:
            case int(one), int(other):
                old, new, here = before[one], after[other], place.inside(kind.title_at(before, one))
                yield from _field_changes(fields_of(old), fields_of(new), here)
                yield from _list_changes(_PARAMETERS, kind.parameters(old), kind.parameters(new), here)
            case int(one), None:
                yield place.inside(kind.title_at(before, one)).removed(kind.summary(before[one]))
            case None, int(other):
                yield place.inside(kind.title_at(after, other)).added(kind.summary(after[other]))
    if not in_order(pairs):
        titles = (", ".join(map(kind.title, items)) for items in (before, after))
        yield place.inside(f"order of {kind.plural}").change(*titles)


def _field_changes(before: Fields, after: Fields, place: _Place) -> Iterator[Change]:
    for name, old in before.items():
        if old != (new := after[name]):
            yield Change(_kind_of(old, new), place.case, (*place.what, name), old, new)


def _case_number(place: int, case: TestCase) -> int:
    return place + 1 if case.number is None else case.number


def _shift(message: HistoryMessage, by: int) -> HistoryMessage:
    return message if message.index is None else replace(message, index=message.index + by)


def _inputs_text(inputs: Inputs) -> str:
    return inputs.utterance or ", ".join(f"{given.reference_name} {given.value}" for given in inputs.prompt_inputs)


def _message_text(message: HistoryMessage) -> str:
    return f"{message.role or '?'}: {message.message or ''}"


def _parameters_text(expectation: Expectation) -> str | None:
    return ", ".join(f"{parameter.name} {parameter.value}" for parameter in expectation.parameters) or None
