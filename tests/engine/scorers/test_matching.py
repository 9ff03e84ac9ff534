from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.scorers.matching import Row, aligned, common_length_of_masks, matching


@given(st.lists(st.sets(st.integers(0, 5)), max_size=6))
def test_the_common_length_of_masks_is_the_longest_ascending_choice(graph: list[set[int]]) -> None:
    longest = [0] * 7  # by the smallest item that can follow
    for ones in graph:
        for one in sorted(ones, reverse=True):
            longest[one + 1 :] = [max(best, longest[one] + 1) for best in longest[one + 1 :]]
    assert common_length_of_masks(6, [sum(1 << one for one in ones) for ones in graph]) == longest[6]


@given(st.lists(st.sets(st.integers(0, 5)), max_size=6))
def test_the_matching_is_the_largest(graph: list[set[int]]) -> None:
    def largest(place: int, taken: frozenset[int]) -> int:
        if place == len(graph):
            return 0
        free = [largest(place + 1, taken | {one}) + 1 for one in graph[place] - taken]
        return max([largest(place + 1, taken), *free])

    pairs = matching([sum(1 << one for one in ones) for ones in graph])
    assert len(pairs) == len({*pairs.values()}) == largest(0, frozenset())
    assert all(one in graph[at] for one, at in pairs.items())


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), max_size=4))
def test_aligned_rows_have_every_item_once_in_order_and_the_largest_weight(weights: list[list[int]]) -> None:
    def largest(index: int, at: int) -> int:
        if index == len(weights) or at == 3:
            return 0
        together = weights[index][at]
        both = largest(index + 1, at + 1) + together if together else 0
        return max(both, largest(index + 1, at), largest(index, at + 1))

    def weight(row: Row) -> int:
        index, at = row
        return 0 if index is None or at is None else weights[index][at]

    rows = aligned(len(weights), 3, lambda index, at: weights[index][at])
    assert [index for index, _ in rows if index is not None] == list(range(len(weights)))
    assert [at for _, at in rows if at is not None] == [0, 1, 2]
    assert sum(map(weight, rows)) == largest(0, 0)
