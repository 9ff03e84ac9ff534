from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.references import parse_number


@pytest.mark.parametrize(
    ("value", "number"), [("10", "10"), (" 10.0 ", "10.0"), ("-.5", "-0.5"), ("2e3", "2000"), (7, "7"), (0.1, "0.1")]
)
def test_numbers_and_texts_that_are_numbers_are_read_exactly(value: float | str, number: str) -> None:
    assert parse_number(value) == Decimal(number)


@pytest.mark.parametrize(
    "value",
    ["", "ten", "1_000", "NaN", "inf", "1,5", "1e99999999999999999999", True, None, [], {}, float("nan"), float("inf")],
)
def test_all_else_is_no_number(value: object) -> None:
    assert parse_number(value) is None


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    number = parse_number(text)
    assert number is None or number.is_finite()
