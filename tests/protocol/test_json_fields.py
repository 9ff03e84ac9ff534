from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import MessageUnreadable
from evalmeta.protocol import json_fields


@given(st.binary())
def test_any_bytes_are_an_object_or_unreadable(data: bytes) -> None:
    with suppress(MessageUnreadable):
        assert isinstance(json_fields.read_object(data), dict)


@pytest.mark.parametrize("data", [b"", b"[]", b"<html>", b'"text"', b"null", b"[" * 5000, b'{"a": NaN}'])
def test_text_that_is_not_a_json_object_is_unreadable(data: bytes) -> None:
    with pytest.raises(MessageUnreadable):
        json_fields.read_object(data)


@pytest.mark.parametrize(("value", "text"), [("a", "a"), (5, "5"), (2.5, "2.5"), (True, ""), (None, ""), ([], "")])
def test_text_is_text_or_a_number_or_empty(value: object, text: str) -> None:
    assert json_fields.text({"key": value}, "key") == text


@pytest.mark.parametrize("value", ["1", None, True, 1.5, {}])
def test_a_value_of_another_type_returns_the_default(value: object) -> None:
    assert json_fields.integer({"key": value}, "key", 7) == 7
    assert json_fields.object_at({"key": [value]}, "key") == {}
    assert json_fields.list_of_objects({"key": [value, {"a": 1}]}, "key")[-1] == {"a": 1}


def test_a_missing_key_returns_the_default() -> None:
    assert json_fields.number({}, "key", 2.5) == 2.5
    assert json_fields.optional_text({}, "key") is None
    assert json_fields.list_of_objects({}, "key") == []
