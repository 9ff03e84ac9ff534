from __future__ import annotations

import pytest

from evalmeta.rules_rater.numerals import with_digits


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("three of twelve", "3 of 12"),
        ("twenty-five seats", "25 seats"),
        ("eight hundred and fifty euros", "850 euros"),
        ("two thousand three hundred", "2300"),
        ("two three", "2 3"),
        ("one of us in one month", "one of us in 1 month"),
        ("our second customer", "our 2 customer"),
        ("half an hour before noon", "30 minutes before 12:00 pm"),
        ("2 hours and 30 minutes", "150 minutes "),
        ("Wir haben drei Filialen", "Wir haben 3 Filialen"),
        ("Cuesta treinta euros", "Cuesta 30 euros"),
        ("Il reste deux places", "Il reste 2 places"),
        ("nothing to count", "nothing to count"),
    ],
)
def test_numbers_are_put_into_digits(text: str, digits: str) -> None:
    assert with_digits(text) == digits
