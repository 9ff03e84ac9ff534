"""Actions: the agent took the expected ones, as strictly as a project or a run has chosen."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.expectations import parse_actions, render_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import ActionMatch, TestResult


Names = tuple[str, ...]


class _Rule(NamedTuple):
    """What one way of matching asks for, and which differences it allows."""

    holds: Callable[[Names, Names], bool]
    extra: bool = False
    missing: bool = False
    order: bool = False


class _Wanted(NamedTuple):
    names: Names
    text: str


def action_scorer(match: ActionMatch = "exact") -> Scorer:
    """Makes the scorer of actions; every way counts an action as often as it is named.

    - `exact`: the same actions in the same order; `[]` means that none were taken.
    - `in_order`: the expected actions in their order; others may come before, between and after.
    - `any_order`: the same actions in any order, and no others.
    - `superset`: every expected action was taken, in any order; others may be too, so `[]` always passes.
    - `subset`: nothing was taken that is not expected, in any order; not all need be.

    The score is 1 or 0 and the detail is `similarity`, whatever the way. A difference that
    is allowed is told as allowed. Without an expectedValue the result is UNDECIDED; one
    that is no list of actions gives ERROR.
    """
    rule = _RULES[match]

    def score_actions(expectation: Expectation, exchange: Exchange) -> TestResult:
        taken = tuple([action.name for action in exchange.generated.actions])
        if expectation.expected_value is None:
            explanation = "no expectedValue: there are no actions to compare with"
            return undecided(expectation, explanation, actual=render_actions(taken))
        wanted = _wanted(expectation.expected_value)
        if wanted is None:
            reason = f"the expectedValue is no list of actions such as ['A', 'B']: {expectation.expected_value[:100]!r}"
            return broken(expectation, reason, actual=render_actions(taken))
        if taken == wanted.names:
            return _same(expectation, wanted)
        passed = rule.holds(wanted.names, taken)
        return judged(
            expectation,
            passed=passed,
            expected=wanted.text,
            actual=render_actions(taken),
            explanation=("as expected; " if passed else "") + _differences(wanted.names, taken, rule),
            detail=similarity(wanted.names, taken),
        )

    return score_actions


def similarity(wanted: Sequence[Hashable], taken: Sequence[Hashable]) -> float:
    """Gives the F1 of the longest common subsequence, 0 to 1: 2 x common / (wanted + taken); 1 for two empty lists."""
    if wanted == taken:
        return 1.0
    return 2 * common_length(wanted, taken) / (len(wanted) + len(taken))


def common_length(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Gives the length of the longest common subsequence.

    Bit-parallel, after Hyyrö, "Bit-parallel LCS-length computation revisited" (2004):
    one word operation for many items, so that long lists cost little.
    """
    positions: Counter[Hashable] = Counter()
    for index, item in enumerate(left):
        positions[item] |= 1 << index
    everything = (1 << len(left)) - 1
    row = everything
    for item in right:
        matches = row & positions[item]
        row = ((row + matches) | (row - matches)) & everything
    return len(left) - row.bit_count()


# The same lists come again with every iteration.
@lru_cache(maxsize=1024)
def _wanted(text: str) -> _Wanted | None:
    names = parse_actions(text)
    return None if names is None else _Wanted(names, render_actions(names))


def _same(expectation: Expectation, wanted: _Wanted) -> TestResult:
    explanation = "the actions are as expected" if wanted.names else "no action was taken, as expected"
    return judged(
        expectation, passed=True, expected=wanted.text, actual=wanted.text, explanation=explanation, detail=1.0
    )


def _is_subsequence(wanted: Names, taken: Names) -> bool:
    rest = iter(taken)
    return all(name in rest for name in wanted)


_RULES: Final[Mapping[ActionMatch, _Rule]] = {
    "exact": _Rule(lambda wanted, taken: wanted == taken),
    "in_order": _Rule(_is_subsequence, extra=True),
    "any_order": _Rule(lambda wanted, taken: Counter(wanted) == Counter(taken), order=True),
    "superset": _Rule(lambda wanted, taken: Counter(wanted) <= Counter(taken), extra=True, order=True),
    "subset": _Rule(lambda wanted, taken: Counter(taken) <= Counter(wanted), missing=True, order=True),
}


def _differences(wanted: Names, taken: Names, rule: _Rule) -> str:
    missing = (Counter(wanted) - Counter(taken)).elements()
    extra = (Counter(taken) - Counter(wanted)).elements()
    parts = (
        _part("missing", ", ".join(missing), allowed=rule.missing),
        _part("extra", ", ".join(extra), allowed=rule.extra),
        _part("order", _misplaced(wanted, taken, rule), allowed=rule.order),
    )
    return "; ".join(part for part in parts if part)


def _part(title: str, names: str, *, allowed: bool) -> str:
    return f"{title}{' (allowed)' if allowed else ''}: {names}" if names else ""


def _misplaced(wanted: Names, taken: Names, rule: _Rule) -> str:
    if common_length(wanted, taken) == (Counter(wanted) & Counter(taken)).total():
        return ""
    first = {name: wanted.index(name) for name in set(wanted)}
    shared = [name for name in taken if name in first]
    swaps = [f"{one} before {other}" for one, other in pairwise(shared) if first[one] > first[other]]
    if swaps:
        return ", ".join(dict.fromkeys(swaps))
    return _first_too_late(wanted, taken) if rule.extra else _first_difference(wanted, taken)


def _first_difference(wanted: Names, taken: Names) -> str:
    """Tells repeated actions apart that no pair of names can: by the place where the lists part."""
    place = next(index for index, (one, other) in enumerate(zip(wanted, taken, strict=False)) if one != other)
    return f"action {place + 1} is {taken[place]}, not {wanted[place]}"


def _first_too_late(wanted: Names, taken: Names) -> str:
    """Does so where others may come between: by the first expected action that does not come after those before it."""
    rest = iter(taken)
    place = next(index for index, name in enumerate(wanted) if name not in rest)
    return f"no {wanted[place]} after {', '.join(wanted[:place])}"
