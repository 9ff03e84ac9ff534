from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.subjects.http import check_template, fill_template

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(JSON)
def test_a_value_that_stands_alone_keeps_its_type(value: object) -> None:
    assert fill_template({"a": ["{{ session }}"]}, {"session": value}) == {"a": [value]}  # type: ignore[dict-item]


@given(st.lists(TEXTS))
def test_a_value_inside_text_is_written_as_json(value: list[str]) -> None:
    text = fill_template("is {{history}}", {"history": value})
    assert isinstance(text, str)
    assert json.loads(text.removeprefix("is ")) == value


@given(TEXTS.filter(lambda text: "{{" not in text))
def test_a_template_without_placeholders_stays_as_it_is(text: str) -> None:
    check_template({text: [text, 7, None]})
    assert fill_template({text: [text, 7, None]}, {}) == {text: [text, 7, None]}


def test_braces_that_are_no_placeholder_stay() -> None:
    assert fill_template('{"a": {"b": 1}}', {}) == '{"a": {"b": 1}}'
