"""Which items of one list are which of another, when some were changed, added, removed or moved."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

__all__ = ["Pair", "in_order", "pair_up"]

_T = TypeVar("_T")

Pair: TypeAlias = "tuple[int | None, int | None]"
"""Places of one item, before and after; None where it is missing."""


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
