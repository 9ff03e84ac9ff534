from __future__ import annotations

import pytest

from evalmeta.report.text import count, distinct_decimals, percent, seconds


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
