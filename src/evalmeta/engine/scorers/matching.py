"""The algorithms behind trajectories: they know of two lists only which items fit, as masks or weights.

The bits of the mask of a call are the expected calls that it fits.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


Row = tuple[int | None, int | None]
"""The indexes of an expected call and of the call beside it; None if there is none."""


def common_length_of_masks(number: int, masks: Iterable[int]) -> int:
    """Return the length of the longest common subsequence of `number` items and others.

    The bits of the mask of another item are the items that it equals. Bit-parallel, after Hyyrö, "Bit-parallel
    LCS-length computation revisited" (2004): one word operation handles many items, so long lists are cheap.
    """
    everything = (1 << number) - 1
    row = everything
    for mask in masks:
        matches = row & mask
        row = ((row + matches) | (row - matches)) & everything
    return number - row.bit_count()


def matching(masks: Sequence[int]) -> dict[int, int]:
    """Return a maximum matching of expected calls, the bits of the masks, with calls (Kuhn's algorithm).

    A greedy choice could give a call to an expected one that others fit too, and leave another without a call.
    """
    owner: dict[int, int] = {}
    for call in range(len(masks)):
        _augment(call, masks, owner)
    return owner


def _augment(start: int, masks: Sequence[int], owner: dict[int, int]) -> None:
    """Give a call an expected one, for which others take other ones if necessary and possible."""
    reached: dict[int, int] = {}
    queue, seen, held = deque([start]), 0, {call: index for index, call in owner.items()}
    while queue:
        call = queue.popleft()
        candidates = masks[call] & ~seen
        seen |= candidates
        while candidates:
            index = (candidates & -candidates).bit_length() - 1
            candidates &= candidates - 1
            reached[index] = call
            if index in owner:
                queue.append(owner[index])
                continue
            step: int | None = index
            while step is not None:
                taker = reached[step]
                owner[step], step = taker, held.get(taker)
            return


def aligned(number: int, others: int, weight: Callable[[int, int], int]) -> list[Row]:
    """Return the rows of two lists side by side, in their order, with the largest sum of weights."""
    best = [[0] * (others + 1) for _ in range(number + 1)]
    for index in range(number - 1, -1, -1):
        for at in range(others - 1, -1, -1):
            together = weight(index, at)
            beside = best[index + 1][at + 1] + together if together else 0
            best[index][at] = max(beside, best[index + 1][at], best[index][at + 1])
    rows: list[Row] = []
    index = at = 0
    while index < number or at < others:
        both = index < number and at < others
        together = weight(index, at) if both else 0
        if together and best[index][at] == best[index + 1][at + 1] + together:
            rows.append((index, at))
            index, at = index + 1, at + 1
        elif at == others or (index < number and best[index][at] == best[index + 1][at]):
            rows.append((index, None))
            index += 1
        else:
            rows.append((None, at))
            at += 1
    return rows
