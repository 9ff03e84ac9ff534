"""Random facts of many kinds: a value, another one of its kind, and the same value in other notations."""

from __future__ import annotations

from typing import Final, NamedTuple

from hypothesis import strategies as st

__all__ = ["FRAMES", "Restated", "restated_facts"]


# A question with or without the fact, and an answer around the sentence with the fact.
FRAMES: Final = (
    ("What about {}?", "{}."),
    ("Can you check {} for me?", "Hello, {}."),
    ("Is it {}?", "Thanks for asking. {}. Have a nice day!"),
)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DIGITS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_PEOPLE: Final = ("Maria Lopez", "David Novak", "Priya Okafor", "Kenji Tanaka")
_PLACES: Final = ("Berlin", "Lisbon", "Toronto", "Osaka")
_DURATIONS: Final = (
    ("2 days", "3 days", ("48 hours", "two days")),
    ("14 days", "15 days", ("two weeks", "2 weeks")),
    ("24 hours", "12 hours", ("1 day", "one day")),
    ("90 minutes", "80 minutes", ("1.5 hours", "an hour and a half", "1 hour 30 minutes")),
    ("2 years", "2 months", ("24 months", "two years")),
    ("5 business days", "6 business days", ("five business days", "5 working days")),
)


class Restated(NamedTuple):
    """A fact in a sentence.

    Attributes:
        sentence: The sentence, with a place for the fact.
        other: A different fact of the same kind.
        notations: Other spellings of the value.
    """

    sentence: str
    value: str
    other: str
    notations: tuple[str, ...]


def _order(number: int) -> Restated:
    return Restated("order {} was sent", f"{number}", f"{number + 1}", (f"no. {number}", f"#{number}"))


def _code(number: int) -> Restated:
    return Restated("ticket {} is closed", f"TKT-{number}", f"TKT-{number + 1}", (f"tkt-{number}", f"TKT{number}"))


def _money(cents: int) -> Restated:
    value, other = f"{cents / 100:,.2f}", f"{cents / 100 + 1:,.2f}"
    notations = (f"{value} dollars", f"USD {value}", f"{cents / 100:.2f} USD", f"${cents / 100:.2f}")
    return Restated("you paid {} for it", f"${value}", f"${other}", notations)


def _percentage(number: int) -> Restated:
    value = f"{number}%"
    return Restated(
        "the interest is {} now", value, f"{number + 1}%", (f"{number} percent", f"{number} %", f"{number} per cent")
    )


def _time(minutes: int) -> Restated:
    hour, minute = divmod(minutes, 60)
    half = "pm" if hour > 11 else "am"
    value = f"{hour % 12 or 12}:{minute:02} {half}"
    other = f"{hour % 12 or 12}:{(minute + 7) % 60:02} {half}"
    return Restated("the bus leaves at {} today", value, other, (f"{hour:02}:{minute:02}", value.upper()))


def _date(number: int) -> Restated:
    month, day = _MONTHS[number % 12], number // 12 % 27 + 1
    value = f"{month} {day}"
    other = f"{month} {day + 1}" if number % 2 else f"{_MONTHS[(number + 5) % 12]} {day}"
    notations = (
        f"{day} {month}",
        f"{month[:3]} {day}",
        f"the {day}th of {month}",
        f"2026-{number % 12 + 1:02}-{day:02}",
    )
    return Restated("your visit is on {} at the office", value, other, notations)


def _phone(number: int) -> Restated:
    value, other = (f"{code // 10000:03}-{code % 10000:04}" for code in (number, number + 1))
    notations = (f"(415) {value}", f"+1 415 {value}", f"+1415{value.replace('-', '')}", f"415-{value}")
    return Restated("call {} for help", f"+1 415-{value}", f"+1 415-{other}", notations)


def _mail(number: int) -> Restated:
    value = f"desk{number}@example.com"
    return Restated("write to {} about it", value, f"desk{number + 1}@example.com", (value.upper(), f"<{value}>"))


def _link(number: int) -> Restated:
    value = f"https://www.example.com/page{number}"
    notations = (f"example.com/page{number}", f"http://example.com/page{number}/")
    return Restated("see {} for more", value, f"https://www.example.com/page{number + 1}", notations)


def _version(number: int) -> Restated:
    value = f"{number % 9 + 1}.{number // 9 % 10}"
    return Restated("version {} has the fix", f"{value}.3", f"{value}.4", (f"v{value}.3",))


def _count(number: int) -> Restated:
    place = number % 10
    return Restated("you have {} open cases", f"{place + 2}", f"{place + 3}", (_DIGITS[place],))


def _word(sentence: str, values: tuple[str, ...], number: int) -> Restated:
    value, other = values[number % len(values)], values[(number + 1) % len(values)]
    return Restated(sentence, value, other, (value,))


def _person(number: int) -> Restated:
    return _word("the manager is {} of sales", _PEOPLE, number)


def _place(number: int) -> Restated:
    return _word("the parcel is in {} now", _PLACES, number)


def _weekday(number: int) -> Restated:
    return _word("the shop is closed on {} all day", _DAYS, number)


def _duration(number: int) -> Restated:
    return Restated("the trip takes {} by train", *_DURATIONS[number % len(_DURATIONS)])


_KINDS: Final = (
    *((_order, 100000), (_code, 9000), (_money, 900000), (_percentage, 90), (_time, 1439), (_date, 323)),
    *((_phone, 9999998), (_mail, 99), (_link, 99), (_version, 90), (_count, 9)),
    *((_person, 3), (_place, 3), (_weekday, 6), (_duration, 5)),
)


def restated_facts() -> st.SearchStrategy[Restated]:
    """Return facts of all kinds, each as likely."""
    return st.one_of([st.integers(1 if most < 1000 else most // 9, most).map(make) for make, most in _KINDS])
