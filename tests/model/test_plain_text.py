from __future__ import annotations

import pytest

from evalmeta.model.plain_text import is_blank


@pytest.mark.parametrize(
    "text",
    ["", " \n\t\u00a0", "\u200b\ufeff\u2060\u00ad", "\x00\x1b", "\u3164\u115f\u1160\uffa0\u2800", "\ufe0f\u034f\u0301"],
)
def test_a_text_that_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "\u200b0", "\U0001f44d", "\u4f60", " \u0301e"])
def test_a_text_with_a_visible_sign_is_not(text: str) -> None:
    assert not is_blank(text)
