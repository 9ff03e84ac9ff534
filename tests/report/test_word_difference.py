"""Differences of texts word by word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.report.word_difference import Part, word_difference


def marked(parts: tuple[Part, ...]) -> str:
    return "".join(f"[{part.text}]" if part.is_different else part.text for part in parts)


@pytest.mark.parametrize(
    ("before", "after", "left", "right"),
    [
        ("Order 12 is here.", "Order 13 is here.", "Order [12] is here.", "Order [13] is here."),
        ("on Friday", "on Friday", "on Friday", "on Friday"),
        ("", "new", "", "[new]"),
        ("a b", "c d", "[a b]", "[c d]"),
        ("['A']", "['A', 'B']", "['A']", "['A'[, 'B']]"),
    ],
)
def test_only_what_differs_is_marked(before: str, after: str, left: str, right: str) -> None:
    found = word_difference(before, after)
    assert (marked(found.before), marked(found.after)) == (left, right)


@given(st.text(), st.text())
def test_the_parts_of_a_text_are_the_text(before: str, after: str) -> None:
    found = word_difference(before, after)
    assert "".join(part.text for part in found.before) == before
    assert "".join(part.text for part in found.after) == after
    assert found.is_same == (before == after)


def test_very_long_texts_are_marked_as_a_whole() -> None:
    found = word_difference("a " * 5_000, "b " * 5_000)
    assert [part.is_different for part in (*found.before, *found.after)] == [True, True]
