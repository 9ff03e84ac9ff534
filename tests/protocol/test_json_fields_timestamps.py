from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.protocol.json_fields import from_timestamp, to_timestamp

MOMENT = 1_795_187_325.0


@given(st.integers(0, 4_102_444_800_000))
def test_milliseconds_survive_the_round_trip(milliseconds: int) -> None:
    written = to_timestamp(milliseconds / 1000)
    assert to_timestamp(from_timestamp(written) or 0) == written
    assert from_timestamp(written) == milliseconds / 1000


def test_a_time_is_written_as_salesforce_writes_it() -> None:
    assert to_timestamp(MOMENT) == "2026-11-20T15:08:45.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20T15:08:45Z",
        "2026-11-20T15:08:45.000+0000",
        "2026-11-20T17:08:45.000000000+02:00",
        "2026-11-20T15:08:45",
    ],
)
def test_a_time_is_read_in_every_spelling(text: str) -> None:
    assert from_timestamp(text) == MOMENT


@given(st.text() | st.datetimes().map(lambda moment: f"{moment.isoformat()}-23:59"))
def test_any_text_is_a_time_that_can_be_written_or_none(text: str) -> None:
    found = from_timestamp(text)
    assert found is None or to_timestamp(found)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.9999999Z"]
)
def test_a_timestamp_that_is_not_valid_is_none(text: str) -> None:
    assert from_timestamp(text) is None
