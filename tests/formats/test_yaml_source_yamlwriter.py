from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.formats.yaml_source import Yaml, write_yaml
from strategies import xml_texts

_scalars = st.none() | st.booleans() | st.integers() | xml_texts
_keys = st.sampled_from(["a", "b", "c"])


def _nested(inner: st.SearchStrategy[Yaml]) -> st.SearchStrategy[Yaml]:
    # A list in a list has no use here, and is not written.
    items = _scalars | st.dictionaries(_keys, inner, max_size=2)
    return st.lists(items, max_size=3) | st.dictionaries(_keys, inner, max_size=3)


@given(st.dictionaries(_keys, st.recursive(_scalars, _nested, max_leaves=12), min_size=1))
def test_what_is_written_is_read_by_other_programs(value: dict[str, Yaml]) -> None:
    assert yaml.safe_load(write_yaml(value)) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Where's my order?", "Where's my order?"),
        ("$.a.b", "$.a.b"),
        ("no", '"no"'),
        ("7", '"7"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("", '""'),
        ("two\nlines", '"two\\nlines"'),
        ("\u2028", '"\\u2028"'),
        ("é", '"é"'),
    ],
)
def test_texts_stand_in_quotes_where_it_matters(text: str, written: str) -> None:
    assert write_yaml({"a": text}).decode() == f"a: {written}\n"


def test_nested_lists_numbers_and_keys_with_signs_are_read_as_they_were() -> None:
    value = {"a: b": [[1, [2.5]], [], {"on": [["x"]]}], "1": -0.25}
    assert yaml.safe_load(write_yaml(value)) == value
