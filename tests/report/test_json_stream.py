from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.report.json_stream import JsonDocument, JsonList, stream_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(VALUES, max_size=4), VALUES)
def test_a_streamed_document_is_the_same_as_one_that_is_written_at_once(items: list[object], other: object) -> None:
    whole = {"head": other, "items": items, "inner": {"items": items, "other": other}}
    inner = JsonDocument({"items": JsonList(iter(items)), "other": other})
    streamed = JsonDocument({"head": other, "items": JsonList(iter(items)), "inner": inner})
    assert "".join(stream_json(streamed)) == orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode()


def test_empty_lists_and_objects_are_written_like_others() -> None:
    assert "".join(stream_json(JsonList([]))) == "[]"
    assert "".join(stream_json(JsonDocument({}))) == "{}"


def test_an_item_is_written_before_the_next_one_is_read() -> None:
    numbers = iter([1, 2])
    pieces = stream_json(JsonList(numbers))
    assert [next(pieces), next(pieces)] == ["[\n  ", "1"]
    assert list(numbers) == [2]
