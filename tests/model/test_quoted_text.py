from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.quoted_text import unquote


@given(st.text())
def test_json_text_is_read_as_json_reads_it(text: str) -> None:
    assert unquote(json.dumps(text)) == text
    assert unquote(json.dumps(text, ensure_ascii=False)) == text


@given(st.text())
def test_python_text_is_read_as_python_reads_it(text: str) -> None:
    assert unquote(repr(text)) == text
    assert unquote(ascii(text)) == text


@pytest.mark.parametrize(("source", "text"), [(r"'a\'b'", "a'b"), (r"'\q\u12'", "qu12"), (r"'\\n'", r"\n"), ("''", "")])
def test_a_backslash_before_another_character_is_removed(source: str, text: str) -> None:
    assert unquote(source) == text
