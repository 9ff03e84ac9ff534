from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta.model.difference import in_order, pair_up

LISTS = st.lists(st.text("abAB", min_size=1, max_size=2), max_size=8)
KEYS = (lambda _, item: item, lambda _, item: item.lower(), lambda place, _: None if place % 2 else place)


@settings(deadline=None)
@given(LISTS, LISTS)
def test_every_item_is_there_once(before: list[str], after: list[str]) -> None:
    pairs = pair_up(before, after, keys=KEYS)

    assert sorted(one for one, _ in pairs if one is not None) == [*range(len(before))]
    assert sorted(other for _, other in pairs if other is not None) == [*range(len(after))]


@settings(deadline=None)
@given(LISTS, LISTS)
def test_exchanging_the_lists_exchanges_the_places(before: list[str], after: list[str]) -> None:
    there, back = pair_up(before, after, keys=KEYS), pair_up(after, before, keys=KEYS)

    assert {(other, one) for one, other in there} == {*back}


def test_equal_ends_come_first_then_each_key_in_turn() -> None:
    pairs = pair_up(["x", "B", "c", "y"], ["x", "C", "b", "z", "y"], keys=(lambda _, item: item.lower(),))

    assert pairs == [(0, 0), (1, 2), (2, 1), (3, 4), (None, 3)]
    assert not in_order(pairs)


def test_what_was_added_does_not_change_the_order() -> None:
    assert in_order(pair_up("abd", "abcd", keys=KEYS))
