from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.rules_rater.facts import Fact, are_rivals, full_text, is_met
from evalmeta.rules_rater.finding import find_facts, with_keys, without_facts
from evalmeta.rules_rater.text import plain


def facts(text: str) -> tuple[Fact, ...]:
    return find_facts(plain(text))


def spelled(text: str) -> tuple[str, ...]:
    return tuple(map(full_text, facts(text)))


@pytest.mark.parametrize(
    ("text", "spellings"),
    [
        ("1,250 or 1250.00 or 1.250,00", ("1250",)),
        ("2k, 3M and 5 million", ("2000", "3000000", "5000000")),
        ("3:30 pm is 15:30", ("15:30",)),
        ("9 am, 12 am", ("9:00", "0:00")),
        ("March 5, 2024", ("2024-03-05",)),
        ("the 5th of March", ("03-05",)),
        ("2024-03-05", ("2024-03-05",)),
        ("31/12/2025, 1.2.2024, 3/4/24", ("2025-12-31", "2024-02-01", "2024-04-03")),
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
        ("EUR 18.2m and ₹5 lakh", ("18200000 EUR", "500000 INR")),
        ("12万5千円, 1.5万元, 3만 5천원, 5 लाख", ("125000 JPY", "15000 CNY", "35000 KRW", "500000")),
        ("午後6時, 下午3点40分, 오전 10시, 14 Uhr 30", ("18:00", "15:40", "10:00", "14:30")),
        ("2026年3月15日, 3월 15일", ("2026-03-15", "03-15")),
        ("٤٩ ريالًا, ३० दिन, １２％, ๑,๒๙๐ บาท", ("49 SAR", "30 day", "12 percent", "1290 THB")),
        ("3.844 × 10^5 km", ("384400 km",)),
        ("1) Open it 2) Save it", ()),
        ("It lasts **24** months[1]", ("24 month",)),
    ],
)
def test_facts_have_one_spelling(text: str, spellings: tuple[str, ...]) -> None:
    assert spelled(text) == spellings


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
        ("15:00 UTC", "17:00 CEST"),
        ("3 pm", "15:00 UTC"),
        ("5 business days", "1 week"),
        ("about 1.2 million", "1,198,400"),
        ("2.5 kg", "2,500 g"),
        ("64 m²", "64 square metres"),
        ("Mon-Thu", "Monday to Thursday"),
        ("水曜日", "周三"),
        ("the 14th", "May 14"),
    ],
)
def test_equal_facts_are_recognised(one: str, other: str) -> None:
    assert is_met(facts(one)[0], facts(other)[0])
    assert is_met(facts(other)[0], facts(one)[0])


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
        ("15:00 UTC", "3 pm PST"),
        ("400 mg", "400 mcg"),
        ("EUR 18.2m", "EUR 18.2bn"),
        ("12万円", "1.2万円"),
        ("version 4.2", "v4.20"),
        ("周三", "周四"),
    ],
)
def test_facts_that_exclude_each_other_are_rivals(one: str, other: str) -> None:
    assert not is_met(facts(one)[0], facts(other)[0])
    assert are_rivals(facts(one)[0], facts(other)[0])


@pytest.mark.parametrize(
    ("one", "other"), [("5 kg", "$80"), ("7 am", "9"), ("1234", "50"), ("A-1", "1"), ("9 am UTC", "11 am")]
)
def test_facts_of_different_kinds_are_not_comparable(one: str, other: str) -> None:
    assert not is_met(facts(one)[0], facts(other)[0])
    assert not are_rivals(facts(one)[0], facts(other)[0])


def test_equal_facts_share_a_word() -> None:
    assert with_keys("in 2 weeks").split() == with_keys("in 14 days").split()
    assert with_keys("on May 3").split() == with_keys("on 3 May").split()
    assert with_keys("it is -5").split() != with_keys("it is 5").split()
    assert without_facts("It is 5 km.").split() == ["It", "is", "."]


@given(st.text())
def test_any_text_has_facts_or_none(text: str) -> None:
    assert all(spelled(text))
    assert isinstance(with_keys(plain(text)), str)
