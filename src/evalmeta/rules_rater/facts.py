"""Facts that can be compared exactly: which ones mean the same, and which ones contradict each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

_TOLERANCE: Final = Decimal("0.03")  # of converted units
_ROUGH_TOLERANCE: Final = Decimal("0.1")  # of approximate numbers
_MAX_RATIO: Final = 12  # numbers without a unit that differ more seldom answer the same question
_MIN_LONG: Final = 1000
_MIN_PHONE_DIGITS: Final = 7
_MAX_COUNTRY_DIGITS: Final = 3
_DAY: Final = 24 * 60


class Unit(NamedTuple):
    """A unit of measure; `factor` is the unit in base units of its dimension, or 0 if it cannot be converted."""

    name: str
    dimension: str
    factor: Decimal


Reading = tuple[Decimal, Unit | None]
Day = tuple[int | None, int, int]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact; `text` is its spelling in evidence."""

    text: str


@dataclass(frozen=True, slots=True)
class Amount(Fact):
    """A number with its possible meanings: `1.250` is 1250 or 1.25, and `5 m` is 5 million or 5 metres."""

    readings: tuple[Reading, ...]
    is_approximate: bool = False

    @property
    def unit(self) -> Unit | None:
        """Return the unit of the likeliest meaning."""
        return self.readings[0][1]


@dataclass(frozen=True, slots=True)
class Time(Fact):
    """A time of day: its possible minutes, as 7:15 can be 19:15, and the possible offsets of its time zone."""

    minutes: frozenset[int]
    offsets: frozenset[int]


@dataclass(frozen=True, slots=True)
class Date(Fact):
    """A date with its possible meanings: year or None, month, day or 0."""

    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class Weekday(Fact):
    """A weekday or a range of weekdays; Monday is 1."""

    days: frozenset[int]


@dataclass(frozen=True, slots=True)
class Code(Fact):
    """A code without separators; codes of one `form` can replace each other: `A9`, `phone`, `link`."""

    value: str
    form: str


def full_text(fact: Fact) -> str:
    """Return the spelling of a fact with its unit."""
    return f"{fact.text} {fact.unit.name}" if isinstance(fact, Amount) and fact.unit else fact.text


def key(fact: Fact) -> str:
    """Return a word that equal facts share, such as 2 weeks and 14 days."""
    text = full_text(fact)
    if isinstance(fact, Amount) and fact.unit and fact.unit.factor:
        text = f"{float(fact.readings[0][0] * fact.unit.factor):.6g}{fact.unit.dimension}"
    elif isinstance(fact, Weekday):
        text = f"day{sorted(fact.days)}"
    elif isinstance(fact, Code):
        text = fact.value
    return re.sub(r"\W", lambda match: {"-": "minus", ".": "."}.get(match[0], ""), text)


def is_met(fact: Fact, other: Fact) -> bool:
    """Say whether the other fact can mean the same; a missing unit, year or time zone matches any."""
    match fact, other:
        case Amount(), Amount():
            tolerance = _ROUGH_TOLERANCE if fact.is_approximate or other.is_approximate else Decimal(0)
            is_same = any(_same_amount(own, others, tolerance) for own in fact.readings for others in other.readings)
        case Time(), Time():
            is_same = not _universal(fact, other).isdisjoint(_universal(other, fact))
        case Date(), Date():
            pairs = (zip(one, another, strict=True) for one in fact.days for another in other.days)
            is_same = any(all(own == others or not own or not others for own, others in pair) for pair in pairs)
        case Weekday(), Weekday():
            is_same = not fact.days.isdisjoint(other.days)
        case Code(), Code():
            is_same = fact.value == other.value or _same_phone(fact.value, other.value)
        case (Amount() as amount, rest) | (rest, Amount() as amount):
            plain = {value for value, unit in amount.readings if unit is None or unit.dimension == "duration"}
            is_same = not plain.isdisjoint(_numbers(rest))
        case _:
            is_same = False
    return is_same


def are_rivals(fact: Fact, other: Fact, *, are_alike: bool = False) -> bool:
    """Say whether two facts can answer the same question, so that different ones contradict each other.

    In sentences that are alike, any two numbers without units can.
    """
    match fact, other:
        case Amount(), Amount():
            is_plain = are_alike and not fact.unit and not other.unit
            return is_plain or any(
                _are_rival_amounts(own, others) for own in fact.readings for others in other.readings
            )
        case Time(), Time():
            return bool(fact.offsets) == bool(other.offsets)
        case Code(), Code():
            return fact.form == other.form and _are_rival_codes(fact.value, other.value, fact.form)
    return type(fact) is type(other)


def _same_amount(own: Reading, others: Reading, tolerance: Decimal) -> bool:
    (value, unit), (other_value, other_unit) = own, others
    if unit and other_unit and unit.name != other_unit.name and "degree" not in {unit.name, other_unit.name}:
        if unit.dimension == "temperature" == other_unit.dimension:
            celsius, fahrenheit = (value, other_value) if unit.name == "celsius" else (other_value, value)
            return abs(celsius * 9 / 5 + 32 - fahrenheit) <= 1
        if unit.dimension != other_unit.dimension or not unit.factor:
            return False
        value, other_value, tolerance = value * unit.factor, other_value * other_unit.factor, max(tolerance, _TOLERANCE)
    return abs(value - other_value) <= tolerance * max(abs(value), abs(other_value))


def _are_rival_amounts(own: Reading, others: Reading) -> bool:
    (value, unit), (other_value, other_unit) = own, others
    if unit and other_unit:
        return unit.dimension == other_unit.dimension or value == other_value
    small, large = sorted((abs(value), abs(other_value)))
    return not unit and not other_unit and small * _MAX_RATIO >= large and (small < _MIN_LONG) == (large < _MIN_LONG)


def _are_rival_codes(one: str, other: str, form: str) -> bool:
    """Say whether neither code is the start of the other, such as a site and its pages."""
    short, long = sorted((one, other), key=len)
    return form not in {"link", "version"} or not f"{long}/".replace(".", "/").startswith(f"{short}/".replace(".", "/"))


def _universal(time: Time, other: Time) -> frozenset[int]:
    """Return the minutes of a time in UTC if both times have a zone."""
    offsets = time.offsets if time.offsets and other.offsets else {0}
    return frozenset((minute - offset) % _DAY for minute in time.minutes for offset in offsets)


def _same_phone(one: str, other: str) -> bool:
    """Say whether two telephone numbers are equal, one of them without its country code."""
    short, long = sorted((one, other), key=len)
    rest = long.removesuffix(short.lstrip("0"))
    return len(short) >= _MIN_PHONE_DIGITS and long.isdigit() and len(rest) <= _MAX_COUNTRY_DIGITS


def _numbers(fact: Fact) -> frozenset[Decimal]:
    """Return the plain numbers that can stand for a fact: the hour of a time, parts of a date, the digits of a code."""
    match fact:
        case Time(minutes=minutes):
            return frozenset(Decimal(minute // 60) for minute in minutes if minute % 60 == 0)
        case Date(days=days):
            return frozenset(Decimal(part) for day in days for part in day if part)
        case Code(value=value, form="A9" | "A9A"):
            digits = re.sub(r"\D", "", value)
            return frozenset({Decimal(digits)} if digits[2:] else ())
    return frozenset()
