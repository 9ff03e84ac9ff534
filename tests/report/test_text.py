from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.report.text import JsonDocument, JsonList, count, distinct_decimals, percent, seconds, stream_json


def test_one_is_singular_and_thousands_are_grouped() -> None:
    assert [count(number, "case") for number in (0, 1, 12_000)] == ["0 cases", "1 case", "12,000 cases"]


@pytest.mark.parametrize(("share", "text"), [(0, "0 %"), (2 / 3, "66.66 %"), (0.99999, "99.99 %"), (1, "100 %")])
def test_only_a_whole_share_is_100_percent(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(("duration", "text"), [(0, "0 s"), (0.4123, "0.412 s"), (12.51, "12.5 s"), (125, "2 min 5 s")])
def test_seconds_are_as_exact_as_they_are_short(duration: float, text: str) -> None:
    assert seconds(duration) == text


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (2 / 3, 0.8, ("0.667", "0.8")),
        (0.79996, 0.8, ("0.79996", "0.8")),
        ((0.6 + 1 + 0.8) / 3, 0.8, ("0.8", "0.8")),
        (1234.56, 1234.57, ("1,234.56", "1,234.57")),
    ],
)
def test_different_numbers_look_different_unless_they_are_equal_but_for_rounding(
    first: float, second: float, texts: tuple[str, str]
) -> None:
    assert distinct_decimals(first, second) == texts


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
