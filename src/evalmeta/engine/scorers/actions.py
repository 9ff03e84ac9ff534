"""Actions: the agent took the expected ones, in the expected order and no others."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.actions import parse_actions, render_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult

__all__ = ["common_length", "score_actions", "similarity"]

# The same lists come again with every iteration.
_parsed = lru_cache(maxsize=1024)(parse_actions)


def score_actions(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Passes when the same actions came in the same order; `[]` means that none were taken.

    The score is 1 or 0, the detail is `similarity`.
    """
    taken = tuple(action.name for action in exchange.generated.actions)
    if expectation.expected_value is None:
        explanation = "no expectedValue: there are no actions to compare with"
        return undecided(expectation, explanation, actual=render_actions(taken))
    wanted = _parsed(expectation.expected_value)
    if wanted is None:
        reason = f"the expectedValue is no list of actions such as ['A', 'B']: {expectation.expected_value[:100]!r}"
        return broken(expectation, reason, actual=render_actions(taken))
    return judged(
        expectation,
        passed=taken == wanted,
        expected=render_actions(wanted),
        actual=render_actions(taken),
        explanation=_explain(wanted, taken),
        detail=similarity(wanted, taken),
    )


def similarity(wanted: Sequence[str], taken: Sequence[str]) -> float:
    """Gives the F1 of the longest common subsequence, 0 to 1: 2 x common / (wanted + taken); 1 for two empty lists."""
    if wanted == taken:
        return 1.0
    return 2 * common_length(wanted, taken) / (len(wanted) + len(taken))


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """Gives the length of the longest common subsequence.

    Bit-parallel, after Hyyrö, "Bit-parallel LCS-length computation revisited" (2004):
    one word operation for many items, so that long lists cost little.
    """
    positions: Counter[str] = Counter()
    for index, name in enumerate(left):
        positions[name] |= 1 << index
    everything = (1 << len(left)) - 1
    row = everything
    for name in right:
        matches = row & positions[name]
        row = ((row + matches) | (row - matches)) & everything
    return len(left) - row.bit_count()


def _explain(wanted: tuple[str, ...], taken: tuple[str, ...]) -> str:
    if wanted == taken:
        return "the actions are as expected" if wanted else "no action was taken, as expected"
    missing = list((Counter(wanted) - Counter(taken)).elements())
    extra = list((Counter(taken) - Counter(wanted)).elements())
    parts = (
        f"missing: {', '.join(missing)}" if missing else "",
        f"extra: {', '.join(extra)}" if extra else "",
        _misplaced(wanted, taken),
    )
    return "; ".join(part for part in parts if part)


def _misplaced(wanted: tuple[str, ...], taken: tuple[str, ...]) -> str:
    first = {name: wanted.index(name) for name in set(wanted)}
    shared = [name for name in taken if name in first]
    swaps = [f"{one} before {other}" for one, other in pairwise(shared) if first[one] > first[other]]
    if common_length(wanted, taken) == (Counter(wanted) & Counter(taken)).total():
        return ""
    return f"order: {', '.join(dict.fromkeys(swaps))}" if swaps else _first_difference(wanted, taken)


def _first_difference(wanted: tuple[str, ...], taken: tuple[str, ...]) -> str:
    """Tells repeated actions apart that no pair of names can: by the place where the lists part."""
    place = next(index for index, (one, other) in enumerate(zip(wanted, taken, strict=False)) if one != other)
    return f"order: action {place + 1} is {taken[place]}, not {wanted[place]}"
