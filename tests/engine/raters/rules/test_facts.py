from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.raters.rules.facts import are_comparable, find_facts, is_met, with_plain_numbers, without_bounds


def spelled(text: str) -> tuple[str, ...]:
    return tuple(fact.full_text for fact in find_facts(text))


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("1,250 or 1250.00 or 1.250,00", ("1250",)),
        ("2k, 3M and 5 million", ("2000", "3000000", "5000000")),
        ("3:30 pm is 15:30", ("15:30",)),
        ("9 am, 12 am", ("9:00", "0:00")),
        ("March 5, 2024", ("2024-03-05",)),
        ("the 5th of March", ("03-05",)),
        ("2024-03-05", ("2024-03-05",)),
        ("31/12/2025, am 12.05., 1.2.2024, 3/4/24", ("2025-12-31", "05-12", "2024-02-01", "2024-04-03")),
        ("in May 2024", ("2024-05",)),
        ("el 5 de mayo", ("05-05",)),
        ("ORD-1234 and inv00045, seat 14C", ("ORD-1234", "INV00045", "14C")),
        ("5GB, 20%, $7.50, EUR 8", ("5 GB", "20 percent", "7.5 USD", "8 EUR")),
        ("19 per cent", ("19 percent",)),
        ("case 00001026", ("1026",)),
        ("call 555-0134 or +49 (0)30 1234567", ("5550134", "49301234567")),
        ("minus 5 and -6", ("-5", "-6")),
        ("1 250,50 euros", ("1250.5 EUR",)),
        ("3.2.1, 10.0.0.255 and 1.234.567", ("3.2.1", "10.0.0.255", "1234567")),
        ("14 Uhr, 9 o'clock", ("14:00", "9:00")),
        ("5 business days", ("5 day",)),
        ("may I march on", ()),
    ],
)
def test_facts_have_one_spelling(text: str, facts: tuple[str, ...]) -> None:
    assert spelled(text) == facts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7:15", "19:15"),
        ("at 9", "9 am"),
        ("24 months", "2 years"),
        ("90 minutes", "1.5 hours"),
        ("10 km", "6.2 miles"),
        ("$5", "5"),
        ("£5", "5 pounds"),
        ("1.250", "1,250"),
        ("14 May", "2024-05-14"),
        ("06/03", "June 3"),
        ("the 14th", "May 14"),
    ],
)
def test_equal_facts_are_recognised(one: str, other: str) -> None:
    assert is_met(find_facts(one)[0], find_facts(other))
    assert is_met(find_facts(other)[0], find_facts(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7 am", "7 pm"),
        ("$5", "€5"),
        ("10%", "10 dollars"),
        ("2 years", "2 months"),
        ("14 May", "15 May"),
        ("5", "-5"),
        ("A-1", "A-2"),
    ],
)
def test_facts_that_exclude_each_other_are_comparable(one: str, other: str) -> None:
    assert not is_met(find_facts(one)[0], find_facts(other))
    assert are_comparable(find_facts(one)[0], find_facts(other)[0])


@pytest.mark.parametrize(("one", "other"), [("5 kg", "$80"), ("7 am", "9"), ("order 1234", "50"), ("A-1", "1")])
def test_facts_of_different_kinds_are_not_comparable(one: str, other: str) -> None:
    assert not is_met(find_facts(one)[0], find_facts(other))
    assert not are_comparable(find_facts(one)[0], find_facts(other)[0])


def test_bounds_need_not_be_met_to_the_digit() -> None:
    assert "100" not in without_bounds("at least 100 of 200, between 3 and 5", "150")
    assert "100" in without_bounds("at least 100", "at least 90")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("It costs 1,250.00 for two", "It costs  1250  for  2 "),
        ("2 weeks", " 14day "),
        ("5 business days", " business 5day "),
        ("20 GB", " 20GB "),
        ("no numbers", "no numbers"),
    ],
)
def test_a_text_can_be_written_with_plain_numbers(text: str, plain: str) -> None:
    assert with_plain_numbers(text).split() == plain.split()


@given(st.text())
def test_any_text_has_facts_or_none(text: str) -> None:
    assert all(spelled(text))
    assert isinstance(with_plain_numbers(text), str)
