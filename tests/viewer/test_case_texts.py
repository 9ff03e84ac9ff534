"""Texts of a case in the form in which they are read best."""

from __future__ import annotations

import pytest

from evalmeta.viewer.case_texts import RenderedText, rendered_text, step_text


@pytest.mark.parametrize("text", ['{"a": ', "[1", "plain", "", "7", '"text"'])
def test_a_text_that_is_neither_json_nor_markdown_stays_as_it_is(text: str) -> None:
    assert rendered_text(text) is None


def test_json_is_shown_with_a_line_for_each_value_and_markdown_as_html() -> None:
    assert rendered_text(' {"a": [1]}') == RenderedText("JSON", '{\n  "a": [\n    1\n  ]\n}')
    rendered = rendered_text("# Orders\n\n- **one**\n- <b>two</b>\n")
    assert rendered is not None
    assert rendered.kind == "Markdown"
    assert "<strong>one</strong>" in rendered.text
    assert "<b>two" not in rendered.text


def test_what_a_step_received_is_its_text_or_json_in_lines() -> None:
    assert step_text("Open?") == "Open?"
    assert step_text({"a": 1}) == '{\n  "a": 1\n}'
